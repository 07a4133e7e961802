/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's hash as a tree of two levels, so that several threads can share it. The file is read
 * through small buffers, so that its pages never count as the process's memory.
 */
#include <stdatomic.h>

#include "base/base.h"
#include "base/leaves/leaves.h"
#include "base/leaves/load_work.h"
#include "base/whole_file.h"

#define PIECE_BYTES ((size_t)128 << 10) /* read at a time */

struct tree {
    int fd;
    const struct mdl_leaves *of;
    unsigned char (*hashes)[MDL_HASH_BYTES]; /* [of->count], borrowed: results */
    const bool *wanted;                      /* [of->count], or NULL: all */
    _Atomic size_t next;                     /* leaf; writers: workers */
    _Atomic int error;                       /* writers: workers, the last one stands */
};

static int read_piece(int fd, unsigned char *to, size_t at, size_t bytes)
{
    ssize_t n = whole_file_part(fd, at, to, bytes);

    return n < 0 ? (int)n : (size_t)n < bytes ? -EBADMSG : 0;
}

int mdl_leaf_read(int fd, const struct mdl_leaves *l, size_t leaf, void *ret)
{
    return read_piece(fd, ret, leaf * MDL_HASH_LEAF_BYTES, mdl_leaf_bytes(l, leaf));
}

static int hash_leaf(const struct tree *t, size_t leaf, unsigned char *buffer)
{
    size_t at = leaf * MDL_HASH_LEAF_BYTES, end = at + mdl_leaf_bytes(t->of, leaf);
    struct mdl_hash h;
    int r = 0;

    mdl_hash_init(&h);
    for (size_t n; r == 0 && at < end; at += n) {
        n = base_min(end - at, PIECE_BYTES);
        r = read_piece(t->fd, buffer, at, n);
        if (r == 0) {
            mdl_hash_update(&h, buffer, n);
        }
    }
    mdl_hash_end(&h, t->hashes[leaf]);
    return r;
}

static void work(void *arg)
{
    struct tree *t = arg;
    unsigned char *buffer = malloc(PIECE_BYTES);
    int r = buffer ? 0 : -ENOMEM;

    while (r == 0) {
        size_t leaf = atomic_fetch_add_explicit(&t->next, 1, memory_order_relaxed);

        if (leaf >= t->of->count) {
            break;
        }
        r = mdl_stopped()                   ? -ECANCELED
            : !t->wanted || t->wanted[leaf] ? hash_leaf(t, leaf, buffer)
                                            : 0;
    }
    if (r < 0) {
        atomic_store_explicit(&t->error, r, memory_order_relaxed);
    }
    free(buffer);
}

static int hash_leaves(struct tree *t, size_t threads)
{
    mdl_share(base_min(threads, t->of->count), work, t);
    return atomic_load_explicit(&t->error, memory_order_relaxed);
}

int mdl_leaves_of_file(int fd, size_t bytes, size_t threads, struct mdl_leaves *ret)
{
    struct mdl_leaves l = {0};
    struct tree t = {.fd = fd, .of = &l};
    int r = mdl_leaves_new(bytes, &l);

    if (r < 0) {
        return r;
    }
    t.hashes = l.hashes;
    r = hash_leaves(&t, threads);
    if (r < 0) {
        mdl_leaves_deinit(&l);
        return r;
    }
    for (size_t i = 0; i < l.count; i++) {
        l.present[i] = true;
    }
    *ret = l;
    return 0;
}

int mdl_leaves_check_file(int fd, const struct mdl_leaves *l, size_t threads, size_t *ret_leaf)
{
    struct tree t = {.fd = fd, .of = l, .wanted = l->present};
    int r;

    t.hashes = calloc(l->count, sizeof(*t.hashes));
    r = t.hashes ? hash_leaves(&t, threads) : -ENOMEM;
    for (size_t i = 0; r == 0 && i < l->count; i++) {
        if (l->present[i] && memcmp(t.hashes[i], l->hashes[i], MDL_HASH_BYTES) != 0) {
            *ret_leaf = i;
            r = MDL_LEAVES_E_BAD;
        }
    }
    free(t.hashes);
    return r;
}

int mdl_hash_file(int fd, size_t bytes, size_t threads, char ret_hex[65])
{
    struct mdl_leaves l;
    int r = mdl_leaves_of_file(fd, bytes, threads, &l);

    if (r == 0) {
        mdl_leaves_hash(&l, ret_hex);
        mdl_leaves_deinit(&l);
    }
    return r;
}
