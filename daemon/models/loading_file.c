/* SPDX-License-Identifier: Apache-2.0 */
/* A model's file as a load reads it: whole or a segment of it, and on integers if there is a
 * calibration. That is a file that the configuration names, or calibration-NAME.v2.json in the
 * state folder, which "pipectl quantize" writes. */

#include "base/leaves/leaves.h"
#include "daemon/models/models.h"
#include "model/segment/segment.h"
#include "model/segment/segment_name.h"

/* Of a whole model that is loaded for a segment of it: its weights are mapped, not read, and no
 * frame has its arena. */
#define WHOLE_BYTES_MAX ((size_t)base_min((uint64_t)1 << 40, (uint64_t)SIZE_MAX / 8))

enum { NO_LEAVES = 1 };

/* ---- whole, or a segment ---- */

/* Reads the leaf list beside the file, if there is one. Return: 0; NO_LEAVES; -errno. */
static int read_leaves(struct dmn_load *l, struct mdl_leaves *ret)
{
    int r = mdl_leaves_file_read(l->path, ret);

    if (r < 0 && r != -ENOENT) {
        snprintf(l->error, sizeof(l->error), "%.400s" MDL_LEAVES_ENDING ": %s", l->path,
                 r == -EBADMSG ? "not a leaf list" : strerror(-r));
    }
    return r == -ENOENT ? NO_LEAVES : r;
}

static bool is_complete(const struct mdl_leaves *leaves)
{
    for (size_t i = 0; i < leaves->count; i++) {
        if (!leaves->present[i]) {
            return false;
        }
    }
    return true;
}

static int load_segment(struct dmn_load *l, const struct mdl_segment_name *name,
                        const struct mdl_load_options *options)
{
    struct mdl_segment_limits limits = {options->weight_bytes_max, options->arena_bytes_max};
    struct mdl_load_options of_whole = *options;
    struct mdl_model *whole = NULL;
    int r;

    of_whole.weight_bytes_max = of_whole.arena_bytes_max = WHOLE_BYTES_MAX;
    r = mdl_load(l->path, &of_whole, l->error, &whole);
    r = r < 0 ? r
              : mdl_segment(whole, name->first_unit, name->last_unit, &limits, l->error, &l->model);
    mdl_free(whole);
    return r;
}

static int load(struct dmn_load *l, const struct mdl_load_options *options)
{
    struct mdl_load_options with = *options;
    struct mdl_leaves leaves = {0};
    struct mdl_segment_name name;
    int r = read_leaves(l, &leaves);

    if (r < 0) {
        return r;
    }
    with.leaves = r == 0 ? &leaves : NULL;
    if (!mdl_segment_name_parse(l->name, &name)) {
        snprintf(l->error, sizeof(l->error), "not a model name (" MDL_SEGMENT_NAME_RULE ")");
        r = -EINVAL;
    } else if (name.is_segment) {
        with.name = name.model;
        r = load_segment(l, &name, &with);
    } else if (with.leaves && !is_complete(&leaves)) {
        snprintf(l->error, sizeof(l->error),
                 "%.300s lacks parts; only segments whose parts are there can be served", l->path);
        r = -EBADMSG;
    } else {
        r = mdl_load(l->path, &with, l->error, &l->model);
    }
    mdl_leaves_deinit(&leaves);
    return r;
}

/* Calls mdl_load() for l->path, and cuts out the segment that l->name means. The limits hold for
 * the segment alone, since the weights of other units are only mapped. A file with a leaf list
 * beside it (base/leaves/leaves.h) may lack leaves that the segment does not need. */
static int load_by(struct dmn_load *l, struct mdl_load_options *options)
{
    int r;

    options->calibration = l->ranges;
    r = load(l, options);

    /* whichever of its files was opened first */
    if (r == -EACCES && access(l->path, R_OK) < 0 && errno == EACCES) {
        snprintf(l->error, sizeof(l->error),
                 "%.400s: Permission denied; the service sees no /home, and only what its user may "
                 "read: put the model into /var/lib/piped/models, or pipectl models load sends it",
                 l->path);
    }
    return r;
}

/* ---- by which calibration ---- */

/* Reads what an earlier "pipectl quantize" kept. Return: 0; -ENOENT: nothing that can be used, of
 * which the log says why; -errno, with l->error. */
static int read_kept(struct dmn_load *l)
{
    struct mdl_segment_name name; /* a segment is quantised as the whole model was */
    char path[DMN_STATE_PATH_MAX];
    json_t *root = NULL;
    int r;

    if (!mdl_segment_name_parse(l->name, &name) ||
        !dmn_state_file_path(DMN_STATE_RANGES, l->choose.folder, "", name.model, path) ||
        dmn_state_file_read(DMN_STATE_RANGES, path, NULL, &root) != 0) {
        return -ENOENT;
    }
    r = mdl_calibration_from_json(root, path, l->error, &l->ranges);
    json_decref(root);
    return r;
}

int dmn_load_file(struct dmn_load *l, struct mdl_load_options *options)
{
    int r;

    if (l->ranges || l->as_is) {
        return load_by(l, options);
    }
    if (l->calibration[0]) {
        r = mdl_calibration_read(l->calibration, l->error, &l->ranges);
        if (r < 0) {
            l->bad_calibration = true;
            return r;
        }
        r = load_by(l, options);
        l->bad_calibration = r < 0 && l->ranges->hash[0];
        return r;
    }
    r = read_kept(l);
    if (r == 0 && load_by(l, options) == 0) {
        return 0;
    }
    if (r != -ENOENT) {
        snprintf(l->choose.note, sizeof(l->choose.note),
                 "not quantised as before: %.900s; see pipectl quantize", l->error);
        l->ranges = mdl_calibration_free(l->ranges);
    }
    l->error[0] = '\0';
    return load_by(l, options);
}

void dmn_quantised_keep(const struct dmn_models *models, const char *name,
                        const struct mdl_calibration *c, struct dmn_state_kept kept)
{
    char path[DMN_STATE_PATH_MAX];

    if (!dmn_state_file_path(DMN_STATE_RANGES, models->state_dir, "", name, path)) {
        kept.fn(kept.ctx, c ? -ENOENT : 0);
    } else if (c) {
        dmn_state_put(models->disk, DMN_STATE_RANGES, path, mdl_calibration_json(c), kept);
    } else {
        dmn_state_drop(models->disk, DMN_STATE_RANGES, path, kept);
    }
}
