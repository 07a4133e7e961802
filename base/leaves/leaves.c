/* SPDX-License-Identifier: Apache-2.0 */
#include "base/leaves/leaves.h"

#include "base/whole_file.h"

#define SIZE_BYTES 8u

void mdl_hash_init(struct mdl_hash *s)
{
    /* detects vector instructions, once */
    if (sodium_init() < 0) {
        /* the plain code then runs */
    }
    crypto_generichash_init(&s->state, NULL, 0, MDL_HASH_BYTES);
}

void mdl_hash_update(struct mdl_hash *s, const void *data, size_t bytes)
{
    crypto_generichash_update(&s->state, data, bytes);
}

void mdl_hash_end(struct mdl_hash *s, unsigned char ret[MDL_HASH_BYTES])
{
    crypto_generichash_final(&s->state, ret, MDL_HASH_BYTES);
}

void mdl_hash_hex(struct mdl_hash *s, char ret[65])
{
    unsigned char out[MDL_HASH_BYTES];

    mdl_hash_end(s, out);
    sodium_bin2hex(ret, 65, out, sizeof(out));
}

static size_t count_of(size_t file_bytes)
{
    return file_bytes ? (file_bytes - 1) / MDL_HASH_LEAF_BYTES + 1 : 1;
}

int mdl_leaves_new(size_t file_bytes, struct mdl_leaves *ret)
{
    struct mdl_leaves l = {.file_bytes = file_bytes, .count = count_of(file_bytes)};

    l.hashes = calloc(l.count, sizeof(*l.hashes));
    l.present = calloc(l.count, sizeof(*l.present));
    if (!l.hashes || !l.present) {
        mdl_leaves_deinit(&l);
        return -ENOMEM;
    }
    *ret = l;
    return 0;
}

void mdl_leaves_deinit(struct mdl_leaves *l)
{
    free(l->hashes);
    free(l->present);
    *l = (struct mdl_leaves){0};
}

int mdl_leaves_read(const void *data, size_t bytes, struct mdl_leaves *ret)
{
    const unsigned char *at = data;
    uint64_t size = 0;
    int r;

    if (bytes < SIZE_BYTES + MDL_HASH_BYTES || (bytes - SIZE_BYTES) % MDL_HASH_BYTES != 0) {
        return -EBADMSG;
    }
    for (size_t i = SIZE_BYTES; i-- > 0;) {
        size = size << 8 | at[i];
    }
    if (size > MDL_LEAVES_MAX * MDL_HASH_LEAF_BYTES) {
        return -E2BIG;
    }
    if ((bytes - SIZE_BYTES) / MDL_HASH_BYTES != count_of((size_t)size)) {
        return -EBADMSG;
    }
    r = mdl_leaves_new((size_t)size, ret);
    if (r == 0) {
        memcpy(ret->hashes, at + SIZE_BYTES, bytes - SIZE_BYTES);
    }
    return r;
}

size_t mdl_leaves_bytes(const struct mdl_leaves *l)
{
    return SIZE_BYTES + l->count * MDL_HASH_BYTES;
}

void mdl_leaves_write(const struct mdl_leaves *l, unsigned char *ret)
{
    for (size_t i = 0; i < SIZE_BYTES; i++) {
        ret[i] = (unsigned char)((uint64_t)l->file_bytes >> (8 * i));
    }
    memcpy(ret + SIZE_BYTES, l->hashes, l->count * MDL_HASH_BYTES);
}

void mdl_leaves_hash(const struct mdl_leaves *l, char ret[65])
{
    unsigned char size[SIZE_BYTES];
    struct mdl_hash root;

    for (size_t i = 0; i < sizeof(size); i++) {
        size[i] = (unsigned char)((uint64_t)l->file_bytes >> (8 * i));
    }
    mdl_hash_init(&root);
    mdl_hash_update(&root, size, sizeof(size));
    mdl_hash_update(&root, l->hashes, l->count * sizeof(*l->hashes));
    mdl_hash_hex(&root, ret);
}

size_t mdl_leaf_bytes(const struct mdl_leaves *l, size_t leaf)
{
    size_t at = leaf * MDL_HASH_LEAF_BYTES;

    return at < l->file_bytes ? base_min(l->file_bytes - at, MDL_HASH_LEAF_BYTES) : 0;
}

bool mdl_leaf_ok(const struct mdl_leaves *l, size_t leaf, const void *data, size_t bytes)
{
    unsigned char hash[MDL_HASH_BYTES];
    struct mdl_hash h;

    if (leaf >= l->count || bytes != mdl_leaf_bytes(l, leaf)) {
        return false;
    }
    mdl_hash_init(&h);
    mdl_hash_update(&h, data, bytes);
    mdl_hash_end(&h, hash);
    return memcmp(hash, l->hashes[leaf], sizeof(hash)) == 0;
}

/* ---- MODEL.onnx.leaves ---- */

static char *file_path(const char *path)
{
    char *ret = NULL;

    return asprintf(&ret, "%s" MDL_LEAVES_ENDING, path) < 0 ? NULL : ret;
}

int mdl_leaves_file_read(const char *path, struct mdl_leaves *ret)
{
    base_autofree char *file = file_path(path);
    const struct whole_file f = {.folder = AT_FDCWD,
                                 .path = file,
                                 .bytes_max = SIZE_BYTES + MDL_LEAVES_MAX * (MDL_HASH_BYTES + 1)};
    base_autofree char *data = NULL;
    size_t bytes = 0, list;
    int r = file ? whole_file_read(&f, &data, &bytes) : -ENOMEM;

    if (r) {
        return r < 0 ? r : -EBADMSG;
    }
    /* n leaves: 8 + 32 n + n / 8, rounded up */
    list = bytes < SIZE_BYTES ? 0 : (bytes - SIZE_BYTES) * 8 / (8 * MDL_HASH_BYTES + 1);
    if (bytes != SIZE_BYTES + list * MDL_HASH_BYTES + (list + 7) / 8) {
        return -EBADMSG;
    }
    r = mdl_leaves_read(data, SIZE_BYTES + list * MDL_HASH_BYTES, ret);
    for (size_t i = 0; r == 0 && i < ret->count; i++) {
        unsigned char set = (unsigned char)data[mdl_leaves_bytes(ret) + i / 8];

        ret->present[i] = set >> (i % 8) & 1;
    }
    return r;
}

int mdl_leaves_file_write(const char *path, const struct mdl_leaves *l)
{
    base_autofree char *file = file_path(path);
    struct atomic_file f = {.folder = AT_FDCWD, .path = file, .mode = 0644, .synced = true};
    size_t list = mdl_leaves_bytes(l), bytes = list + (l->count + 7) / 8;
    base_autofree unsigned char *data = calloc(1, bytes);

    if (!file || !data) {
        return -ENOMEM;
    }
    mdl_leaves_write(l, data);
    for (size_t i = 0; i < l->count; i++) {
        data[list + i / 8] |= (unsigned char)(l->present[i] << (i % 8));
    }
    return atomic_file_write(&f, data, bytes);
}
