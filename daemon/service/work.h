/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/work.h - queued work: jobs on threads beside the loop's and the teams'
 *
 * The daemon has four queues, each with threads of its own, all there from the start, so that a job
 * never needs one more: for what somebody waits for and for what computes for long
 * (daemon/machine/machine.h), for the disk (daemon/models/models.h), and for large images
 * (daemon/frames/room.h). A queue is a priority, for good: the kernel lets an unprivileged thread
 * give way, but not take that back.
 *
 * Jobs begin in the order in which they were given; with one thread they also end in it. A job is
 * embedded in the struct that it works on. Its owner may leave at any time, see dmn_job_leave().
 *
 * Threads: the loop thread; a job's run() runs on a work thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <uv.h>

#define DMN_WORK_THREADS 4u /* most of a queue */

struct dmn_work;

struct dmn_job {
    /* set by the owner before the job is given */
    void (*run)(struct dmn_job *job);  /* work thread; may block */
    void (*done)(struct dmn_job *job); /* run() has returned, or the job was cancelled; may free */
    void (*drop)(struct dmn_job *job); /* frees the job; NULL: its owner never leaves */
    /* set by work.c */
    struct dmn_work *at; /* where it was given and is not done; NULL: the owner has it */
    bool left;           /* its owner */
    bool waits;          /* it has not begun; under the lock of `at` */
    STAILQ_ENTRY(dmn_job) linked;
};

/** dmn_work_new() - starts @threads, 1 to DMN_WORK_THREADS. @name: of them, at most 15 bytes.
 * @gives_way: at low priority. Return: 0; -EAGAIN, -ENOMEM: too few threads or too little memory,
 * with a stopped queue in @ret, or NULL. */
int dmn_work_new(uv_loop_t *loop, const char *name, size_t threads, bool gives_way,
                 struct dmn_work **ret);
/** dmn_work_stop() - does the jobs that are left, calls their done(), and ends the threads. Later
 * jobs run in dmn_work_do(). Blocks; the loop must run once more to close its handle. Takes NULL; a
 * second call does nothing. */
void dmn_work_stop(struct dmn_work *w);
/** dmn_work_free() - after dmn_work_stop(), when the loop is closed. Takes NULL. Return: NULL. */
struct dmn_work *dmn_work_free(struct dmn_work *w);
/** dmn_work_settle() - waits until no job is left to run. Takes NULL. Threads: any but those of
 * @w. */
void dmn_work_settle(struct dmn_work *w);

/** dmn_work_do() - gives @job to a thread; done() follows on the loop, later. The loop runs for as
 * long as there are jobs. @w: NULL: the job runs here and now, with its done(). */
void dmn_work_do(struct dmn_work *w, struct dmn_job *job);
/** dmn_job_cancel() - if @job has not begun, run() is not called any more; done() follows either
 * way. Does nothing if the job is not given. */
void dmn_job_cancel(struct dmn_job *job);
/** dmn_job_leave() - the owner leaves: cancels the job, and calls drop() in place of done(); now if
 * the job is not given. */
void dmn_job_leave(struct dmn_job *job);
