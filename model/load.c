/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a model from a path.
 *
 * Memory: the file is hashed through a small buffer (page cache, not our RSS) and mapped; the walk
 * and the compiler touch only the pages that hold structure and small constants. After mdl_load(),
 * only the weights of heavy operators stay in the mapping; they are read when packed and then
 * dropped. Every other constant is copied here. So a file that is truncated while the daemon serves
 * does no harm (SIGBUS) unless weights are packed again. One that is truncated during the load
 * does, as with every program that maps files: replace models by rename(2).
 */
#include <inttypes.h>
#include <sys/mman.h>

#include "base/leaves/leaves.h"
#include "model/common/file.h"
#include "model/common/weight_files.h"
#include "model/compile/compile.h"
#include "model/declared.h"
#include "model/guess.h"
#include "model/load_private.h"
#include "model/netdesc/netdesc.h"
#include "model/onnx/onnx.h"
#include "model/open_shapes.h"
#include "model/quant/calibration.h"
#include "model/sidecar.h"
#include "model/sidecar_output.h"

#define WEIGHT_BYTES_DEFAULT ((size_t)4 << 30)
#define STRUCTURE_BYTES_MAX ((size_t)256 << 20) /* of a file beyond its weights */
#define DATA_HASH_MARK "piped: a model and its data files"
#define NETDESC_BYTES_MAX ((size_t)8 << 20)

struct source {
    int fd;
    size_t bytes;
    struct stat before;
    void *map; /* owned until the model takes it */
    bool is_netdesc;
    const char *weights_dir; /* borrowed */
    bool no_weights;
    struct mdl_data_files data;
};

static void source_deinit(struct source *s)
{
    mdl_data_files_deinit(&s->data);
    if (s->map) {
        munmap(s->map, s->bytes);
    }
    base_close_fd(&s->fd);
}

static void graph_freep(struct mdl_graph **g)
{
    *g = mdl_graph_free(*g);
}

/* Puts the file's name in front of a reason. */
static int name_file(char error[MDL_ERROR_MAX], int code, const char *path)
{
    char why[MDL_ERROR_MAX];

    memcpy(why, error, sizeof(why));
    why[MDL_ERROR_MAX - 1] = '\0';
    return mdl_fail(error, code, "%.150s: %.850s", path, why[0] ? why : strerror(-code));
}

static int source_open(struct source *s, const char *path, size_t weight_bytes_max, char *error)
{
    size_t bytes_max;
    char first;
    int r;

    s->is_netdesc = base_ends_with(path, ".json");
    if (!base_add(weight_bytes_max, STRUCTURE_BYTES_MAX, &bytes_max)) {
        bytes_max = SIZE_MAX;
    }
    s->data.model_path = path;
    s->data.bytes_max = bytes_max;
    r = mdl_file_open(AT_FDCWD, path, s->is_netdesc ? NETDESC_BYTES_MAX : bytes_max, error, &s->fd,
                      &s->bytes);
    if (r < 0) {
        return r;
    }
    if (s->bytes == 0) {
        return mdl_fail(error, -EBADMSG, "%.200s: the file is empty", path);
    }
    /* whatever its name: no ONNX file begins so */
    s->is_netdesc |=
        s->bytes <= NETDESC_BYTES_MAX && pread(s->fd, &first, 1, 0) == 1 && first == '{';
    if (fstat(s->fd, &s->before) < 0) {
        r = -errno;
        return mdl_fail(error, r, "%.200s: %s", path, strerror(-r));
    }
    return 0;
}

static int read_graph(struct source *s, char *error, struct mdl_graph **ret)
{
    base_autofree char *text = NULL;
    const char *what;
    int r;

    if (s->is_netdesc) {
        r = mdl_file_text(s->fd, "network description", s->bytes, error, &text);
        return r < 0 ? r
                     : mdl_netdesc_read(text, s->bytes, s->weights_dir, s->no_weights, error, ret);
    }
    s->map = mmap(NULL, s->bytes, PROT_READ, MAP_PRIVATE, s->fd, 0);
    if (s->map == MAP_FAILED) {
        s->map = NULL;
        return -errno;
    }
    /* The walk jumps from tensor to tensor: readahead would fill RAM with weights. */
    (void)madvise(s->map, s->bytes, MADV_RANDOM);
    r = mdl_onnx_read(s->map, s->bytes, &s->data, error, ret);
    what = r < 0 ? mdl_looks_like(s->map, s->bytes) : NULL;
    return what ? mdl_fail(error, -EBADMSG,
                           "this is %s; it is not an ONNX model, which is protobuf", what)
                : r;
}

/* Settles open dimensions: by the caller's shapes, then by the sidecar's, then by its size, which
 * must equal a size that the model fixes. */
