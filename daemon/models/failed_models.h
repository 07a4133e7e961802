/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/failed_models.h - configured models that do not serve, and why
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct dmn_failed_model {
    STAILQ_ENTRY(dmn_failed_model) linked;
    const char *name, *path, *error; /* in texts */
    char texts[];
};
STAILQ_HEAD(dmn_failed_models, dmn_failed_model);

/** dmn_failed_add() - adds a model, behind the others. Texts are copied. Return: 0, -ENOMEM. */
int dmn_failed_add(struct dmn_failed_models *f, const char *name, const char *path,
                   const char *error);
/** dmn_failed_find() - Return: the model of this name; NULL: none. */
struct dmn_failed_model *dmn_failed_find(const struct dmn_failed_models *f, const char *name);
/** dmn_failed_remove() - forgets the model of this name, if there is one. */
void dmn_failed_remove(struct dmn_failed_models *f, const char *name);
/** dmn_failed_clear() - forgets all. */
void dmn_failed_clear(struct dmn_failed_models *f);
