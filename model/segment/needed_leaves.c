/* SPDX-License-Identifier: Apache-2.0 */
/* Which pieces of the model's file a segment needs. */
#include "base/leaves/leaves.h"
#include "model/segment/cut.h"

/* Weights that the segment does not need, as ranges of the file. */
struct hole {
    size_t begin, end;
};

static int by_begin(const void *a, const void *b)
{
    const struct hole *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static size_t find_holes(const struct mdl_model *m, size_t first_op, size_t last_op,
                         struct hole *ret)
{
    const struct mdl_map *map = m->private->map;
    size_t count = 0;

    for (size_t i = 0; i < m->storage_count; i++) {
        const struct mdl_storage *s = &m->storages[i];
        bool read = false;

        if (!m->private->spare[i]) {
            continue;
        }
        for (size_t k = first_op; k <= last_op && !read; k++) {
            size_t w = m->ops[k].in[1];

            read = w != MDL_NONE && m->tensors[w].storage == i;
        }
        if (!read) {
            size_t begin = (size_t)((const char *)s->data - (const char *)map->data);

            ret[count++] = (struct hole){begin, begin + s->bytes};
        }
    }
    qsort(ret, count, sizeof(*ret), by_begin);
    return count;
}

int mdl_segment_leaves(const struct mdl_model *whole, size_t first, size_t last, bool *ret_needed,
                       size_t count)
{
    size_t bytes = whole->private->file_bytes, holes;
    base_autofree struct hole *hole = calloc(whole->storage_count + 1, sizeof(*hole));

    if (!hole) {
        return -ENOMEM;
    }
    if (whole->segment || first > last || last >= whole->unit_count || bytes == 0 ||
        count != (bytes - 1) / MDL_HASH_LEAF_BYTES + 1) {
        return -EINVAL;
    }
    holes = whole->private->spare
                ? find_holes(whole, whole->units[first].first_op, whole->units[last].last_op, hole)
                : 0;
    for (size_t i = 0, k = 0; i < count; i++) {
        size_t at = i * MDL_HASH_LEAF_BYTES, end = base_min(bytes, at + MDL_HASH_LEAF_BYTES);

        while (k < holes && hole[k].end <= at) {
            k++;
        }
        /* a leaf may lie in several weights, one behind the other without a byte between */
        for (size_t n = k; n < holes && hole[n].begin <= at && at < end; n++) {
            at = base_max(at, hole[n].end);
        }
        ret_needed[i] = at < end;
    }
    return 0;
}

int mdl_segment_check_leaves(const struct mdl_model *whole, size_t first, size_t last, char *error)
{
    const bool *present = whole->private->present;
    size_t count = (whole->private->file_bytes - 1) / MDL_HASH_LEAF_BYTES + 1;
    base_autofree bool *needed = present ? calloc(count, sizeof(*needed)) : NULL;
    int r;

    if (!present) {
        return 0;
    }
    r = needed ? mdl_segment_leaves(whole, first, last, needed, count) : -ENOMEM;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (needed[i] && !present[i]) {
            return mdl_fail(error, -EBADMSG,
                            "units %zu-%zu of %s need leaf %zu of the file, which is not there",
                            first, last, whole->name, i);
        }
    }
    return r;
}