static int settle(struct mdl_graph *g, const char *shapes, struct mdl_sidecar *side, char *error,
                  uint64_t *ret_digest)
{
    struct mdl_settling s;
    struct mdl_shapes given = {0};
    int r = mdl_settle_begin(&s, g, error);

    r = r < 0 ? r : mdl_shapes_parse(shapes ? shapes : "", g->pool, error, &given);
    r = r < 0 ? r : mdl_settle(&s, &given, MDL_SHAPES_CALLER);
    r = r < 0 ? r : mdl_settle(&s, &side->shapes, MDL_SHAPES_SIDECAR);
    if (r == 0 && !side->layout_given) {
        side->preproc.nhwc = mdl_guess_nhwc(g);
    }
    if (r == 0 && side->height) {
        r = mdl_settle_size(&s, side->height, side->width, side->preproc.nhwc);
    }
    return r < 0 ? r : mdl_settle_end(&s, ret_digest);
}

static bool is_heavy(enum mdl_op_kind kind)
{
    return kind == MDL_OP_CONV || kind == MDL_OP_CONV_TRANSPOSE || kind == MDL_OP_GEMM ||
           kind == MDL_OP_MATMUL || kind == MDL_OP_RECURRENT;
}

/* Copies every constant that is not (only) the weight operand of heavy operators out of the
 * mapping, once per storage. */
