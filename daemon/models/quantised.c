/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/quantised.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/config/state_file.h"
#include "daemon/config/state_lock.h"
#include "daemon/models/loading_private.h"
#include "model/segment/segment_name.h"

static int load_by(struct dmn_load *l, struct mdl_load_options *options)
{
    options->calibration = l->ranges;
    return dmn_segment_load(l, options);
}

int dmn_quantised_load(struct dmn_load *l, struct mdl_load_options *options)
{
    struct mdl_segment_name name; /* a segment is quantised as the whole model was */
    char path[DMN_STATE_PATH_MAX];
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
    r = mdl_segment_name_parse(l->name, &name) &&
                dmn_state_file_path(DMN_STATE_RANGES, l->choose.folder, "", name.model, path) &&
                access(path, F_OK) == 0
            ? mdl_calibration_read(path, l->error, &l->ranges)
            : -ENOENT;
    if (r == 0 && load_by(l, options) == 0) {
        return 0;
    }
    if (r != -ENOENT) {
        snprintf(l->choose.note, sizeof(l->choose.note),
                 "not quantised as before: %.180s; see pipectl quantize", l->error);
        l->ranges = mdl_calibration_free(l->ranges);
    }
    l->error[0] = '\0';
    return load_by(l, options);
}

int dmn_quantised_keep(const char *state_dir, const char *name, const struct mdl_calibration *c)
{
    char path[DMN_STATE_PATH_MAX];

    if (!dmn_state_file_path(DMN_STATE_RANGES, state_dir, "", name, path)) {
        return -ENOENT;
    }
    if (dmn_state_taken()) {
        return -EBUSY;
    }
    if (c) {
        return dmn_state_file_write(DMN_STATE_RANGES, path, mdl_calibration_json(c));
    }
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}
