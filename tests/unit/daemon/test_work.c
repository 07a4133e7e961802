/* SPDX-License-Identifier: Apache-2.0 */
/* Queued work: who runs a job and at which priority, who is told where, owners that leave, order,
 * the end. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "daemon/service/work.h"
#include "tests/harness.h"

#define JOBS 50u

struct job {
    struct dmn_job job;
    size_t number; /* of those that ran */
    int nice;
    bool ran, elsewhere;
};

static pthread_t loop_thread;
static size_t done_count, drop_count;
static atomic_size_t run_count;
static sem_t held, begun;

static struct job *job_of(struct dmn_job *job)
{
    return base_container_of(job, struct job, job);
}

static void run(struct dmn_job *job)
{
    struct job *j = job_of(job);

    j->ran = true;
    j->number = atomic_fetch_add(&run_count, 1);
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

static void begin(uv_loop_t *loop, size_t threads, bool gives_way, struct dmn_work **ret)
{
    loop_thread = pthread_self();
    done_count = drop_count = 0;
    atomic_store(&run_count, 0);
    T_EQ(sem_init(&held, 0, 0), 0);
    T_EQ(sem_init(&begun, 0, 0), 0);
    T_EQ(uv_loop_init(loop), 0);
    T_EQ(dmn_work_new(loop, "test", threads, gives_way, ret), 0);
}

static void end(uv_loop_t *loop, struct dmn_work *w)
{
    dmn_work_stop(w);
    dmn_work_stop(w); /* nothing more */
    uv_run(loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(loop), 0);
    T_TRUE(!dmn_work_free(w));
}

static void give(struct dmn_work *w, struct job *j, void (*how)(struct dmn_job *job))
{
    *j = (struct job){.job = {.run = how, .done = done, .drop = drop}};
    dmn_work_do(w, &j->job);
}

static void give_all(struct dmn_work *w, struct job *jobs, void (*how)(struct dmn_job *job))
{
    for (size_t i = 0; i < JOBS; i++) {
        give(w, &jobs[i], how);
        T_TRUE(jobs[i].job.at == w);
    }
}

static void let_go(void)
{
    for (size_t i = 0; i < JOBS; i++) {
        sem_post(&held);
    }
}

TEST(the_queue_is_the_priority)
{
    int own = getpriority(PRIO_PROCESS, 0);

    for (int low = 0; low < 2; low++) {
        struct job jobs[JOBS];
        struct dmn_work *w;
        uv_loop_t loop;

        begin(&loop, 3, low, &w);
        give_all(w, jobs, run);
        uv_run(&loop, UV_RUN_DEFAULT); /* for as long as there are jobs */
        T_EQ(done_count, JOBS);
        for (size_t i = 0; i < JOBS; i++) {
            T_TRUE(jobs[i].ran && jobs[i].elsewhere);
            T_EQ(jobs[i].nice, low ? 10 : own);
        }
        end(&loop, w);
    }
}

TEST(one_thread_keeps_their_order)
{
    struct job jobs[JOBS];
    struct dmn_work *w;
    uv_loop_t loop;

    begin(&loop, 1, false, &w);
    give_all(w, jobs, run);
    dmn_work_settle(w);
    T_EQ(atomic_load(&run_count), JOBS);
    T_EQ(done_count, 0); /* later, by the loop */
    uv_run(&loop, UV_RUN_DEFAULT);
    T_EQ(done_count, JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        T_EQ(jobs[i].number, i);
    }
    end(&loop, w);
}

/* Those that have not begun never do; those in work end; all are dropped, none is done. */
TEST(an_owner_may_leave)
{
    struct job jobs[JOBS], idle = {.job = {.done = done, .drop = drop}};
    struct dmn_work *w;
    uv_loop_t loop;

    begin(&loop, 2, false, &w);
    give_all(w, jobs, run_held);
    sem_wait(&begun);
    sem_wait(&begun);
    for (size_t i = 0; i < JOBS; i++) {
        dmn_job_leave(&jobs[i].job);
    }
    T_EQ(drop_count, 0); /* later, by the loop */
    dmn_job_leave(&idle.job);
    T_EQ(drop_count, 1); /* it was not given */
    let_go();
    uv_run(&loop, UV_RUN_DEFAULT);
    T_EQ(drop_count, JOBS + 1);
    T_EQ(done_count, 0);
    T_EQ(atomic_load(&run_count), 2);
    end(&loop, w);
}

/* Its owner stays, and is told of the end of each. */
TEST(a_cancelled_job_is_done)
{
    struct job jobs[JOBS];
    struct dmn_work *w;
    uv_loop_t loop;

    begin(&loop, 1, false, &w);
    give_all(w, jobs, run_held);
    sem_wait(&begun);
    for (size_t i = 0; i < JOBS; i++) {
        dmn_job_cancel(&jobs[i].job);
        dmn_job_cancel(&jobs[i].job); /* nothing more */
    }
    let_go();
    uv_run(&loop, UV_RUN_DEFAULT);
    T_EQ(done_count, JOBS);
    T_EQ(drop_count, 0);
    T_TRUE(jobs[0].ran);
    T_EQ(atomic_load(&run_count), 1);
    dmn_job_cancel(&jobs[0].job); /* it is not given any more */
    end(&loop, w);
}

/* What waits when the daemon ends is done, and told. */
TEST(a_stop_does_what_is_left)
{
    struct job jobs[JOBS], late;
    struct dmn_work *w;
    uv_loop_t loop;

    begin(&loop, 2, false, &w);
    give_all(w, jobs, run_held);
    T_EQ(done_count, 0); /* nobody waits for the first */
    let_go();
    dmn_work_stop(w);
    T_EQ(done_count, JOBS);
    give(w, &late, run); /* here and now */
    T_EQ(done_count, JOBS + 1);
    T_TRUE(late.ran && !late.elsewhere);
    dmn_work_settle(w);
    end(&loop, w);
}

TEST(without_threads_jobs_run_at_once)
{
    struct job j;

    loop_thread = pthread_self();
    done_count = 0;
    give(NULL, &j, run);
    T_EQ(done_count, 1);
    dmn_work_settle(NULL);
    dmn_work_stop(NULL);
    T_TRUE(!dmn_work_free(NULL));
}

TEST_MAIN()
