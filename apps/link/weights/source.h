/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/weights/source.h - the file of a route, of which other boards get leaves */
#pragma once

#include "apps/link/weights/jobs.h"
#include "apps/link/weights/store.h"
#include "apps/link/wire/messages.h"

enum fetch_source_state { FETCH_HASHING, FETCH_READY, FETCH_REFUSED };

struct fetch_source {
    struct job job; /* first */
    struct fetch_source *next;
    uint8_t identity[LNK_HASH_BYTES];
    char *path; /* owned */
    enum fetch_source_state state;
    unsigned readers;          /* jobs that read from it */
    uint64_t refused_ns;       /* of the caller */
    char why[STORE_WHY_BYTES]; /* REFUSED */
    unsigned times;            /* that it was hashed */
    /* the thread's while it hashes; then only read */
    int fd;
    struct mdl_leaves leaves;
    size_t hashed;
    enum fetch_source_state outcome;
};

struct fetch_reading {
    struct job job; /* first; .done is the caller's, which counts source->readers down */
    struct fetch_source *source;
    size_t leaf, bytes;
    void *data; /* owned by the caller, once done */
    bool ok;    /* data are the leaf's bytes; else the file has changed */
};

/** fetch_source_new() - Return: NULL: no memory. */
struct fetch_source *fetch_source_new(const uint8_t identity[LNK_HASH_BYTES], const char *path);
/** fetch_source_free() - when it is not HASHING and has no readers. Return: NULL. */
struct fetch_source *fetch_source_free(struct fetch_source *s);
/** fetch_source_hash() - opens the file, and hashes it in slices: HASHING until done. */
void fetch_source_hash(struct fetch_source *s, struct jobs *jobs);
/** fetch_source_read() - of a READY source: reads a leaf, and checks it. */
void fetch_source_read(struct fetch_reading *r, struct jobs *jobs);
