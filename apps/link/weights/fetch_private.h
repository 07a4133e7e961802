/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/weights/fetch_private.h - what the files of fetch.h share
 *
 * fetch.c decides what is asked for and who is told; ask.c has what the loop calls besides; disk.c
 * has what runs on the thread; answers.c is the head's side; jobs.c is the thread.
 */
#pragma once

#include <sys/queue.h>

#include "apps/link/weights/fetch.h"
#include "apps/link/weights/store.h"

#define FETCH_WINDOW 6u /* leaves of a file on their way, or not written yet */
#define FETCH_NOBODY SIZE_MAX

struct jobs;
struct fetch_file;

/* The beginning of whatever a job needs; the caller's, and in here until done() is called. */
struct job {
    /* On the thread. Return: true: there is more to do. */
    bool (*run)(struct job *j);
    /* On the loop, by jobs_dispatch() or jobs_free(); it may free @j. */
    void (*done)(struct job *j);
    bool dropped; /* it is jobs_free() that calls done(), which must not add jobs then */
    STAILQ_ENTRY(job) linked; /* of jobs.c */
};

/* One fetch_begin(). */
struct fetch_ask {
    struct fetch_ask *next;
    size_t peer;
    char *leaves; /* owned */
    bool *needed; /* [count of the file], owned; NULL: there is no list yet */
    /* CHECKED: what is present of it was read again, and there is room for the rest */
    enum { FETCH_NEW, FETCH_CHECKS, FETCH_CHECKED } stage;
    void (*done)(void *arg, int status, const char *path_or_why);
    void *arg;
    bool ended; /* done() is due */
    int status;
    char why[STORE_WHY_BYTES];
};

/* What the thread does next with a file: the thread's while the file is busy. */
struct fetch_work {
    struct job job; /* first */
    struct fetch_file *file;
    void (*then)(struct fetch_file *f); /* on the loop */
    int rc;                             /* the first outcome that is not 0 */
    char why[STORE_WHY_BYTES];
    void *list; /* owned: the leaf list as it came */
    size_t list_bytes;
    struct store_leaf put[FETCH_WINDOW]; /* data: owned */
    size_t put_count;
    bool *check; /* [count], owned: to be read again */
    size_t check_at;
    uint64_t room; /* bytes that will come */
};

/* A model's file. It lives while it is fetched or used. */
struct fetch_file {
    struct fetch *fetch;
    struct fetch_file *next;
    uint8_t identity[LNK_HASH_BYTES];
    struct fetch_ask *asks;
    unsigned uses;
    struct store_file *is; /* NULL: not opened yet; the thread's while the file is busy */
    bool busy;
    struct fetch_work work;
    /* of the leaf list, if there is one */
    size_t count;         /* leaves; 0: no list yet */
    bool *have, *checked; /* [count], owned: present; read or written by this process */
    /* on their way */
    size_t list_of; /* the peer that was asked for the list */
    struct {
        size_t leaf, peer;
    } asked[FETCH_WINDOW];
    size_t asked_count;
    uint64_t asked_ns; /* then, or something came since */
    bool came;
    /* arrived, and not given to the thread yet */
    struct store_leaf arrived[FETCH_WINDOW]; /* data: owned */
    size_t arrived_count;
    void *list; /* owned */
    size_t list_bytes;
    unsigned wrong; /* since it was last wanted by nobody */
    size_t got;     /* leaves, since a fetch ended well */
};

struct answers;

struct fetch {
    struct link *link;
    struct jobs *jobs;
    const char *folder;
    uint64_t bytes_max;
    fetch_path *path_of;
    struct store *store; /* NULL: not opened yet; the thread's */
    struct fetch_file *files;
    struct answers *answers;
    uint64_t now_ns; /* of the last turn */
    bool closing;
};

/* jobs.c: a thread for what may wait for a disk or takes long; the loop does neither. Jobs run one
 * at a time, in the order in which they were added. A long one works in slices: after each, it goes
 * behind the others. So what a job touches is the thread's while it is in here, and needs no lock.
 * All functions are the loop's. */
/** jobs_new() - starts the thread. Return: 0, -errno. */
int jobs_new(struct jobs **ret);
/** jobs_free() - waits for the slice that runs, then calls done() for all that are in here. @j may
 * be NULL. Return: NULL. */
struct jobs *jobs_free(struct jobs *j);
/** jobs_fd() - readable when jobs_dispatch() has something to do. */
int jobs_fd(const struct jobs *j);
/** jobs_dispatch() - calls done() of those that are through. */
void jobs_dispatch(struct jobs *j);
/** jobs_add() - @job: in here until its done() is called. */
void jobs_add(struct jobs *j, struct job *job);

/* ask.c */
/** fetch_end() - done() of the ask is due. */
void fetch_end(struct fetch_ask *a, int status, const char *why);
/** fetch_end_all() - the same of all that are not ended. */
void fetch_end_all(struct fetch_file *f, int status, const char *why);
void fetch_free_ask(struct fetch_ask *a);
/** fetch_forget() - what was asked for and is not written yet. */
void fetch_forget(struct fetch_file *f);
/** fetch_read_leaves() - sets the leaves of "0-3,7"; "": all. @ret: [@count]; NULL: only reads.
 * Return: false: not such a text, or not of leaves below @count. */
bool fetch_read_leaves(const char *text, size_t count, bool *ret);

/* disk.c: each makes the file busy, then calls @then on the loop. */
void fetch_disk_open(struct fetch_file *f, void (*then)(struct fetch_file *f));
/* takes f->list */
void fetch_disk_list(struct fetch_file *f, void (*then)(struct fetch_file *f));
/* takes f->arrived */
void fetch_disk_put(struct fetch_file *f, void (*then)(struct fetch_file *f));
/** fetch_disk_check() - @check: [count], owned by the work; @room: bytes that will come. */
void fetch_disk_check(struct fetch_file *f, bool *check, uint64_t room,
                      void (*then)(struct fetch_file *f));
/** fetch_disk_free() - frees a file that is not busy. The thread closes the store's file, unless
 * all is closing. */
void fetch_disk_free(struct fetch_file *f);

/* answers.c */
/** answers_new() - Return: NULL: out of memory. */
struct answers *answers_new(struct fetch *f);
struct answers *answers_free(struct answers *a);
void answers_peer_gone(struct answers *a, size_t peer);
void answers_go(struct answers *a);
