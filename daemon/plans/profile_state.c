/* SPDX-License-Identifier: Apache-2.0 */
/* What a calibration found: kept, read again, and used. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base.h"
#include "daemon/calibrate_private.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"

#define FORMAT 1
#define FILE_BYTES_MAX (1 << 20)

static bool state_path(const struct dmn_daemon *d, const char *suffix, char *ret, size_t bytes)
{
    int n = snprintf(ret, bytes, "%s/calibration.json%s", d->state_dir ? d->state_dir : "", suffix);

    return d->state_dir && n > 0 && (size_t)n < bytes;
}

static json_t *numbers(const double *v, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_real(v[i]));
    }
    return list;
}

static json_t *kind_json(const struct dmn_daemon *d, size_t e)
{
    const struct tun_predictor *p = &d->calibration->kinds[e].predictor;
    char cpus[512];
    json_t *k;

    dmn_cpu_list_format(d->eps.eps[e].cpus, d->eps.eps[e].cpu_count, cpus, sizeof(cpus));
    k = json_pack("{s:s, s:s, s:b, s:I, s:f, s:f, s:f}", "name", d->eps.eps[e].name, "cpus", cpus,
                  "known", d->calibration->kinds[e].known, "benches",
                  (json_int_t)d->calibration->kinds[e].benches, "error_conv", p->error_conv,
                  "error_fc", p->error_fc, "error_multi", p->error_multi);
    if (p->has_conv) {
        json_object_set_new(k, "conv", numbers(p->conv, base_array_count(p->conv)));
    }
    if (p->has_fc) {
        json_object_set_new(k, "fc", numbers(p->fc, base_array_count(p->fc)));
    }
    if (p->has_alpha) {
        json_object_set_new(k, "alpha", numbers(p->alpha, base_array_count(p->alpha)));
    }
    return k;
}

void dmn_calibration_save(const struct dmn_daemon *d)
{
    char path[4096], temporary[4096];
    json_t *kinds, *state;

    if (!state_path(d, "", path, sizeof(path)) ||
        !state_path(d, ".new", temporary, sizeof(temporary))) {
        return;
    }
    kinds = json_array();
    for (size_t e = 0; e < d->eps.count; e++) {
        json_array_append_new(kinds, kind_json(d, e));
    }
    state = json_pack("{s:i, s:s, s:o}", "format", FORMAT, "piped", PIPED_VERSION, "kinds", kinds);
    if (!state || json_dump_file(state, temporary, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) < 0 ||
        rename(temporary, path) < 0) {
        dmn_log(LOG_WARNING, "the calibration could not be kept in %s: %s", path, strerror(errno));
        unlink(temporary);
    }
    json_decref(state);
}

/* Return: there are exactly @count finite numbers. */
static bool read_numbers(const json_t *list, double *ret, size_t count)
{
    if (json_array_size(list) != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(list, i);

        ret[i] = json_number_value(v);
        if (!json_is_number(v) || !(fabs(ret[i]) < 1e30)) {
            return false;
        }
    }
    return true;
}

static double read_error(const json_t *kind, const char *key)
{
    double v = json_number_value(json_object_get(kind, key));

    return v >= 0 && v < 1e6 ? v : 0;
}

static void read_kind(struct dmn_daemon *d, size_t e, const json_t *kind)
{
    const char *name = json_string_value(json_object_get(kind, "name"));
    const char *saved = json_string_value(json_object_get(kind, "cpus"));
    json_int_t benches = json_integer_value(json_object_get(kind, "benches"));
    struct tun_predictor p = {0};
    char cpus[512];

    dmn_cpu_list_format(d->eps.eps[e].cpus, d->eps.eps[e].cpu_count, cpus, sizeof(cpus));
    if (!name || !saved || strcmp(name, d->eps.eps[e].name) != 0 || strcmp(saved, cpus) != 0 ||
        !json_is_true(json_object_get(kind, "known"))) {
        return;
    }
    p.has_conv = read_numbers(json_object_get(kind, "conv"), p.conv, base_array_count(p.conv));
    p.has_fc = read_numbers(json_object_get(kind, "fc"), p.fc, base_array_count(p.fc));
    p.has_alpha = read_numbers(json_object_get(kind, "alpha"), p.alpha, base_array_count(p.alpha));
    p.error_conv = read_error(kind, "error_conv");
    p.error_fc = read_error(kind, "error_fc");
    p.error_multi = read_error(kind, "error_multi");
    if (p.has_conv || p.has_fc) {
        d->calibration->kinds[e].known = true;
        d->calibration->kinds[e].benches = benches > 0 ? (size_t)benches : 0;
        d->calibration->kinds[e].predictor = p;
    }
}

static void read_state(struct dmn_daemon *d)
{
    char path[4096];
    json_t *state, *kinds, *kind;
    const char *version;
    struct stat st;
    size_t i;

    if (!state_path(d, "", path, sizeof(path)) || stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
        st.st_size > FILE_BYTES_MAX) {
        return;
    }
    state = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    version = json_string_value(json_object_get(state, "piped"));
    kinds = json_object_get(state, "kinds");
    if (json_integer_value(json_object_get(state, "format")) == FORMAT && version &&
        strcmp(version, PIPED_VERSION) == 0 && json_array_size(kinds) == d->eps.count) {
        json_array_foreach(kinds, i, kind)
        {
            read_kind(d, i, kind);
        }
    } else {
        dmn_log(LOG_INFO, "the kept calibration in %s does not fit any more", path);
    }
    json_decref(state);
}

int dmn_calibration_init(struct dmn_daemon *d)
{
    d->calibration = calloc(1, sizeof(*d->calibration));
    if (!d->calibration) {
        return -ENOMEM;
    }
    read_state(d);
    return 0;
}

void dmn_calibration_deinit(struct dmn_daemon *d)
{
    dmn_calibrate_abort(d, "the daemon is going down");
    free(base_take(d->calibration));
}

size_t dmn_calibrate_predict(const struct dmn_daemon *d, struct tun_problem *p)
{
    size_t cells = 0;

    for (size_t e = 0; d->calibration && e < d->eps.count; e++) {
        for (size_t k = 0; k < p->kind_count && d->calibration->kinds[e].known; k++) {
            if (strcmp(p->kinds[k].name, d->eps.eps[e].name) == 0) {
                cells += tun_predict_costs(p, k, &d->calibration->kinds[e].predictor);
            }
        }
    }
    return cells;
}
