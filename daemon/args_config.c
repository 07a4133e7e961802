/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration for a command line: files, then the models it names. */

#include "base/base.h"
#include "base/path_below.h"
#include "daemon/config/saved.h"
#include "daemon/daemon.h"

#define STAND_IN "digits"

static int add_models(const struct dmn_args *args, char *ret_error, struct dmn_config *c)
{
    for (size_t i = 0; i < args->model_count; i++) {
        const char *shapes = dmn_args_shapes(args->models[i]);
        size_t bytes = shapes ? (size_t)(shapes - 1 - args->models[i]) : strlen(args->models[i]);
        base_autofree char *text = strndup(args->models[i], bytes), *path = NULL;
        char name[4200];
        const char *file = text ? dmn_args_model_name(text, name, sizeof(name)) : NULL;
        int error;

        path = file ? absolute_path(file) : NULL; /* a reload must not depend on the folder */
        error = file ? dmn_config_add_model(c, name, path ? path : file, shapes ? shapes : "",
                                            ret_error)
                     : -ENOMEM;
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

/* While no model is configured, the one that comes with piped is served, after those that were
 * saved: they add to what is served, and take nothing away. */
static int add_stand_in(char *ret_error, struct dmn_config *c)
{
    const char *path =
        base_is_missing(PIPED_DEFAULT_MODEL) ? PIPED_DEFAULT_MODEL_BUILD : PIPED_DEFAULT_MODEL;
    int error = 0;

    if (c->model_count < (size_t)dmn_config_int(c, DMN_KEY_LIMIT_MODELS) &&
        !dmn_config_find_model(c, STAND_IN)) {
        error = dmn_config_add_model(c, STAND_IN, path, "", ret_error);
        if (!error) {
            struct dmn_config_model *m = dmn_config_find_model(c, STAND_IN);

            m->stand_in = true;
            m->origin = DMN_ORIGIN_DEFAULT;
        }
    }
    return error;
}

static int add_others(const char *state_dir, char *ret_error, struct dmn_config *c)
{
    bool configured = c->model_count > 0;
    int error = dmn_saved_merge(c, state_dir);

    return error || configured ? error : add_stand_in(ret_error, c);
}

static int too_many(const struct dmn_config *c, char *ret_error)
{
    const struct dmn_config_value *limit = &c->values[DMN_KEY_LIMIT_MODELS];
    char at[DMN_CONFIG_WHERE_MAX];
    size_t saved = 0;

    for (size_t i = 0; i < c->model_count; i++) {
        saved += c->models[i].saved;
    }
    dmn_config_where(c, limit->origin, limit->line, at);
    snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
             "%s: limits.models: %lld, but there are %zu models, %zu of them saved by "
             "pipectl models load",
             at, (long long)limit->number, c->model_count, saved);
    return -EINVAL;
}

int dmn_config_from_args(const struct dmn_args *args, const char *state_dir, char *ret_error,
                         struct dmn_config **ret)
{
    struct dmn_config *c = NULL;
    int error = dmn_config_load(args->config ? args->config : PIPED_CONFIG_FILE,
                                args->config != NULL, ret_error, &c);

    if (error < 0) {
        return error;
    }
    snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "out of memory");
    error = add_models(args, ret_error, c);
    error = error ? error : add_others(state_dir, ret_error, c);
    if (!error && c->model_count > (size_t)dmn_config_int(c, DMN_KEY_LIMIT_MODELS)) {
        error = too_many(c, ret_error);
    }
    if (error < 0) {
        dmn_config_free(c);
        return error;
    }
    *ret = c;
    return 0;
}
