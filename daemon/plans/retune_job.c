/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/machine/machine.h"
#include "daemon/plans/planning.h"
#include "daemon/plans/retune_private.h"

/* Work thread: it alone uses the search until it is done. */
static void run(struct dmn_job *work)
{
    struct dmn_retune_job *j = base_container_of(work, struct dmn_retune_job, work);

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

static void done(struct dmn_job *work)
{
    struct dmn_retune_job *j = base_container_of(work, struct dmn_retune_job, work);

    j->done(j->model);
}

static void drop(struct dmn_job *work)
{
    struct dmn_retune_job *j = base_container_of(work, struct dmn_retune_job, work);

    tun_search_free(j->search);
    tun_problem_deinit(&j->problem);
    free(j->samples);
    free(j);
}

int dmn_retune_job_new(const struct tun_algorithm *a, struct tun_problem *p,
                       const struct tun_options *o, struct dmn_retune_job **ret)
{
    struct dmn_retune_job *j = calloc(1, sizeof(*j));

    if (!j) {
        return -ENOMEM;
    }
    j->work = (struct dmn_job){.run = run, .done = done, .drop = drop};
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

void dmn_retune_job_start(struct dmn_retune_job *j, struct dmn_model *m,
                          void (*on_done)(struct dmn_model *m), const struct tun_trial *t,
                          struct tun_sample *samples)
{
    j->model = m;
    j->done = on_done;
    free(j->samples);
    j->samples = samples;
    j->tell = t != NULL;
    if (t) {
        j->trial = *t;
    }
    dmn_work_do(m->planning->of->machine->beside, &j->work);
}

struct dmn_retune_job *dmn_retune_job_leave(struct dmn_retune_job *j)
{
    if (j) {
        dmn_job_leave(&j->work);
    }
    return NULL;
}
