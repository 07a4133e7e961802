/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"

/* Writes "FILE:LINE" of a model, or its origin if that is not a file. */
static void where(const struct dmn_config *c, const struct dmn_config_model *m, char *ret,
                  size_t bytes)
{
    if (m->origin > DMN_ORIGIN_ARGUMENT) {
        snprintf(ret, bytes, "%.400s:%zu", c->files[m->origin], m->line);
    } else {
        snprintf(ret, bytes, "%s", c->files[m->origin]);
    }
}

static bool check_model(const struct dmn_daemon *d, const struct dmn_config_model *m)
{
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    struct dmn_load_source source = dmn_config_source(m);
    struct dmn_load *l = dmn_load_from(&source, &d->models);
    char at[512], error[MDL_ERROR_MAX] = "out of memory";
    const char *key = "path";
    bool good = false;

    if (l && plan) {
        l->choose.ms = 0;
        good = dmn_load_run(l) == 0;
        snprintf(error, sizeof(error), "%s", l->error);
        key = !good && l->bad_calibration ? "calibration" : key;
        if (good && m->plan[0]) {
            key = "plan";
            good = pl_plan_parse(m->plan, &d->machine.eps, l->model->unit_count, error,
                                 sizeof(error), plan) == 0;
        }
    }
    where(d->config, m, at, sizeof(at));
    if (good) {
        printf("model %s: %zu units, %.1f MB of weights, %.1f MB per frame\n", m->name,
               l->model->unit_count, (double)l->model->weight_bytes / 1e6,
               (double)l->model->arena_bytes / 1e6);
    } else {
        const char *value = strcmp(key, "path") == 0   ? m->path
                            : strcmp(key, "plan") == 0 ? m->plan
                                                       : m->calibration;
        bool named = strncmp(error, value, strlen(value)) == 0; /* the loader names the file */

        fprintf(stderr, "piped: %s: models[%s].%s: %s%s%s\n", at, m->name, key, named ? "" : value,
                named ? "" : ": ", error);
    }
    dmn_load_free(l);
    return good;
}

int dmn_check_config(const struct dmn_args *args)
{
    base_autofree struct dmn_daemon *d = calloc(1, sizeof(*d));
    char error[DMN_CONFIG_ERROR_MAX] = "out of memory";
    bool good = true;

    if (!d) {
        fprintf(stderr, "piped: %s\n", error);
        return DMN_EXIT_FAILED;
    }
    d->args = args;
    dmn_wire(d);
    if (dmn_config_from_args(args, error, &d->config) < 0 ||
        dmn_machine_read(&d->machine, error) < 0) {
        fprintf(stderr, "piped: %s\n", error);
        good = false;
    }
    for (size_t i = 0; good && i < d->config->model_count; i++) {
        good &= check_model(d, &d->config->models[i]);
    }
    dmn_config_free(d->config);
    dmn_machine_deinit(&d->machine);
    return good ? DMN_EXIT_OK : DMN_EXIT_CONFIG;
}
