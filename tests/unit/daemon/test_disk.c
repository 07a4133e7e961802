/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that waits for the disk: order, who is told where, the end. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "base.h"
#include "daemon/config/disk.h"
#include "tests/harness.h"

#define JOBS 200u

struct job {
    struct dmn_disk_job job;
    size_t number;
};

static size_t done_order[JOBS], work_order[JOBS], done_count, work_count;
static pthread_t loop_thread;
static bool elsewhere; /* every job ran on another thread than the loop's */
static sem_t held;
static bool hold;

static int work(struct dmn_disk_job *job)
{
    struct job *j = base_container_of(job, struct job, job);

    if (hold) {
        sem_wait(&held);
    }
    elsewhere &= !pthread_equal(pthread_self(), loop_thread);
    work_order[work_count++] = j->number;
    return (int)j->number;
}

static void done(struct dmn_disk_job *job, int error)
{
    struct job *j = base_container_of(job, struct job, job);

    T_TRUE(pthread_equal(pthread_self(), loop_thread));
    T_EQ((size_t)error, j->number);
    done_order[done_count++] = j->number;
    free(j);
}

static void give(struct dmn_disk *d, size_t number)
{
    struct job *j = calloc(1, sizeof(*j));

    T_TRUE(j);
    j->job.work = work;
    j->job.done = done;
    j->number = number;
    dmn_disk_do(d, &j->job);
}

static void begin(uv_loop_t *loop, struct dmn_disk **ret)
{
    loop_thread = pthread_self();
    done_count = work_count = 0;
    elsewhere = true;
    T_EQ(sem_init(&held, 0, 0), 0);
    T_EQ(uv_loop_init(loop), 0);
    T_EQ(dmn_disk_new(loop, ret), 0);
}

static void end(uv_loop_t *loop, struct dmn_disk *d)
{
    dmn_disk_stop(d);
    dmn_disk_stop(d); /* nothing more */
    uv_run(loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(loop), 0);
    T_TRUE(!dmn_disk_free(d));
}

static void in_order(void)
{
    T_EQ(work_count, JOBS);
    T_EQ(done_count, JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        T_EQ(work_order[i], i);
        T_EQ(done_order[i], i);
    }
}

static void idle(uv_idle_t *handle)
{
    (void)handle;
}

TEST(jobs_keep_their_order)
{
    struct dmn_disk *d;
    uv_loop_t loop;
    uv_idle_t alive; /* the disk alone does not keep the loop running */

    begin(&loop, &d);
    uv_idle_init(&loop, &alive);
    uv_idle_start(&alive, idle);
    for (size_t i = 0; i < JOBS; i++) {
        give(d, i);
    }
    dmn_disk_settle(d);
    T_EQ(work_count, JOBS);
    while (done_count < JOBS) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    uv_close((uv_handle_t *)&alive, NULL);
    in_order();
    T_TRUE(elsewhere);
    end(&loop, d);
}

/* What waits when the daemon ends is done, and told. */
TEST(a_stop_does_what_is_left)
{
    struct dmn_disk *d;
    uv_loop_t loop;

    begin(&loop, &d);
    hold = true;
    for (size_t i = 0; i < JOBS; i++) {
        give(d, i);
    }
    T_EQ(done_count, 0); /* nobody waits for the first */
    for (size_t i = 0; i < JOBS; i++) {
        sem_post(&held);
    }
    dmn_disk_stop(d);
    hold = false;
    in_order();
    T_TRUE(elsewhere);
    done_count = work_count = 0;
    give(d, 7); /* here and now */
    T_EQ(done_count, 1);
    dmn_disk_settle(d);
    end(&loop, d);
}

TEST(without_a_thread_jobs_run_at_once)
{
    loop_thread = pthread_self();
    done_count = work_count = 0;
    give(NULL, 0);
    T_EQ(done_count, 1);
    dmn_disk_settle(NULL);
    dmn_disk_stop(NULL);
    T_TRUE(!dmn_disk_free(NULL));
}

TEST_MAIN()
