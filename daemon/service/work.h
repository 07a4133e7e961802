/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/work.h - queued work: jobs on threads beside the loop's and the teams'
 *
 * Each kind of job has threads of its own, all of them there from the start, so that a job never
 * needs one more. The kind is the priority, for good: the kernel lets an unprivileged thread give
 * way, but not take that back. So a search never delays what a client waits for, nor that a frame.
 *
 * A job is embedded in the struct that it works on. It may begin after any other of its kind, and
 * run beside them. Its owner may leave at any time, see dmn_job_leave(). Jobs that were given keep
 * the loop running.
 *
 * Threads: the loop thread; a job's run() runs on a work thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

enum dmn_job_kind {
    DMN_JOB_AWAITED, /* a client, a load or a connection waits for it: the loop's priority */
    DMN_JOB_BESIDE,  /* computes for long beside frames, such as a search: at low priority */
    DMN_JOB_KINDS
};

#define DMN_WORK_THREADS 6u /* of all kinds */

struct dmn_work;

struct dmn_job {
    /* set by the owner before the job is given */
    enum dmn_job_kind kind;
    void (*run)(struct dmn_job *job);  /* work thread; may block */
    void (*done)(struct dmn_job *job); /* run() has returned, or the job was cancelled; may free */
    void (*drop)(struct dmn_job *job); /* frees the job; NULL: its owner never leaves */
    /* set by work.c */
    struct dmn_work *at; /* where it was given and is not done; NULL: the owner has it */
    bool left, waits;    /* its owner has left; it has not begun (under the lock of `at`) */
    STAILQ_ENTRY(dmn_job) linked;
};

/** dmn_work_new() - starts the threads. Return: 0; -EAGAIN, -ENOMEM: too few threads or too little
 * memory, with what dmn_work_stop() and dmn_work_free() take in @ret. */
int dmn_work_new(uv_loop_t *loop, struct dmn_work **ret);
/** dmn_work_stop() - ends the threads, once no job is left; the loop must run once more to close
 * its handle. Takes NULL; a second call does nothing. */
void dmn_work_stop(struct dmn_work *w);
/** dmn_work_free() - after dmn_work_stop(), when the loop is closed. Takes NULL. Return: NULL. */
struct dmn_work *dmn_work_free(struct dmn_work *w);

/** dmn_work_do() - gives @job to a thread of its kind. done() follows on the loop, later. */
void dmn_work_do(struct dmn_work *w, struct dmn_job *job);
/** dmn_job_cancel() - if @job has not begun, run() is not called any more; done() follows either
 * way. Does nothing if the job is not given. */
void dmn_job_cancel(struct dmn_job *job);
/** dmn_job_leave() - the owner leaves: cancels the job, and calls drop() in place of done(); now if
 * the job is not given. */
void dmn_job_leave(struct dmn_job *job);
