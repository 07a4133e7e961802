/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config.h - the configuration: files merged in order, every value checked, its origin kept
 *
 * A file is JSON with comments (// and # to the end of the line). Read are FILE, then FILE.d (for
 * piped.json: piped.json.d) with its *.json in lexical order; a later file overrides single values,
 * models are merged by name, "eps" is replaced as a whole. An error names file, line and key. A
 * configuration is plain data, immutable after loading, so a reload can build a second one and
 * throw it away.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/keys.h"

#define DMN_CONFIG_ERROR_MAX 1024u
#define DMN_CONFIG_FILE_MAX (1u << 20)
#define DMN_CONFIG_FILES_MAX 64u
#define DMN_CONFIG_NAME_MAX 64u

struct dmn_config_value {
    int64_t number; /* INT, BOOL, ENUM index */
    char *text;     /* owned; STRING */
    size_t origin;  /* index into files */
    size_t line;
};

struct dmn_config_model {
    char *name, *path, *plan, *kernels,
        *calibration; /* owned; "" where absent, but the first two */
    bool latest;
    size_t origin, line;
};

struct dmn_config_ep {
    char *name, *cpus;   /* owned */
    double speed, watts; /* watts 0: unknown */
};

struct dmn_config {
    struct dmn_config_value values[DMN_KEY_COUNT];
    size_t model_count, ep_count, file_count;
    struct dmn_config_model *models; /* owned */
    struct dmn_config_ep *eps;       /* owned */
    size_t eps_origin, eps_line;
    char *files[DMN_CONFIG_FILES_MAX + 2]; /* owned; 0: "default", 1: "command line" */
};
enum { DMN_ORIGIN_DEFAULT = 0, DMN_ORIGIN_ARGUMENT = 1 };

/**
 * dmn_config_load() - defaults, then the files
 * @path: the main file, or NULL for defaults alone. @required: that it is missing is an error.
 * @ret_error: "FILE:LINE: key: reason", always terminated, DMN_CONFIG_ERROR_MAX.
 * Return: 0, -EINVAL for a bad file, -errno of a system call, -ENOMEM. *ret: owned,
 * dmn_config_free().
 */
int dmn_config_load(const char *path, bool required, char *ret_error, struct dmn_config **ret);
struct dmn_config *dmn_config_free(struct dmn_config *c);

/** dmn_config_add_model() - a model of the command line; replaces one of the same name. Strings are
 * copied. */
int dmn_config_add_model(struct dmn_config *c, const char *name, const char *path, char *ret_error);

static inline int64_t dmn_config_int(const struct dmn_config *c, enum dmn_config_id id)
{
    return c->values[id].number;
}
static inline const char *dmn_config_string(const struct dmn_config *c, enum dmn_config_id id)
{
    return c->values[id].text ? c->values[id].text : "";
}

/** dmn_config_json() - list of {key, value, origin, unit, default, help}, new reference, or NULL.
 */
json_t *dmn_config_json(const struct dmn_config *c);

/** dmn_config_name_ok() - may a model be called so. */
bool dmn_config_name_ok(const char *name);

/* daemon/config_text.c: JSON with comments. */
/**
 * dmn_config_strip() - replaces comments outside of strings by blanks, in place; lines keep their
 * numbers. @bytes may hold anything.
 */
void dmn_config_strip(char *text, size_t bytes);
/**
 * dmn_config_line() - line (from 1) on which the value of a path like "limits.streams" or
 * "models[2].path" starts
 * @text: valid JSON, NUL-terminated, comments stripped. Return: the line, or that of the deepest
 * part found.
 */
size_t dmn_config_line(const char *text, const char *path);
