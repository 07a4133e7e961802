/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/quantised.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"

#define CALIBRATION_VERSION 1

static bool kept_path(const char *folder, const char *name, char *ret, size_t bytes)
{
    int n = snprintf(ret, bytes, "%s/calibration-%s.v%d.json", folder ? folder : "", name,
                     CALIBRATION_VERSION);

    return folder && n > 0 && (size_t)n < bytes;
}

static int load_by(struct dmn_load *l, struct mdl_load_options *options)
{
    options->calibration = l->ranges;
    return mdl_load(l->path, options, l->error, &l->model);
}

int dmn_quantised_load(struct dmn_load *l, struct mdl_load_options *options)
{
    char path[4096];
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
    r = kept_path(l->choose.folder, l->name, path, sizeof(path)) && access(path, F_OK) == 0
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

int dmn_quantised_keep(const struct dmn_daemon *d, const char *name,
                       const struct mdl_calibration *c)
{
    char path[4096];

    if (!kept_path(d->state_dir, name, path, sizeof(path))) {
        return -ENOENT;
    }
    if (c) {
        return mdl_calibration_write(c, path);
    }
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}
