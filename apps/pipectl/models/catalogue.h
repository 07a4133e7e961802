/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/models/catalogue.h - the models that pipectl models fetch knows
 *
 * Rows come from the catalogue that is installed, from /etc/piped/models.json.d/NAME.json in the
 * order of their names, and from one more file or folder. A row replaces an earlier one of the same
 * name.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* A file of a row, as the catalogue describes it. Texts are borrowed from the row. */
struct ctl_source {
    const char *url;    /* https://, http:// or file:// */
    const char *sha256; /* 64 hex digits, lower case */
    uint64_t bytes;     /* at least 1 */
};

/** ctl_catalogue() - reads all rows. @more: a further file or folder, or NULL. Return: a list of
 * rows that were checked, each with "from", its file; a new reference; NULL: a file is wrong, as
 * was printed. */
json_t *ctl_catalogue(const char *more);

/** ctl_catalogue_find() - Return: the row, borrowed; NULL: there is none, as was printed. */
const json_t *ctl_catalogue_find(const json_t *rows, const char *name);

/** ctl_source() - the file that @at describes: a row, or its "labels". */
struct ctl_source ctl_source(const json_t *at);
