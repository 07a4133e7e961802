/* SPDX-License-Identifier: Apache-2.0 */
/* Queued work: who runs a job and at which priority, who is told where, owners that leave. */
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base.h"
#include "daemon/service/work.h"
#include "tests/harness.h"

#define JOBS 50u

struct job {
    struct dmn_job job;
    int nice;
    bool ran, elsewhere;
};

static pthread_t loop_thread;
static size_t done_count, drop_count;
static sem_t held, begun;

static struct job *job_of(struct dmn_job *job)
{
    return base_container_of(job, struct job, job);
}

static void run(struct dmn_job *job)
{
    struct job *j = job_of(job);

    j->ran = true;
    j->elsewhere = !pthread_equal(pthread_self(), loop_thread);
    j->nice = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
}

static void run_held(struct dmn_job *job)
{
    sem_post(&begun);
    sem_wait(&held);
    run(job);
}

static void done(struct dmn_job *job)
{
    T_TRUE(pthread_equal(pthread_self(), loop_thread));
    T_TRUE(!job->at);
    done_count++;
}

static void drop(struct dmn_job *job)
{
    T_TRUE(pthread_equal(pthread_self(), loop_thread));
    drop_count++;
}

static void begin(uv_loop_t *loop, struct dmn_work **ret)
{
    loop_thread = pthread_self();
    done_count = drop_count = 0;
    T_EQ(sem_init(&held, 0, 0), 0);
    T_EQ(sem_init(&begun, 0, 0), 0);
    T_EQ(uv_loop_init(loop), 0);
    T_EQ(dmn_work_new(loop, ret), 0);
}

static void end(uv_loop_t *loop, struct dmn_work *w)
{
    dmn_work_stop(w);
    dmn_work_stop(w); /* nothing more */
    uv_run(loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(loop), 0);
    T_TRUE(!dmn_work_free(w));
}

static void give(struct dmn_work *w, struct job *j, enum dmn_job_kind kind,
                 void (*how)(struct dmn_job *job))
{
    *j = (struct job){.job = {.kind = kind, .run = how, .done = done, .drop = drop}};
    dmn_work_do(w, &j->job);
    T_TRUE(j->job.at == w);
}

/* Also after one of the other kind, and while many wait. */
TEST(the_kind_is_the_priority)
{
    int own = getpriority(PRIO_PROCESS, 0);
    struct job jobs[JOBS];
    struct dmn_work *w;
    uv_loop_t loop;

    begin(&loop, &w);
    for (size_t i = 0; i < JOBS; i++) {
        give(w, &jobs[i], i % 2 ? DMN_JOB_BESIDE : DMN_JOB_AWAITED, run);
    }
    uv_run(&loop, UV_RUN_DEFAULT); /* for as long as there are jobs */
    T_EQ(done_count, JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        T_TRUE(jobs[i].ran && jobs[i].elsewhere);
        T_EQ(jobs[i].nice, i % 2 ? 10 : own);
    }
    end(&loop, w);
}

/* Searches at work do not hold up what a client waits for. */
TEST(kinds_do_not_wait_for_each_other)
{
    struct job searches[JOBS], load;
    struct dmn_work *w;
    uv_loop_t loop;

    begin(&loop, &w);
    for (size_t i = 0; i < JOBS; i++) {
        give(w, &searches[i], DMN_JOB_BESIDE, run_held);
    }
    sem_wait(&begun);
    give(w, &load, DMN_JOB_AWAITED, run);
    while (done_count == 0) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    T_TRUE(load.ran && done_count == 1);
    for (size_t i = 0; i < JOBS; i++) {
        sem_post(&held);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    T_EQ(done_count, JOBS + 1);
    end(&loop, w);
}

/* Those that have not begun never do; the one in work ends; all are dropped, none is done. */
TEST(an_owner_may_leave)
{
    struct job jobs[JOBS], idle = {.job = {.done = done, .drop = drop}};
    struct dmn_work *w;
    size_t ran = 0;
    uv_loop_t loop;

    begin(&loop, &w);
    for (size_t i = 0; i < JOBS; i++) {
        give(w, &jobs[i], DMN_JOB_BESIDE, run_held);
    }
    sem_wait(&begun);
    for (size_t i = 0; i < JOBS; i++) {
        dmn_job_leave(&jobs[i].job);
    }
    T_EQ(drop_count, 0); /* later, by the loop */
    dmn_job_leave(&idle.job);
    T_EQ(drop_count, 1); /* it was not given */
    for (size_t i = 0; i < JOBS; i++) {
        sem_post(&held);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    T_EQ(drop_count, JOBS + 1);
    T_EQ(done_count, 0);
    for (size_t i = 0; i < JOBS; i++) {
        ran += jobs[i].ran;
    }
    T_TRUE(ran >= 1 && ran < JOBS);
    end(&loop, w);
}

/* Its owner stays, and is told of the end of each. */
TEST(a_cancelled_job_is_done)
{
    struct job jobs[JOBS];
    struct dmn_work *w;
    uv_loop_t loop;

    begin(&loop, &w);
    for (size_t i = 0; i < JOBS; i++) {
        give(w, &jobs[i], DMN_JOB_AWAITED, run_held);
    }
    for (size_t i = 0; i < JOBS; i++) {
        dmn_job_cancel(&jobs[i].job);
        dmn_job_cancel(&jobs[i].job); /* nothing more */
        sem_post(&held);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    T_EQ(done_count, JOBS);
    T_EQ(drop_count, 0);
    T_TRUE(!jobs[JOBS - 1].ran);
    dmn_job_cancel(&jobs[0].job); /* it is not given any more */
    end(&loop, w);
}

TEST(without_anything_it_ends)
{
    struct dmn_work *w;
    uv_loop_t loop;

    begin(&loop, &w);
    end(&loop, w);
    dmn_work_stop(NULL);
    T_TRUE(!dmn_work_free(NULL));
}

TEST_MAIN()
