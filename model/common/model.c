/* SPDX-License-Identifier: Apache-2.0 */
/* A model's memory, maps, notes and reasons. */
#include <assert.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/shown_text.h"
#include "model/common/private.h"

struct mdl_model *mdl_model_new(void)
{
    struct mdl_model *m = calloc(1, sizeof(*m));

    if (!m) {
        return NULL;
    }
    m->private = calloc(1, sizeof(*m->private));
    return m->private && mdl_pool_new(0, &m->private->pool) == 0 ? m : mdl_free(m);
}

static bool own(struct mdl_pool *pool, const void **array, size_t bytes)
{
    *array = mdl_pool_memdup(pool, *array, bytes);
    return *array;
}

bool mdl_op_own(struct mdl_op *op, struct mdl_pool *pool)
{
    size_t floats = op->channels * sizeof(float), ints = op->channels * sizeof(int32_t);
    struct mdl_quant *q = op->quant ? mdl_pool_memdup(pool, op->quant, sizeof(*q)) : NULL;
    bool all = (q || !op->quant) && (!op->scale || own(pool, (const void **)&op->scale, floats)) &&
               (!op->shift || own(pool, (const void **)&op->shift, floats)) &&
               (!q || !q->w_zero || own(pool, (const void **)&q->w_zero, ints)) &&
               (!q || !q->bias || own(pool, (const void **)&q->bias, ints));

    op->quant = q;
    op->name = mdl_pool_strndup(pool, op->name, shown_fit(op->name, MDL_NAME_MAX - 1));
    return all && op->name;
}

void mdl_add_note(struct mdl_model *m, const char *kind, const char *text)
{
    assert(m->private->note_count < MDL_NOTES_MAX);
    m->private->notes[m->private->note_count++] = (struct mdl_note){kind, text};
}

/* Ends one use; the last one unmaps. */
static void map_leave(struct mdl_map *map)
{
    if (map && atomic_fetch_sub_explicit(&map->users, 1, memory_order_acq_rel) == 1) {
        munmap((void *)(uintptr_t)map->data, map->bytes);
        for (size_t i = 0; i < map->more_count; i++) {
            munmap((void *)(uintptr_t)map->more[i].data, map->more[i].bytes);
        }
        free(map->more);
        free(map);
    }
}

struct mdl_model *mdl_free(struct mdl_model *m)
{
    if (!m) {
        return NULL;
    }
    if (m->private) {
        map_leave(m->private->map);
        mdl_pool_free(m->private->pool);
        free(m->private);
    }
    free(m);
    return NULL;
}

void mdl_reasons_deinit(struct mdl_reasons *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->list[i].op_type);
        free(r->list[i].domain);
        free(r->list[i].node);
        free(r->list[i].text);
    }
    free(r->list);
    *r = (struct mdl_reasons){0};
}

struct mdl_map *mdl_map_new(const void *data, size_t bytes, bool is_file)
{
    struct mdl_map *map = malloc(sizeof(*map));

    if (map) {
        *map = (struct mdl_map){.users = 1, .data = data, .bytes = bytes, .is_file = is_file};
    }
    return map;
}

struct mdl_map *mdl_map_use(struct mdl_map *map)
{
    if (map) {
        atomic_fetch_add_explicit(&map->users, 1, memory_order_relaxed);
    }
    return map;
}

bool mdl_map_has(const struct mdl_map *map, const void *data)
{
    const char *d = data, *first = map ? map->data : NULL;
    bool has = map && d >= first && d < first + map->bytes;

    for (size_t i = 0; map && !has && i < map->more_count; i++) {
        first = map->more[i].data;
        has = d >= first && d < first + map->more[i].bytes;
    }
    return has;
}

void mdl_map_advise(const struct mdl_map *map, int advice)
{
    if (!map || !map->is_file) {
        return; /* dropped anonymous pages would read as zeros */
    }
    (void)madvise((void *)(uintptr_t)map->data, map->bytes, advice);
    for (size_t i = 0; i < map->more_count; i++) {
        (void)madvise((void *)(uintptr_t)map->more[i].data, map->more[i].bytes, advice);
    }
}

size_t mdl_integer_ops(const struct mdl_model *m)
{
    size_t count = 0;

    for (size_t i = 0; i < m->op_count; i++) {
        count += m->ops[i].quant != NULL;
    }
    return count;
}

int mdl_fail(char ret_error[MDL_ERROR_MAX], int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_error, MDL_ERROR_MAX, format, args);
    va_end(args);
    shown_clean(ret_error, "");
    return code;
}
