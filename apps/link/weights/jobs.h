/* SPDX-License-Identifier: Apache-2.0 */
/**
 * jobs.h - a thread for what may wait for a disk or takes long; the loop does neither
 *
 * Jobs run one at a time, in the order in which they were added. A long one works in slices: after
 * each, it goes behind the others. So what a job touches is the thread's while it is in here, and
 * needs no lock. All functions are the loop's.
 */
#pragma once

#include <stdbool.h>

struct jobs;

/* The beginning of whatever a job needs; the caller's, and in here until done() is called. */
struct job {
    /* On the thread. Return: true: there is more to do. */
    bool (*run)(struct job *j);
    /* On the loop, by jobs_dispatch() or jobs_free(); it may free @j. */
    void (*done)(struct job *j);
    bool dropped;     /* it is jobs_free() that calls done(), which must not add jobs then */
    struct job *next; /* of jobs.c */
};

/** jobs_new() - starts the thread. Return: 0, -errno. */
int jobs_new(struct jobs **ret);
/** jobs_free() - waits for the slice that runs, then calls done() for all that are in here. @j may
 * be NULL. Return: NULL. */
struct jobs *jobs_free(struct jobs *j);
/** jobs_fd() - readable when jobs_dispatch() has something to do. */
int jobs_fd(const struct jobs *j);
/** jobs_dispatch() - calls done() of those that are through. */
void jobs_dispatch(struct jobs *j);
void jobs_add(struct jobs *j, struct job *job);
