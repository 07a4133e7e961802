/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration for a command line: files, then the models it names. */
#include <stdio.h>

#include "base.h"
#include "daemon/daemon.h"

static int add_models(const struct dmn_args *args, char *ret_error, struct dmn_config *c)
{
    for (size_t i = 0; i < args->model_count; i++) {
        base_autofree char *path = NULL;
        char name[4200];
        const char *file = dmn_args_model_name(args->models[i], name, sizeof(name));
        int error;

        path = realpath(file, NULL); /* a reload must not depend on the working folder */
        error = dmn_config_add_model(c, name, path ? path : file, ret_error);
        if (error < 0) {
            return error;
        }
    }
    if (c->model_count == 0) { /* serve something out of the box */
        const char *path = access(PIPED_DEFAULT_MODEL, R_OK) == 0 ? PIPED_DEFAULT_MODEL
                                                                  : PIPED_DEFAULT_MODEL_BUILD;

        return dmn_config_add_model(c, "digits", path, ret_error);
    }
    return 0;
}

int dmn_config_from_args(const struct dmn_args *args, char *ret_error, struct dmn_config **ret)
{
    struct dmn_config *c = NULL;
    int error = dmn_config_load(args->config ? args->config : PIPED_CONFIG_FILE,
                                args->config != NULL, ret_error, &c);

    if (error < 0) {
        return error;
    }
    snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "out of memory");
    error = add_models(args, ret_error, c);
    if (!error && c->model_count > (size_t)dmn_config_int(c, DMN_KEY_LIMIT_MODELS)) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "models: more than limits.models, %lld",
                 (long long)dmn_config_int(c, DMN_KEY_LIMIT_MODELS));
        error = -EINVAL;
    }
    if (error < 0) {
        dmn_config_free(c);
        return error;
    }
    *ret = c;
    return 0;
}
