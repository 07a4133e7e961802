/* SPDX-License-Identifier: Apache-2.0 */
/* Places values in a frame's arena. */
#include "model/common/private.h"

struct place {
    size_t storage, bytes;
};

static int by_size(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? 1 : -1;
    }
    return x->storage < y->storage ? -1 : x->storage > y->storage;
}

/* Finds the tightest gap among placed storages (by offset) that live at the same time. */
static size_t find_gap(struct mdl_storage *const *storages, const size_t *placed, size_t count,
                       const struct mdl_storage *s, size_t bytes)
{
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        const struct mdl_storage *p = storages[placed[i]];

        if (p->last_op < s->first_op || p->first_op > s->last_op) {
            continue;
        }
        if (p->offset > end && p->offset - end >= bytes && p->offset - end < best_gap) {
            best = end;
            best_gap = p->offset - end;
        }
        end = base_max(end, base_align_up(p->offset + p->bytes, MDL_ARENA_ALIGN));
    }
    return best != SIZE_MAX ? best : end;
}

int mdl_arena_place(struct mdl_storage *const *storages, size_t count, size_t bytes_max,
                    size_t *ret_bytes)
{
    base_autofree struct place *todo = calloc(count + 1, sizeof(*todo));
    base_autofree size_t *placed = calloc(count + 1, sizeof(*placed));
    size_t total = 0;

    if (!todo || !placed) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        todo[i] = (struct place){i, base_align_up(storages[i]->bytes, MDL_ARENA_ALIGN)};
    }
    qsort(todo, count, sizeof(*todo), by_size);
    for (size_t i = 0; i < count; i++) {
        struct mdl_storage *s = storages[todo[i].storage];
        size_t k = i, end;

        s->offset = find_gap(storages, placed, i, s, todo[i].bytes);
        if (!base_add(s->offset, todo[i].bytes, &end) || end > bytes_max) {
            return -E2BIG;
        }
        total = base_max(total, end);
        while (k > 0 && storages[placed[k - 1]]->offset > s->offset) {
            placed[k] = placed[k - 1];
            k--;
        }
        placed[k] = todo[i].storage;
    }
    *ret_bytes = total;
    return 0;
}
