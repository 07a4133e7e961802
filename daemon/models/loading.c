/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/loading.h"

#include "daemon/models/process_memory.h"
#include "ipc/decode/piped_decode.h"
#include "ipc/piped.h"
#include "ipc/protocol.h"
#include "model/sidecar.h"
#include "pipeline/pipeline.h"

#define SMALL_BYTES (16u << 20) /* what is free is known no better than that */

/* A picture's input has one or three channels. */
static int check_pad(const struct mdl_model *m, char ret_error[MDL_ERROR_MAX])
{
    const struct mdl_tensor *t = &m->tensors[m->inputs[0].tensor];
    size_t channels = t->rank == 4 ? t->dim[m->preproc.nhwc ? 3 : 1] : 0;
    size_t given = m->segment && m->segment->first_unit > 0 ? 0 : m->preproc.pad_given;

    if (given == 0 || given == channels || (channels != 1 && channels != 3)) {
        return 0;
    }
    snprintf(ret_error, MDL_ERROR_MAX,
             "key 'pad': it lists %zu values, and input %.200s has %zu channel%s; give one value, "
             "or one per channel",
             given, m->inputs[0].name, channels, base_plural(channels));
    return -EBADMSG;
}

int dmn_load_check(const struct mdl_model *m, char ret_error[MDL_ERROR_MAX])
{
    size_t bytes = 0;

    if (m->input_count == 0 || m->output_count == 0 || m->unit_count == 0) {
        snprintf(ret_error, MDL_ERROR_MAX, "the model has no input, no output or no operators");
        return -EBADMSG;
    }
    for (size_t i = 0; i < m->input_count; i++) {
        bytes += m->inputs[i].bytes;
    }
    if (bytes == 0) {
        snprintf(ret_error, MDL_ERROR_MAX,
                 "input %.200s has no elements: a frame of it would be empty; export the model "
                 "with sizes above 0",
                 m->inputs[0].name);
        return -EBADMSG;
    }
    if (m->input_count > PL_FRAME_IO_MAX || m->output_count > PL_FRAME_IO_MAX) {
        snprintf(ret_error, MDL_ERROR_MAX, "the model has more than %u inputs or outputs",
                 PL_FRAME_IO_MAX);
        return -E2BIG;
    }
    if (m->unit_count > TUN_UNIT_MAX) {
        snprintf(ret_error, MDL_ERROR_MAX, "the model has more than %u units", TUN_UNIT_MAX);
        return -E2BIG;
    }
    return check_pad(m, ret_error);
}

/* ---- the sidecar's key `output` ---- */

uint32_t dmn_piped_dtype(enum mdl_dtype of)
{
    static const uint32_t dtypes[MDL_DTYPE_COUNT] = {
        [MDL_F32] = PIPED_F32, [MDL_I32] = PIPED_I32, [MDL_I64] = PIPED_I64,
        [MDL_U8] = PIPED_U8,   [MDL_I8] = PIPED_I8,   [MDL_BOOL] = PIPED_BOOL,
    };

    return dtypes[of];
}

/* The outputs as a client is told of them, but for their places. */
static uint32_t outputs_of(const struct mdl_model *m, struct piped_tensor ret[IPC_TENSORS_MAX])
{
    uint32_t count = 0;

    for (; count < m->output_count && count < IPC_TENSORS_MAX; count++) {
        const struct mdl_tensor *t = &m->tensors[m->outputs[count].tensor];

        ret[count] = (struct piped_tensor){.name = m->outputs[count].name,
                                           .dtype = dmn_piped_dtype(t->dtype),
                                           .rank = (uint32_t)t->rank,
                                           .bytes = m->outputs[count].bytes};
        for (size_t i = 0; i < t->rank && i < IPC_RANK_MAX; i++) {
            ret[count].dim[i] = (uint32_t)t->dim[i];
        }
    }
    return count;
}

int dmn_output_fits(const struct mdl_model *m)
{
    struct piped_tensor outputs[IPC_TENSORS_MAX];
    struct piped_decoder *d = NULL;
    int rc = m->output ? piped_decoder_new(m->output, outputs, outputs_of(m, outputs), &d) : 0;

    piped_decoder_free(d);
    return rc;
}

int dmn_output_check(const struct mdl_model *m, const char *path, char ret_error[MDL_ERROR_MAX])
{
    int rc = dmn_output_fits(m);

    if (rc < 0) {
        base_autofree char *sidecar = mdl_sidecar_find(path);

        snprintf(ret_error, MDL_ERROR_MAX, "%.300s: key 'output': %s", sidecar ? sidecar : path,
                 piped_last_error());
    }
    return rc;
}

/* ---- files ---- */

static struct dmn_file_stamp file_stamp(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        return (struct dmn_file_stamp){0};
    }
    return (struct dmn_file_stamp){.device = st.st_dev,
                                   .inode = st.st_ino,
                                   .bytes = (uint64_t)st.st_size,
                                   .mtime_ns = (uint64_t)st.st_mtim.tv_sec * BASE_NS_PER_S +
                                               (uint64_t)st.st_mtim.tv_nsec};
}

struct dmn_stamp dmn_stamp_read(const char *path, const char *calibration)
{
    base_autofree char *sidecar = mdl_sidecar_find(path);
    struct dmn_stamp stamp = {.model = file_stamp(path)};

