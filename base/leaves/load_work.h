/* SPDX-License-Identifier: Apache-2.0 */
/**
 * base/leaves/load_work.h - the work of a load: called off, how far it is, shared among threads
 *
 * A load is many steps in several rooms: reading, hashing, folding, packing, measuring. Who begins
 * the work says, for its own thread, which flag calls it off and where its progress is kept;
 * mdl_share() hands the flag on, and a step that goes on in another thread hands on the progress.
 */
#pragma once

#include <stdatomic.h>

#include "base/base.h"

/** mdl_stop_by() - what calls off the work of this thread: true: end early; borrowed until the next
 * call; NULL: nothing does. Return: what did until now. */
const _Atomic bool *mdl_stop_by(const _Atomic bool *stop);
/** mdl_stopped() - Return: the work of this thread was called off: it is no longer wanted, and ends
 * with -ECANCELED. Each step asks between two pieces of its work. Never blocks. */
bool mdl_stopped(void);

/* What a step does, and how much of it is done, where it can be counted. Writer: one thread at a
 * time, by mdl_progress(). Readers: any; what and how much may be of two steps. */
struct mdl_progress {
    const char *_Atomic what;  /* static: "measuring primitives"; NULL: it has not begun */
    _Atomic uint32_t done, of; /* of 0: not counted */
};

/** mdl_progress_by() - where this thread keeps its progress; borrowed until the next call; NULL:
 * nowhere. Return: where it did until now. */
struct mdl_progress *mdl_progress_by(struct mdl_progress *p);
/** mdl_progress() - this thread is at @done of @of. @what: static. Never blocks. */
void mdl_progress(const char *what, size_t done, size_t of);

/**
 * mdl_share() - runs fn(arg) on this thread and, at the same time, on up to @threads - 1 others;
 * returns when all have returned. If threads cannot be created, fewer run: so fn must take its work
 * from a shared counter. The other threads block every signal, and what calls off the work of this
 * one (mdl_stop_by()) calls off theirs.
 */
void mdl_share(size_t threads, void (*fn)(void *arg), void *arg);
