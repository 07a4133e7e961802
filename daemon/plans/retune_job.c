/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/planning.h"
#include "daemon/plans/retune_private.h"

/* Searching yields to serving; other work on these threads (loading models) may yield as well. */
#define JOB_NICE 10

int dmn_retune_job_new(const struct tun_algorithm *a, struct tun_problem *p,
                       const struct tun_options *o, struct dmn_retune_job **ret)
{
    struct dmn_retune_job *j = calloc(1, sizeof(*j));

    if (!j) {
        return -ENOMEM;
    }
    j->work.data = j;
    j->algorithm = a;
    j->problem = *p;
    j->options = *o;
    if (o->from) {
        j->from = *o->from;
        j->options.from = &j->from;
    }
    *p = TUN_PROBLEM_NULL;
    *ret = j;
    return 0;
}

static void job_free(struct dmn_retune_job *j)
{
    tun_search_free(j->search);
    tun_problem_deinit(&j->problem);
    free(j->samples);
    free(j);
}

/* Work thread: it alone uses the search until it is done. */
static void work(uv_work_t *w)
{
    struct dmn_retune_job *j = w->data;

    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), JOB_NICE);
    j->result = 0;
    if (!j->search) {
        j->result =
            tun_search_new(j->algorithm->name, &j->problem, &j->options, j->error, &j->search);
        tun_problem_deinit(&j->problem);
    } else if (j->tell) {
        j->trial.samples = j->samples;
        j->result = tun_search_tell(j->search, &j->trial);
    }
    if (j->result == 0) {
        j->result = tun_search_ask(j->search, &j->plan);
    }
}

static void done(uv_work_t *w, int status)
{
    struct dmn_retune_job *j = w->data;

    j->at_work = false;
    if (!j->model) {
        job_free(j);
        return;
    }
    if (status < 0) {
        j->result = status;
    }
    j->done(j->model);
}

int dmn_retune_job_start(struct dmn_retune_job *j, struct dmn_model *m,
                         void (*on_done)(struct dmn_model *m), const struct tun_trial *t,
                         struct tun_sample *samples)
{
    int error;

    j->model = m;
    j->done = on_done;
    free(j->samples);
    j->samples = samples;
    j->tell = t != NULL;
    if (t) {
        j->trial = *t;
    }
    error = uv_queue_work(m->planning->of->machine->loop, &j->work, work, done);
    j->at_work = error == 0;
    return error;
}

struct dmn_retune_job *dmn_retune_job_leave(struct dmn_retune_job *j)
{
    if (j && j->at_work) {
        j->model = NULL;
        uv_cancel((uv_req_t *)&j->work);
    } else if (j) {
        job_free(j);
    }
    return NULL;
}