    if (calibration[0]) {
        stamp.calibration = file_stamp(calibration);
    }
    if (sidecar) {
        stamp.sidecar = file_stamp(sidecar);
    }
    return stamp;
}

static uint64_t mix(uint64_t digest, uint64_t with)
{
    digest ^= with;
    return base_splitmix64(&digest);
}

static uint64_t mix_files(uint64_t digest, const struct mdl_data_file *f, size_t count, bool now)
{
    for (size_t i = 0; i < count; i++, f++) {
        struct dmn_file_stamp s = {f->device, f->inode, f->bytes, f->mtime_ns};

        if (f->path) {
            s = now ? file_stamp(f->path) : s;
            digest = mix(mix(mix(mix(digest, s.device), s.inode), s.bytes), s.mtime_ns);
        }
    }
    return digest;
}

uint64_t dmn_stamp_data(const struct mdl_model *m, bool now)
{
    return mix_files(mix_files(0, m->data_files, m->data_file_count, now), m->side_files,
                     MDL_SIDE_FILES, now);
}

/* Return: bytes that the model takes when it serves: packed weights, and one frame in work. */
static size_t needs(const struct dmn_load *l)
{
    return krn_net_need_bytes(l->net) + l->model->arena_bytes;
}

/* Refused, rather than that all models here are killed for memory. What other boards can serve is
 * asleep where it is too large. */
static int check_memory(struct dmn_load *l)
{
    uint64_t needs = l->model->weight_bytes + l->model->arena_bytes, left = dmn_memory_free();

    if (needs <= left || needs < SMALL_BYTES || (l->memory_max && needs > l->memory_max)) {
        return 0;
    }
    snprintf(l->error, sizeof(l->error),
             "it needs %llu MiB of memory, and %llu MiB are free for models here",
             (unsigned long long)(needs >> 20), (unsigned long long)(left >> 20));
    return -ENOMEM;
}

/* Takes preprocessing as it was given; else keeps how the sidecar says it, for other boards. */
static int take_preprocess(struct dmn_load *l)
{
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar side = {.preprocess = NULL};
    int r = mdl_pool_new(64u << 20, &pool);

    if (r == 0 && l->preprocess) {
        return mdl_sidecar_preprocess(l->preprocess, pool, l->error, &l->model->preproc);
    }
    r = r < 0 ? r : mdl_sidecar_read(l->path, pool, l->error, &side);
    if (r == 0 && side.preprocess && !(l->preprocess = strdup(side.preprocess))) {
        r = -ENOMEM;
    }
    return r;
}

/* The steps of a load; each ends early if it is called off. */
static int load(struct dmn_load *l)
{
    struct mdl_load_options options = {.name = l->name,
                                       .weight_bytes_max = l->weight_bytes_max,
                                       .arena_bytes_max = l->arena_bytes_max,
                                       .threads = l->threads,
                                       .shapes = l->shapes,
                                       .weights_dir = l->choose.folder,
                                       .const_eval = krn_const_eval};
    int error;

    mdl_progress("reading the model", 0, 0);
    l->stamp = dmn_stamp_read(l->path, l->calibration); /* first: a later change is noticed */
    error = dmn_load_file(l, &options);

    if (!error) {
        l->stamp.data = dmn_stamp_data(l->model, false);
        error = take_preprocess(l);
        error = error ? error : dmn_load_check(l->model, l->error);
        error = error ? error : check_memory(l);
        error = error ? error : dmn_output_check(l->model, l->path, l->error);
    }
    krn_pack_threads(l->threads);
    dmn_choose_classes(&l->choose);
    if (!error) {
        error = l->kernels[0]
                    ? krn_net_new_preferred(l->model, l->kernels, l->choose.pack, l->error, &l->net)
                    : dmn_choose_net(&l->choose, l->model, l->name, l->error, &l->net);
    }
    krn_pack_threads(0);
    return error;
}

int dmn_load_run(struct dmn_load *l)
{
    const _Atomic bool *before = mdl_stop_by(&l->choose.stop);
    struct mdl_progress *elsewhere = mdl_progress_by(&l->progress);
    uint64_t start = base_now_ns();
    int error = load(l);

    error = !error && mdl_stopped() ? -ECANCELED : error;
    l->asleep = !error && l->memory_max && needs(l) > l->memory_max;
    if (error) {
        l->net = krn_net_free(l->net);
        l->model = mdl_free(l->model);
        if (!l->error[0] || error == -ECANCELED) {
            snprintf(l->error, sizeof(l->error), "%s",
                     error == -ECANCELED ? "the load was called off" : strerror(-error));
        }
    }
    l->took_ns = base_now_ns() - start;
    (void)mdl_stop_by(before);
    (void)mdl_progress_by(elsewhere);
    return error;
}

struct dmn_load *dmn_load_free(struct dmn_load *l)
{
    if (l) {
        krn_net_free(l->net);
        mdl_free(l->model);
        if (l->planning) {
            l->planner->forget(l->planning);
        }
        json_decref(l->kept);
        dmn_choose_deinit(&l->choose);
        free(l->first);
        free(l->path);
        free(l->plan);
        free(l->kernels);
        free(l->calibration);
        free(l->shapes);
        free(l->preprocess);
        mdl_calibration_free(l->ranges);
        free(l);
    }
    return NULL;
}