static int copy_light_constants(struct mdl_model *m)
{
    base_autofree bool *wanted = calloc(m->storage_count ? m->storage_count : 1, sizeof(*wanted));
    const struct mdl_private *p = m->private;

    if (!wanted) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->op_count; i++) {
        const struct mdl_op *op = &m->ops[i];

        for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
            if (op->in[k] != MDL_NONE && !(is_heavy(op->kind) && k < 2)) {
                wanted[m->tensors[op->in[k]].storage] = true;
            }
        }
        if (op->residual != MDL_RESIDUAL_NONE && op->residual_in != MDL_NONE) {
            wanted[m->tensors[op->residual_in].storage] = true;
        }
    }
    for (size_t i = 0; i < m->storage_count; i++) {
        struct mdl_storage *s = &m->storages[i];

        if (s->home == MDL_HOME_CONST && wanted[i] && mdl_map_has(p->map, s->data)) {
            s->data = mdl_pool_memdup(p->pool, s->data, s->bytes);
            if (!s->data) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

static int copy_labels(struct mdl_model *m, const struct mdl_sidecar *side)
{
    struct mdl_pool *pool = m->private->pool;

    m->preproc = side->preproc;
    for (size_t i = 0; i < MDL_SIDE_FILES; i++) {
        m->side_files[i] = side->files[i];
        if (side->files[i].path) {
            m->side_files[i].path =
                mdl_pool_printf(pool, "%s/%s", side->folder, side->files[i].path);
            if (!m->side_files[i].path) {
                return -ENOMEM;
            }
        }
    }
    if (!side->labels) {
        return 0;
    }
    m->labels = mdl_pool_alloc(pool, side->label_count, sizeof(*m->labels));
    for (size_t i = 0; m->labels && i < side->label_count; i++) {
        m->labels[i] = mdl_pool_strdup(pool, side->labels[i]);
        if (!m->labels[i]) {
            return -ENOMEM;
        }
    }
    m->label_count = m->labels ? side->label_count : 0;
    return m->labels ? 0 : -ENOMEM;
}

/* Says so if pictures become the model's input in a way that nobody stated. The generated weights
 * of a network description have no way that is right. */
static int note_doubt(struct mdl_model *m, const struct mdl_graph *g, bool is_netdesc)
{
    struct mdl_guess guess;

    if (m->preproc.given || is_netdesc) {
        return 0;
    }
    mdl_guess(g, &guess);
    if (!guess.doubtful) {
        return 0;
    }
    m->doubt = mdl_pool_strdup(m->private->pool,
                               "its input is a picture in floats, and no sidecar says how pixels "
                               "become them; they stay 0 to 255. pipectl models inspect FILE "
                               "--write-sidecar makes a draft");
    return m->doubt ? 0 : -ENOMEM;
}

/* Moves the mapping from the reader of the file or description to the model. */
static int move_map(struct source *s, struct mdl_graph *g, struct mdl_model *m)
{
    if (s->map) {
        m->private->map = mdl_map_new(s->map, s->bytes, true);
    } else if (g->owns_map) {
        m->private->map = mdl_map_new(g->file_map, g->file_bytes, g->map_is_file);
    } else {
        return 0;
    }
    if (!m->private->map) {
        return -ENOMEM;
    }
    s->map = NULL;
    g->owns_map = false;
    return s->data.count ? mdl_data_files_move(&s->data, m) : 0;
}

/* Return: 0 if the file has not changed since it was opened. */
static int check_unchanged(const struct source *s, char *error)
{
    struct stat now;

    if (fstat(s->fd, &now) < 0) {
        return -errno;
    }
    if (now.st_size != s->before.st_size || now.st_mtim.tv_sec != s->before.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != s->before.st_mtim.tv_nsec) {
        return mdl_fail(error, -EBADMSG, "the file changed while it was read");
    }
    return 0;
}

/* Mixes the data files, ordered by name, into the hash of the model's file. Each is the one that
 * was mapped, before it is hashed and after. */
static int hash_data(const struct mdl_data_files *d, size_t threads, char *error, char hash[65])
{
    struct mdl_hash all;
    int r = 0;

    mdl_hash_init(&all);
    mdl_hash_update(&all, DATA_HASH_MARK, sizeof(DATA_HASH_MARK));
    mdl_hash_update(&all, hash, 64);
    for (size_t i = 0; r == 0 && i < d->count; i++) {
        const struct mdl_data_file_in *f = &d->list[i];
        base_autoclose int fd = -1, again = -1;
        char of_file[65] = "";

        r = mdl_data_file_again(d, i, error, &fd);
        r = r < 0 ? r : mdl_hash_file(fd, f->map.bytes, threads, of_file);
        r = r < 0 ? r : mdl_data_file_again(d, i, error, &again);
        mdl_hash_update(&all, f->name, strlen(f->name) + 1);
        mdl_hash_update(&all, of_file, 64);
    }
    if (r == 0) {
        mdl_hash_hex(&all, hash);
    }
    return r;
}

/* The file's hash. If only some leaves are there: those are as the list says, and the hash is the
 * list's. */
static int find_hash(const struct source *s, const struct mdl_load_options *o, char *error,
                     struct mdl_model *m)
{
    const struct mdl_leaves *l = o->leaves;
    size_t bad = 0;
    bool *present;
    int r;

    m->private->file_bytes = s->bytes;
    if (!l) {
        r = mdl_hash_file(s->fd, s->bytes, o->threads, m->hash);
        return r < 0 || s->data.count == 0 ? r : hash_data(&s->data, o->threads, error, m->hash);
    }
    if (s->data.count > 0) {
        return mdl_fail(error, -EOPNOTSUPP,
                        "the model has weights in other files, and only parts of it are here; "
                        "save it as one file");
    }
    if (l->file_bytes != s->bytes) {
        return mdl_fail(error, -EBADMSG, "the file has %zu bytes, its leaf list has %zu", s->bytes,
                        l->file_bytes);
    }
    r = mdl_leaves_check_file(s->fd, l, o->threads, &bad);
    if (r == MDL_LEAVES_E_BAD) {
        return mdl_fail(error, -EBADMSG, "leaf %zu of the file is not what its leaf list says",
                        bad);
    }
    present = mdl_pool_memdup(m->private->pool, l->present, l->count * sizeof(*l->present));
    m->private->present = present;
    mdl_leaves_hash(l, m->hash);
    return r < 0 ? r : present ? 0 : -ENOMEM;
}

/* Gives a quantised model a hash of its own: costs learned for the f32 model do not hold for it. */
static void mix_calibration(const struct mdl_calibration *c, char hash[65])
{
    struct mdl_hash s;

    mdl_hash_init(&s);
    mdl_hash_update(&s, hash, 64);
    mdl_hash_update(&s, &c->symmetric, sizeof(c->symmetric));
    mdl_hash_update(&s, &c->equalised, sizeof(c->equalised));
    for (size_t i = 0; i < c->range_count; i++) {
        mdl_hash_update(&s, c->ranges[i].name, strlen(c->ranges[i].name) + 1);
        mdl_hash_update(&s, &c->ranges[i].low, sizeof(float));
        mdl_hash_update(&s, &c->ranges[i].high, sizeof(float));
    }
    for (size_t i = 0; i < c->channels_count; i++) {
        const struct mdl_channels *of = &c->channels[i];

        mdl_hash_update(&s, of->name, strlen(of->name) + 1);
        mdl_hash_update(&s, of->low, of->count * sizeof(float));
        mdl_hash_update(&s, of->high, of->count * sizeof(float));
        mdl_hash_update(&s, of->mean, of->count * sizeof(float));
        mdl_hash_update(&s, of->power, of->count * sizeof(float));
    }
    for (size_t i = 0; i < c->keep_count; i++) {
        mdl_hash_update(&s, c->keep[i], strlen(c->keep[i]) + 1);
    }
    mdl_hash_hex(&s, hash);
}

static int build(struct source *s, const char *path, const struct mdl_load_options *options,
                 char *error, struct mdl_model **ret)
{
    base_cleanup(graph_freep) struct mdl_graph *g = NULL;
    mdl_automodel struct mdl_model *m = NULL;
    mdl_autopool struct mdl_pool *side_pool = NULL;
    struct mdl_sidecar side;
    uint64_t digest = 0;
    int r = mdl_pool_new(64u << 20, &side_pool);

    r = r < 0 ? r : mdl_sidecar_read(path, side_pool, error, &side);
    r = r < 0 ? r : read_graph(s, error, &g);
    if (r == 0 && options->look) {
        options->look(options->look_arg, g);
    }
    if (r == 0) {
        r = settle(g, options->shapes, &side, error, &digest);
        if (r == -EOPNOTSUPP && options->look) {
            options->look(options->look_arg, g);
        }
        r = r == -EOPNOTSUPP ? mdl_compile_refused(g, options, r, error) : r;
    }
    r = r < 0 ? r : mdl_compile(g, options, error, &m);
    if (r < 0) {
        return r;
    }
    r = move_map(s, g, m);
    m->name = mdl_pool_strdup(m->private->pool, options->name);
    r = r < 0 ? r : m->name ? copy_light_constants(m) : -ENOMEM;
    r = r < 0 ? r : copy_labels(m, &side);
    r = r < 0 ? r : mdl_describe_output(m, g, side.output, error);
    r = r < 0 ? r : note_doubt(m, g, s->is_netdesc);
    r = r < 0 ? r : mdl_note_unlike(m, g);
    r = r < 0 ? r : mdl_note_activation(m, g, side.output);
    r = r < 0 ? r : mdl_note_labels(m, side.output);
    if (r == 0 && !s->is_netdesc && !options->calibration && s->data.count == 0) {
        r = mdl_spare_weights(g, m);
    }
    r = r < 0 ? r : find_hash(s, options, error, m);
    if (r == 0 && options->calibration) {
        if (options->calibration->hash[0] && strcmp(options->calibration->hash, m->hash) != 0) {
            return mdl_fail(error, -EBADMSG,
                            "the calibration is of another model; calibrate this one");
        }
        mix_calibration(options->calibration, m->hash);
    }
    r = r < 0 ? r : check_unchanged(s, error);
    if (r < 0) {
        return r;
    }
    mdl_map_advise(m->private->map, MADV_NORMAL);
    mdl_drop_weights(m);
    snprintf(m->identity, sizeof(m->identity), digest ? "%s@%016" PRIx64 : "%s", m->hash, digest);
    *ret = base_take(m);
    return 0;
}

/* "models/squeezenet.onnx" -> "squeezenet" */
static void default_name(const char *path, char out[MDL_NAME_MAX])
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t n = dot && dot > base ? (size_t)(dot - base) : strlen(base);

    snprintf(out, MDL_NAME_MAX, "%.*s", (int)base_min(n, (size_t)MDL_NAME_MAX - 1), base);
}

int mdl_load(const char *path, const struct mdl_load_options *options,
             char ret_error[MDL_ERROR_MAX], struct mdl_model **ret)
{
    struct mdl_load_options o = options ? *options : (struct mdl_load_options){.name = NULL};
    base_cleanup(source_deinit) struct source s = {.fd = -1,
                                                   .weights_dir = o.weights_dir,
                                                   .no_weights = o.no_weights,
                                                   .data = MDL_DATA_FILES_NULL};
    char name[MDL_NAME_MAX];
    int r;

    ret_error[0] = '\0';
    if (!o.name) {
        default_name(path, name);
        o.name = name;
    }
    o.weight_bytes_max = o.weight_bytes_max ? o.weight_bytes_max : WEIGHT_BYTES_DEFAULT;
    r = source_open(&s, path, o.weight_bytes_max, ret_error);
    if (r < 0) {
        return r;
    }
    r = build(&s, path, &o, ret_error, ret);
    return r < 0 ? name_file(ret_error, r, path) : 0;
}

void mdl_drop_weights(const struct mdl_model *m)
{
    if (m->private) {
        mdl_map_advise(m->private->map, MADV_DONTNEED);
    }
}

void mdl_drop_op_weights(const struct mdl_model *m, size_t op)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const struct mdl_private *p = m->private;

    if (!p || !p->map || !p->map->is_file || op >= m->op_count) {
        return; /* dropped anonymous pages would read as zeros */
    }
    for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
        size_t t = m->ops[op].in[k];
        const struct mdl_storage *s = t != MDL_NONE ? &m->storages[m->tensors[t].storage] : NULL;
        uintptr_t first, last;

        if (!s || s->home != MDL_HOME_CONST || !mdl_map_has(p->map, s->data)) {
            continue;
        }
        /* only pages that belong to this storage alone */
        first = base_align_up((uintptr_t)s->data, page);
        last = ((uintptr_t)s->data + s->bytes) & ~(uintptr_t)(page - 1);
        if (last > first) {
            (void)madvise((void *)first, last - first, MADV_DONTNEED);
        }
    }
}
