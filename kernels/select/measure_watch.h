/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/measure_watch.h - tells whether something disturbed what a thread timed
 *
 * Time is watched in stretches of a few milliseconds. Within one, a run is disturbed if the thread
 * was off its core since the run before: it waited in the run queue, or the hypervisor ran somebody
 * else and the kernel knows. Before and after a stretch a loop of known work is timed. If it does
 * not take what it mostly takes, the clock moved or another thread shares the core, and the whole
 * stretch is disturbed; so it is if the counter of stolen time moved.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct krn_primitive;

#define KRN_WATCH_STRETCH_NS 3000000u /* the caller ends a stretch that takes so long */
#define KRN_WATCH_REFERENCES 33u

/* Each function may be NULL: the clocks of this computer, and no counter of stolen time. */
struct krn_watch_clocks {
    void *arg;
    uint64_t (*wall_ns)(void *arg);
    uint64_t (*thread_ns)(void *arg);    /* for which this thread ran */
    uint64_t (*reference_ns)(void *arg); /* runs the known work */
    uint64_t (*stolen_ns)(void *arg);    /* from the core, by the hypervisor; may be coarse */
    /* tests: the time of a run of @p for @op instead of @ns, which it took */
    uint64_t (*took_ns)(void *arg, size_t op, const struct krn_primitive *p, uint64_t ns);
};

struct krn_watch {
    struct krn_watch_clocks clocks; /* what its functions use is borrowed */
    uint64_t start_ns, wall_ns, thread_ns, stolen_ns;
    double references[KRN_WATCH_REFERENCES]; /* the newest */
    size_t reference_count;
    bool steady; /* the last one was as most are */
};

/** krn_watch_thread_ns() - Return: for how long the calling thread ran, by the clock of this
 * computer: another one on its core takes none of it. @arg: not read */
uint64_t krn_watch_thread_ns(void *arg);
/** krn_watch_init() - @clocks: NULL: those of this computer. */
void krn_watch_init(struct krn_watch *w, const struct krn_watch_clocks *clocks);
/** krn_watch_begin() - begins a stretch. Threads: the one that is watched, as for all below. */
void krn_watch_begin(struct krn_watch *w);
/** krn_watch_kept() - Return: the thread kept its core since the last call or the beginning. */
bool krn_watch_kept(struct krn_watch *w);
/** krn_watch_end() - ends the stretch and begins the next. Return: its clock was steady and nothing
 * was stolen. */
bool krn_watch_end(struct krn_watch *w);
