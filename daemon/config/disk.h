/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/disk.h - a thread that waits for the disk, so that the loop does not
 *
 * Jobs run one after the other, in the order in which they were given, so writes of one file keep
 * their order. The thread is there from the start: a job never needs one more.
 *
 * Threads: each function names its own. A job's work() runs on the disk's thread, its done() on the
 * loop thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

struct dmn_disk;

/* A job, embedded in its owner's struct, which must live until done() is called. */
struct dmn_disk_job {
    int (*work)(struct dmn_disk_job *job);             /* may block. Return: passed to done() */
    void (*done)(struct dmn_disk_job *job, int error); /* frees the job */
    int error;
    STAILQ_ENTRY(dmn_disk_job) linked;
};

/** dmn_disk_new() - loop thread. Return: 0; -ENOMEM; -errno: no thread, with a stopped disk in @ret
 * that dmn_disk_free() still takes. */
int dmn_disk_new(uv_loop_t *loop, struct dmn_disk **ret);
/** dmn_disk_stop() - does the jobs that are left, calls their done(), and ends the thread. Later
 * jobs run in dmn_disk_do(). Loop thread; blocks on the disk; the loop must run once more to
 * close the disk's handle. Takes NULL. */
void dmn_disk_stop(struct dmn_disk *d);
/** dmn_disk_free() - after dmn_disk_stop(), when the loop is closed. Takes NULL. Return: NULL. */
struct dmn_disk *dmn_disk_free(struct dmn_disk *d);
/** dmn_disk_do() - gives it a job. @d: NULL: the job runs here and now, with its done(). Loop
 * thread; does not block. */
void dmn_disk_do(struct dmn_disk *d, struct dmn_disk_job *job);
/** dmn_disk_settle() - waits until no job is left to do. @d: NULL: returns at once. Any thread but
 * the disk's; blocks on the disk. */
void dmn_disk_settle(struct dmn_disk *d);
