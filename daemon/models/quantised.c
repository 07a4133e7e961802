/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/quantised.h"

#include "base/base.h"
#include "daemon/models/loading_private.h"
#include "daemon/models/models.h"
#include "model/segment/segment_name.h"

static int load_by(struct dmn_load *l, struct mdl_load_options *options)
{
    options->calibration = l->ranges;
    return dmn_segment_load(l, options);
}

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

int dmn_quantised_load(struct dmn_load *l, struct mdl_load_options *options)
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
