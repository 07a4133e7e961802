/* SPDX-License-Identifier: Apache-2.0 */
/**
 * base/leaves/leaves.h - a model's file as leaves of 1 MiB, each of which can be checked by itself
 *
 * A model's hash is the hash of its *leaf list*: the file's size, then the hash of each leaf. It
 * covers every byte of the file, and is the key of learned costs, not a proof of origin. Whoever
 * trusts the hash can check a leaf list that comes from anywhere, and with it every leaf. So a
 * board that serves a segment needs only the leaves with the structure of the file and with its own
 * weights (mdl_segment_leaves()); all others may be holes of a sparse file.
 *
 * A leaf list as data is 8 bytes of size, little-endian, and 32 bytes a leaf. The file
 * MODEL.onnx.leaves beside a model has the same, then a bitmap of the leaves that are there, the
 * lowest bit first.
 *
 * Threads: any; plain functions.
 */
#pragma once

#include <sodium.h>

#include "base/base.h"

/* ---- unkeyed BLAKE2b-256 (RFC 7693) ---- */

#define MDL_HASH_BYTES 32u
#define MDL_HASH_LEAF_BYTES ((size_t)1 << 20)

struct mdl_hash {
    crypto_generichash_state state;
};

void mdl_hash_init(struct mdl_hash *s);
void mdl_hash_update(struct mdl_hash *s, const void *data, size_t bytes);
/** mdl_hash_end() - writes the hash to @ret. */
void mdl_hash_end(struct mdl_hash *s, unsigned char ret[MDL_HASH_BYTES]);
/** mdl_hash_hex() - the same as text. @ret: 64 hex digits and NUL. */
void mdl_hash_hex(struct mdl_hash *s, char ret[65]);

/**
 * mdl_hash_file() - hashes the first @bytes of a file: the hash of the size (8 bytes,
 * little-endian) followed by the hashes of its 1 MiB leaves, in order (Python: hashlib.blake2b with
 * digest_size=32)
 * @threads: threads that share the leaves, the caller's included; 0: 1
 * Blocks on the file; allocates. Return: 0, -errno of a read, -EBADMSG (the file is shorter than
 * @bytes), -ENOMEM, -ECANCELED (mdl_stopped()).
 */
int mdl_hash_file(int fd, size_t bytes, size_t threads, char ret_hex[65]);

/* ---- leaves ---- */

#define MDL_LEAVES_ENDING ".leaves"
#define MDL_LEAVES_MAX ((size_t)1 << 20) /* leaves of one file: 1 TiB */

struct mdl_leaves {
    size_t file_bytes, count;
    unsigned char (*hashes)[MDL_HASH_BYTES]; /* [count], owned */
    bool *present;                           /* [count], owned; which are in the file */
};

/** mdl_leaves_of_file() - hashes a whole file; all leaves are present. @threads: as
 * mdl_hash_file(). Return: 0, -errno of a read, -EBADMSG (shorter than @bytes), -ENOMEM. */
int mdl_leaves_of_file(int fd, size_t bytes, size_t threads, struct mdl_leaves *ret);
/** mdl_leaves_new() - a list of zeros, no leaf present. Return: 0, -ENOMEM. */
int mdl_leaves_new(size_t file_bytes, struct mdl_leaves *ret);
void mdl_leaves_deinit(struct mdl_leaves *l);

/** mdl_leaves_read() - reads a leaf list from untrusted bytes; no leaf is present. Return: 0,
 * -EBADMSG (the size does not fit the number of leaves), -E2BIG, -ENOMEM. */
int mdl_leaves_read(const void *data, size_t bytes, struct mdl_leaves *ret);
/** mdl_leaves_write() - writes the leaf list. @ret: mdl_leaves_bytes(). */
void mdl_leaves_write(const struct mdl_leaves *l, unsigned char *ret);
size_t mdl_leaves_bytes(const struct mdl_leaves *l);
/** mdl_leaves_hash() - the model's hash, as hex. */
void mdl_leaves_hash(const struct mdl_leaves *l, char ret[65]);

/** mdl_leaf_bytes() - Return: the size of leaf @leaf; only the last may be smaller. */
size_t mdl_leaf_bytes(const struct mdl_leaves *l, size_t leaf);
/** mdl_leaf_read() - reads a leaf of a file. @ret: [mdl_leaf_bytes()]. Return: 0; -EBADMSG: it
 * is shorter; -errno. */
int mdl_leaf_read(int fd, const struct mdl_leaves *l, size_t leaf, void *ret);
/** mdl_leaf_ok() - Return: whether @data are the bytes of leaf @leaf. */
bool mdl_leaf_ok(const struct mdl_leaves *l, size_t leaf, const void *data, size_t bytes);
/** mdl_leaves_check_file() - checks the leaves that are present against the list. Return: 0;
 * MDL_LEAVES_E_BAD with *ret_leaf: one differs; -errno of a read, -EBADMSG, -ENOMEM. */
enum { MDL_LEAVES_E_BAD = 1 };
int mdl_leaves_check_file(int fd, const struct mdl_leaves *l, size_t threads, size_t *ret_leaf);

/** mdl_leaves_file_read() - reads @path.leaves. Return: 0; -ENOENT: there is none; -EBADMSG;
 * -errno. mdl_leaves_file_write() - writes it, by rename(2). Return: 0, -errno. */
int mdl_leaves_file_read(const char *path, struct mdl_leaves *ret);
int mdl_leaves_file_write(const char *path, const struct mdl_leaves *l);
