/* SPDX-License-Identifier: Apache-2.0 */
/** apps/pipectl/models/fetch.h - pipectl models fetch: gets files of known models */
#pragma once

#include <stdbool.h>

struct ctl;

struct ctl_fetch {
    const char *name;      /* NULL: list the catalogue */
    const char *folder;    /* where the files go */
    const char *catalogue; /* a further file with rows, or NULL */
    bool force;            /* replace files that are there */
};

/** ctl_models_fetch() - Return: an exit code. All files of a model are there, or none of them. */
int ctl_models_fetch(const struct ctl *ctl, const struct ctl_fetch *f);
