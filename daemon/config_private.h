/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config_private.h - what the files of the configuration share: reading files (config.c),
 * merging what they say (config_merge.c). Only these include it.
 */
#pragma once

#include <jansson.h>

#include "daemon/config/config.h"

/* One file while it is merged. */
struct dmn_config_reader {
    struct dmn_config *config;
    const char *path, *text; /* text: stripped, for line numbers */
    size_t origin;
    char *error;
};

/** dmn_config_fail() - says what is wrong with @key, with file and line. Return: -EINVAL. */
__attribute__((format(printf, 3, 4))) int dmn_config_fail(const struct dmn_config_reader *r,
                                                          const char *key, const char *format, ...);
/** dmn_config_merge() - one object; @prefix: "" or "limits.". Return: 0, -ENOMEM, -EINVAL (said).
 */
int dmn_config_merge(const struct dmn_config_reader *r, json_t *object, const char *prefix);

/** dmn_config_set_string() - @to: freed, then a copy of @value. Return: 0 or -ENOMEM. */
int dmn_config_set_string(char **to, const char *value);
/** dmn_config_model_slot() - the model of that name, made if there is none; NULL: no memory. */
struct dmn_config_model *dmn_config_model_slot(struct dmn_config *c, const char *name);
void dmn_config_eps_free(struct dmn_config *c);
