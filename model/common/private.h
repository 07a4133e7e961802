/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/common/private.h - what a model owns besides its plain data, and the places of its values;
 * for model/ only
 *
 * One rule makes mdl_free() correct on half-built models, too: every array, string and copied
 * constant of a struct mdl_model (storages, tensors, ops, units, ios, names, labels, scale, shift,
 * constants) is allocated from private->pool and never freed alone. Only the model itself, the pool
 * and the mapping are freed.
 */
#pragma once

#include "model/common/pool.h"
#include "model/model.h"

struct mdl_map_range {
    const void *data; /* NULL: an empty file */
    size_t bytes;
};

/* The mapping of a model's file, or of generated weights. The model and its segments share it. */
struct mdl_map {
    _Atomic size_t users; /* writers: whoever makes or frees a model */
    const void *data;     /* munmap() by the last user */
    size_t bytes;
    bool is_file;               /* maps a file: its clean pages may be dropped and are read again */
    struct mdl_map_range *more; /* owned; the data files of a model's file, all of them files */
    size_t more_count;
};

#define MDL_NOTES_MAX 4u

struct mdl_private {
    struct mdl_pool *pool; /* owned */
    struct mdl_map *map;   /* one use of it is owned; NULL without a file */
    /* of a whole model that was loaded, for its leaves (model/segment/needed_leaves.c): */
    size_t file_bytes;
    const bool *spare;   /* [storage_count]: a weight whose bytes in the file no load reads;
                          * NULL: none */
    const bool *present; /* which leaves of the file are there; NULL: all */
    size_t copies_in;    /* mdl_segment_copies() */
    struct mdl_note notes[MDL_NOTES_MAX]; /* texts in the pool: mdl_note() */
    size_t note_count;
    const char **declared; /* in the pool: mdl_declared() of each output; NULL: of a segment */
};

/** mdl_add_note() - @kind: constant; @text: in the pool; there are fewer than MDL_NOTES_MAX. */
void mdl_add_note(struct mdl_model *m, const char *kind, const char *text);
/** mdl_map_new() - owns the mapping @data from now on. Return: with one user; NULL: no memory. */
struct mdl_map *mdl_map_new(const void *data, size_t bytes, bool is_file);
/** mdl_map_use() - adds a user; mdl_free() ends its use. @map: may be NULL. Return: @map. */
struct mdl_map *mdl_map_use(struct mdl_map *map);
/** mdl_map_has() - Return: whether @data points into @map, which may be NULL. */
bool mdl_map_has(const struct mdl_map *map, const void *data);
/** mdl_map_advise() - madvise(2) for all of @map that maps files; @map may be NULL. */
void mdl_map_advise(const struct mdl_map *map, int advice);

/** mdl_model_new() - makes an empty model with its private part and pool. Return: owned by the
 * caller, mdl_free(); NULL: no memory. */
struct mdl_model *mdl_model_new(void);

/** mdl_op_own() - copies what @op points to, its name cut to fit, into @pool. Return: false without
 * memory. */
bool mdl_op_own(struct mdl_op *op, struct mdl_pool *pool);

static inline void mdl_model_freep(struct mdl_model **m)
{
    *m = mdl_free(*m);
}
#define mdl_automodel base_cleanup(mdl_model_freep)

/** mdl_fail() - formats @ret_error (control characters and broken UTF-8 become '?', so that names
 * in a hostile file cannot control a terminal or break JSON) and returns @code. */
int mdl_fail(char ret_error[MDL_ERROR_MAX], int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- arena.c: places values in a frame's arena. Two values share bytes only if their lifetimes,
 * in ops, do not overlap. Largest first, each into the tightest gap between those that live at the
 * same time. ---- */

#define MDL_ARENA_ALIGN 64u

/**
 * mdl_arena_place() - sets the offset of each of @storages, by bytes and lifetime
 * @bytes_max: limit of the arena. @ret_bytes: its size
 *
 * Offsets are multiples of MDL_ARENA_ALIGN. The result depends on the order of @storages only where
 * sizes are equal. Return: 0, -E2BIG past the limit, -ENOMEM.
 */
int mdl_arena_place(struct mdl_storage *const *storages, size_t count, size_t bytes_max,
                    size_t *ret_bytes);
