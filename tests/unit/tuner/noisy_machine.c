/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "tests/unit/tuner/noisy_machine.h"
#include "tuner/eval.h"

#define CONTENTION 0.2

void noisy_make(struct tun_problem *p, struct tun_random *r, size_t ep_count, size_t units)
{
    struct tun_ep eps[3];
    double parallel;

    for (size_t k = 0; k < ep_count; k++) {
        eps[k] = (struct tun_ep){.cores = (uint16_t)(1 + tun_random_below(r, 4)),
                                 .speed = k ? 0.2 + 0.7 * tun_random_unit(r) : 1,
                                 .bandwidth = 1,
                                 .watts = k ? 0.5 : 2};
        snprintf(eps[k].name, sizeof(eps[k].name), "ep%u", (unsigned)k);
    }
    if (tun_problem_init(p, units, eps, ep_count) < 0) {
        abort();
    }
    p->handoff_ns = 5000;
    p->handoff_ns_per_byte = 0.05;
    p->bounds.slack = 0;
    for (size_t u = 0; u < units; u++) {
        p->units[u].weight = exp(12 + 2.5 * tun_random_unit(r));
        p->units[u].in_bytes = u ? 1e5 * tun_random_unit(r) : 0;
        parallel = 0.6 + 0.39 * tun_random_unit(r);
        for (size_t k = 0; k < ep_count; k++) {
            double ns = p->units[u].weight / eps[k].speed * (1 + 0.3 * tun_random_unit(r));

            for (size_t w = 1; w <= eps[k].cores; w++) {
                *tun_cell_at(&p->costs, k, w, u) = (struct tun_cell){
                    ns * (1 - parallel + parallel / (double)w), NOISY_TABLE_SIGMA, TUN_PREDICTED};
            }
        }
    }
}

void noisy_spoil(const struct tun_problem *p, struct noisy_machine *m, uint64_t seed)
{
    size_t slow;

    if (tun_problem_copy(p, &m->truth) < 0) {
        abort();
    }
    m->random.state = seed;
    m->noise = NOISY_TRIAL_SIGMA;
    slow = tun_random_below(&m->random, p->ep_count);
    for (size_t k = 0; k < p->ep_count; k++) {
        double contention = k == slow ? 1 + CONTENTION * tun_random_unit(&m->random) : 1;

        for (size_t u = 0; u < p->unit_count; u++) {
            double factor = contention * exp(NOISY_TABLE_SIGMA * tun_random_normal(&m->random));

            for (size_t w = 1; w <= p->eps[k].cores; w++) {
                tun_cell_at(&m->truth.costs, k, w, u)->ns *= factor;
            }
        }
    }
}

static double noisy(struct noisy_machine *m, double ns)
{
    return ns * exp(m->noise * tun_random_normal(&m->random));
}

/* Units with noise, teams with noise of their own on top. */
void noisy_run(struct noisy_machine *m, const struct pl_plan *plan, struct tun_trial *ret)
{
    struct tun_problem seen = m->truth; /* shallow: its hand-off is used alone */
    size_t count = 0;

    *ret = (struct tun_trial){.plan = *plan, .samples = m->samples, .frames = 100};
    ret->measured.stage_count = plan->stage_count;
    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        double rate = 0, slowest = 0;

        for (size_t g = 0; g < stage->group_count; g++) {
            const struct pl_group *group = &stage->groups[g];
            double ns = seen.handoff_ns;

            ns += stage->first_unit
                      ? seen.handoff_ns_per_byte * seen.units[stage->first_unit].in_bytes
                      : 0;
            for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
                struct tun_sample *sample = &m->samples[count++];

                *sample = (struct tun_sample){group->ep, group->width, (uint32_t)u, 0, m->noise};
                sample->ns = noisy(m, tun_cell_at(&m->truth.costs, group->ep, group->width, u)->ns);
                ns += sample->ns;
            }
            ret->measured.team_ns[s][g] = ns = noisy(m, ns);
            rate += group->count / ns;
            slowest = base_max(slowest, ns);
        }
        ret->measured.stage_ns[s] = 1 / rate;
        ret->measured.bottleneck_ns = base_max(ret->measured.bottleneck_ns, 1 / rate);
        ret->measured.latency_ns += slowest;
    }
    ret->sample_count = count;
}

size_t noisy_search(const struct tun_problem *p, struct noisy_machine *m, struct tun_outcome *ret)
{
    struct tun_search *s;
    struct tun_trial trial;
    struct pl_plan plan;
    char error[TUN_ERROR_MAX];
    size_t count;

    if (tun_search_new("exact", p, NULL, error, &s) < 0) {
        fprintf(stderr, "%s\n", error);
        return 99;
    }
    while (tun_search_ask(s, &plan) == 0) {
        noisy_run(m, &plan, &trial);
        if (!tun_fits(p, &plan) || tun_search_tell(s, &trial) < 0) {
            return 99;
        }
    }
    tun_search_log(s, &count);
    if (!tun_search_result(s) || tun_eval(&m->truth, &tun_search_result(s)->plan, ret) != 0) {
        count = 99;
    }
    tun_search_free(s);
    return count;
}

void noisy_make_one(struct tun_problem *p, struct noisy_machine *m, uint64_t seed, size_t eps,
                    size_t units)
{
    struct tun_random r = {seed};

    noisy_make(p, &r, eps, units);
    noisy_spoil(p, m, seed + 1);
}

void noisy_unmake(struct tun_problem *p, struct noisy_machine *m)
{
    tun_problem_deinit(p);
    tun_problem_deinit(&m->truth);
}
