/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/merge.h - checks one file's object against the table of keys and merges it into the
 * configuration
 *
 * For files.c. A failed merge leaves the configuration half changed; the caller discards it.
 *
 * Threads: any.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "daemon/config/config.h"

/* A file that is being merged. */
struct dmn_config_reader {
    struct dmn_config *config; /* borrowed, like all pointers here */
    const char *path, *text;   /* text: without comments, for line numbers */
    size_t origin;             /* of its values: index into dmn_config.files */
    char *error;               /* DMN_CONFIG_ERROR_MAX; receives the reason */
};

/** dmn_config_fail() - writes file, line, @key ("" for the whole file) and the reason to r->error.
 * Return: -EINVAL. */
__attribute__((format(printf, 3, 4))) int dmn_config_fail(const struct dmn_config_reader *r,
                                                          const char *key, const char *format, ...);
/**
 * dmn_config_merge() - merges one object
 *
 * @object: borrowed     @prefix: of its keys: "", or "limits." for a nested object
 *
 * Return: 0; -EINVAL, with r->error set; -ENOMEM.
 */
int dmn_config_merge(const struct dmn_config_reader *r, json_t *object, const char *prefix);

/* text.c */
/** dmn_config_strip() - overwrites comments outside strings with blanks; line numbers stay. @text:
 * [bytes], may hold anything. */
void dmn_config_strip(char *text, size_t bytes);
/**
 * dmn_config_line() - the line (from 1) where the value of a path such as "limits.streams" or
 * "models[2].path" starts
 *
 * @text: valid JSON, NUL-terminated, comments stripped
 *
 * Return: the line; of the deepest part found if the whole path does not exist.
 */
size_t dmn_config_line(const char *text, const char *path);
