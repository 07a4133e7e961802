/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/private.h - what a model owns besides its plain data; only model/ includes it
 *
 * One rule makes mdl_free() correct on half-built models too: every array, string and copied
 * constant that hangs off a struct mdl_model (storages, tensors, ops, units, ios, names, labels,
 * scale, shift, constants) is allocated from private->pool and never freed alone. Only the model
 * itself, the pool and the mapping are freed.
 */
#pragma once

#include "model/model.h"
#include "model/common/pool.h"

struct mdl_private {
    struct mdl_pool *pool; /* owned */
    const void *map;       /* owned once mdl_load() put it here (munmap); NULL without a file */
    size_t map_bytes;
    bool map_is_file; /* clean pages of a file: may be dropped and come back by themselves */
};

/**
 * mdl_model_new() - an empty model with its private part and pool
 * @pool_cap: cap of the pool, 0: its default
 * @ret_model: owned by the caller, mdl_free(). Return: 0 or -ENOMEM.
 */
int mdl_model_new(size_t pool_cap, struct mdl_model **ret_model);

static inline void mdl_model_freep(struct mdl_model **m)
{
    *m = mdl_free(*m);
}
#define mdl_automodel base_cleanup(mdl_model_freep)

/** mdl_fail() - formats @ret_error (control characters and broken UTF-8 become '?', so that names
 * out of a hostile file cannot play with a terminal or break JSON) and returns @code. */
int mdl_fail(char ret_error[MDL_ERROR_MAX], int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** mdl_utf8_length() - bytes of the UTF-8 character at @s (@n > 0 bytes are there), 0 if broken. */
size_t mdl_utf8_length(const unsigned char *s, size_t n);
