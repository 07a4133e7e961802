/* SPDX-License-Identifier: Apache-2.0 */
/**
 * base/leaves/how_far.h - how far the work of a load is
 *
 * Each step says what it does, and how much of it is done, where it can be counted. As with
 * base/leaves/stop.h, who begins the work says, for its own thread, where that is kept; a step
 * that goes on in another thread hands it on.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Writer: one thread at a time, by mdl_progress(). Readers: any; what and how much may be of two
 * steps. */
struct mdl_progress {
    const char *_Atomic what;  /* static: "measuring primitives"; NULL: it has not begun */
    _Atomic uint32_t done, of; /* of 0: not counted */
};

/** mdl_progress_by() - where this thread keeps its progress; borrowed until the next call; NULL:
 * nowhere. Return: where it did until now. */
struct mdl_progress *mdl_progress_by(struct mdl_progress *p);
/** mdl_progress() - this thread is at @done of @of. @what: static. Never blocks. */
void mdl_progress(const char *what, size_t done, size_t of);
