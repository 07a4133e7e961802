/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's hash as a tree of two levels, so that its leaves can be computed side by side: by
 * several threads, and by each in the lanes of vectors. The file is read through small buffers, so
 * that its pages never count as the process's memory.
 */
#include <stdatomic.h>
#include <string.h>

#include "base.h"
#include "model/hash_lanes.h"
#include "model/common/share.h"

#define PIECE_BYTES ((size_t)32 << 10) /* of each leaf, read at a time */

struct tree {
    int fd;
    size_t bytes, leaves;
    unsigned char (*hashes)[MDL_HASH_BYTES]; /* [leaves], owned */
    _Atomic size_t next;                     /* group of leaves; writers: workers */
    _Atomic int error;                       /* writers: workers, the last one stands */
};

static int read_piece(const struct tree *t, unsigned char *to, size_t at, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = pread(t->fd, to, bytes, (off_t)at);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -EBADMSG;
        }
        to += n;
        at += (size_t)n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int hash_leaf(const struct tree *t, size_t leaf, unsigned char *buffer)
{
    size_t at = leaf * MDL_HASH_LEAF_BYTES, end = base_min(t->bytes, at + MDL_HASH_LEAF_BYTES);
    struct mdl_hash h;
    int r = 0;

    mdl_hash_init_node(&h, leaf, 0, leaf + 1 == t->leaves);
    for (size_t n; r == 0 && at < end; at += n) {
        n = base_min(end - at, MDL_HASH_LANES * PIECE_BYTES);
        r = read_piece(t, buffer, at, n);
        if (r == 0) {
            mdl_hash_update(&h, buffer, n);
        }
    }
    mdl_hash_end(&h, t->hashes[leaf]);
    return r;
}

#ifdef MDL_HAVE_AVX2
static bool has_lanes(void)
{
    return __builtin_cpu_supports("avx2");
}

/* Four whole leaves, none of them the last. */
static int hash_lanes(const struct tree *t, size_t first, unsigned char *buffer)
{
    struct mdl_hash_lanes s = {.total = 0};
    int r = 0;

    for (size_t lane = 0; lane < MDL_HASH_LANES; lane++) {
        struct mdl_hash h;

        mdl_hash_init_node(&h, first + lane, 0, false);
        for (size_t i = 0; i < 8; i++) {
            s.h[i][lane] = h.h[i];
        }
    }
    for (size_t at = 0; r == 0 && at < MDL_HASH_LEAF_BYTES; at += PIECE_BYTES) {
        for (size_t lane = 0; r == 0 && lane < MDL_HASH_LANES; lane++) {
            r = read_piece(t, buffer + lane * PIECE_BYTES,
                           (first + lane) * MDL_HASH_LEAF_BYTES + at, PIECE_BYTES);
        }
        mdl_hash_lanes_avx2(&s, buffer, PIECE_BYTES, PIECE_BYTES / MDL_HASH_BLOCK_BYTES,
                            at + PIECE_BYTES == MDL_HASH_LEAF_BYTES);
    }
    for (size_t lane = 0; lane < MDL_HASH_LANES; lane++) {
        for (size_t i = 0; i < MDL_HASH_BYTES / 8; i++) {
            memcpy(&t->hashes[first + lane][8 * i], &s.h[i][lane], 8);
        }
    }
    return r;
}
#else
static bool has_lanes(void)
{
    return false;
}

static int hash_lanes(const struct tree *t, size_t first, unsigned char *buffer)
{
    (void)t, (void)first, (void)buffer;
    return -ENOTSUP;
}
#endif

static int hash_group(const struct tree *t, size_t group, unsigned char *buffer)
{
    size_t first = group * MDL_HASH_LANES, end = base_min(t->leaves, first + MDL_HASH_LANES);
    int r = 0;

    if (first + MDL_HASH_LANES < t->leaves && has_lanes()) {
        return hash_lanes(t, first, buffer);
    }
    for (size_t leaf = first; r == 0 && leaf < end; leaf++) {
        r = hash_leaf(t, leaf, buffer);
    }
    return r;
}

static void work(void *arg)
{
    struct tree *t = arg;
    unsigned char *buffer = malloc(MDL_HASH_LANES * PIECE_BYTES);
    int r = buffer ? 0 : -ENOMEM;

    while (r == 0) {
        size_t group = atomic_fetch_add_explicit(&t->next, 1, memory_order_relaxed);

        if (group * MDL_HASH_LANES >= t->leaves) {
            break;
        }
        r = hash_group(t, group, buffer);
    }
    if (r < 0) {
        atomic_store_explicit(&t->error, r, memory_order_relaxed);
    }
    free(buffer);
}

int mdl_hash_file(int fd, size_t bytes, size_t threads, char ret_hex[65])
{
    struct tree t = {
        .fd = fd,
        .bytes = bytes,
        .leaves = base_max((bytes + MDL_HASH_LEAF_BYTES - 1) / MDL_HASH_LEAF_BYTES, (size_t)1)};
    struct mdl_hash root;
    size_t groups;
    int r;

    t.hashes = calloc(t.leaves, sizeof(*t.hashes));
    if (!t.hashes) {
        return -ENOMEM;
    }
    groups = (t.leaves + MDL_HASH_LANES - 1) / MDL_HASH_LANES;
    mdl_share(base_min(threads, groups), work, &t);
    r = atomic_load_explicit(&t.error, memory_order_relaxed);
    if (r == 0) {
        mdl_hash_init_node(&root, 0, 1, true);
        mdl_hash_update(&root, t.hashes, t.leaves * sizeof(*t.hashes));
        mdl_hash_hex(&root, ret_hex);
    }
    free(t.hashes);
    return r;
}
