/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a scenario, and what is seen of it. */

#include "tuner/pipesim/adapting_private.h"
#include "tuner/solve/solve.h"

#define TOP_KHZ 2000000.0
enum { PERFORMANCE = 1, POWERSAVE }; /* governors; 0 is unknown */
#define NO_WAIT 0.98                 /* CPU time of undisturbed service */

void psim_play_world(struct psim_play *p)
{
    size_t units = p->truth.problem.unit_count;

    psim_scenario_world(p->how->scenario, p->t_s, &p->world);
    for (size_t k = 0; k < p->truth.problem.ep_count; k++) {
        uint16_t cores = p->truth.problem.eps[k].cores;

        p->truth.eps[k].cores = cores > p->world.cores_less[k] ? cores - p->world.cores_less[k] : 0;
        p->truth.eps[k].khz_table = TOP_KHZ;
        p->truth.eps[k].khz = TOP_KHZ * p->world.clock[k];
        for (size_t u = 0; u < units; u++) {
            p->truth.slow[k * units + u] =
                p->world.contended[k] * p->world.slowed[k] / p->world.quota[k];
        }
    }
}

void psim_play_eps(const struct psim_play *p, struct tun_ep_seen *ret)
{
    for (size_t k = 0; k < p->truth.problem.ep_count; k++) {
        double khz = p->truth.eps[k].khz;

        ret[k] = (struct tun_ep_seen){.cores = p->truth.eps[k].cores,
                                      .governor = p->world.powersave[k] ? POWERSAVE : PERFORMANCE,
                                      .khz = khz,
                                      .limit_khz = p->world.limited[k] ? khz : TOP_KHZ,
                                      .thermal = p->world.thermal[k]};
    }
}

double psim_play_spike(struct psim_play *p)
{
    return tun_random_unit(&p->random) < p->how->noise.spikes
               ? 0.2 + 0.8 * tun_random_unit(&p->random)
               : 0;
}

/* Width of a team of @g as far as other programs slow it: they take each core by itself. */
static size_t shared(const struct psim_play *p, const struct pl_group *g)
{
    return p->world.contended[g->ep] > 1 ? g->width : 1;
}

/* With @frames at once; the watch sees times as of single frames. */
static double team_truth(const struct psim_play *p, const struct pl_stage_plan *stage,
                         const struct pl_group *g, size_t frames)
{
    const struct tun_problem *t = &p->truth.problem;
    double ns = tun_handoff_ns(t, stage->first_unit);

    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        ns += tun_cell_at(&t->costs, g->ep, g->width, u)->ns *
              tun_share_factor(p->truth.slow[g->ep * t->unit_count + u], 1, shared(p, g)) *
              tun_clock_factor(&p->truth.eps[g->ep], p->truth.beta[u]) *
              tun_at_once_factor(tun_at_once_at(t, g->ep, u), (double)frames);
    }
    return ns;
}

static double stage_ns(const struct psim_play *p, size_t stage)
{
    const struct pl_stage_plan *s = &p->plan.stages[stage];
    double rate = 0;

    for (size_t g = 0; g < s->group_count; g++) {
        rate += s->groups[g].count / team_truth(p, s, &s->groups[g], pl_group_batch(&s->groups[g]));
    }
    return 1 / rate;
}

double psim_play_bottleneck(const struct psim_play *p)
{
    double longest = 0;

    for (size_t s = 0; s < p->plan.stage_count; s++) {
        longest = base_max(longest, stage_ns(p, s));
    }
    return longest;
}

/* A team under a quota that asks for less than that is not slowed by it. */
static double waits(const struct psim_play *p, size_t stage, const struct pl_group *g)
{
    double asks = stage_ns(p, stage) * p->world.quota[g->ep] / psim_play_bottleneck(p);

    return tun_share_factor(p->world.contended[g->ep], 1, shared(p, g)) *
           (asks < 0.9 * p->world.quota[g->ep] ? 1 : 1 / p->world.quota[g->ep]);
}

static struct tun_team_seen see_team(struct psim_play *p, size_t s, size_t g)
{
    const struct psim_noise *n = &p->how->noise;
    const struct pl_group *group = &p->plan.stages[s].groups[g];
    double *z = &p->noise[s][g], wait = waits(p, s, group), spikes, ns;

    ns = team_truth(p, &p->plan.stages[s], group, 1) * wait * p->world.quota[group->ep] /
         tun_share_factor(p->world.contended[group->ep], 1, shared(p, group));
    *z = n->correlation * *z +
         sqrt(1 - n->correlation * n->correlation) * tun_random_normal(&p->random);
    spikes = psim_play_spike(p);
    return (struct tun_team_seen){.stage = (uint16_t)s,
                                  .group = (uint16_t)g,
                                  .frames = (uint64_t)(1 + 10 * p->world.load),
                                  .service_ns = ns * exp(n->cv * *z + spikes),
                                  .cpu_ns = NO_WAIT * ns * exp(n->cv * *z) / wait,
                                  .busy = p->world.load * stage_ns(p, s) / psim_play_bottleneck(p),
                                  .starved = p->world.load < 0.5};
}

size_t psim_play_teams(struct psim_play *p, struct tun_team_seen *ret)
{
    size_t count = 0;

    for (size_t s = 0; s < p->plan.stage_count; s++) {
        for (size_t g = 0; g < p->plan.stages[s].group_count; g++) {
            ret[count++] = see_team(p, s, g);
        }
    }
    return count;
}

int psim_play_problem(const struct psim_play *p, struct tun_problem *ret, size_t *ret_eps)
{
    bool shared_eps[PL_EP_MAX];

    for (size_t k = 0; k < PL_EP_MAX; k++) {
        shared_eps[k] = p->world.contended[k] > 1;
    }
    return tun_correct(&p->truth, p->truth.slow, shared_eps, ret, ret_eps);
}

double psim_play_ratio(const struct psim_play *p)
{
    base_autofree struct tun_solution *best = malloc(sizeof(*best));
    struct tun_problem now = TUN_PROBLEM_NULL;
    size_t eps[PL_EP_MAX];
    double share = NAN;

    if (best && psim_play_problem(p, &now, eps) == 0) {
        now.bounds.slack = 0;
        if (tun_solve(&now, best) == 0) {
            share = best->outcome.bottleneck_ns / psim_play_bottleneck(p);
        }
    }
    tun_problem_deinit(&now);
    return share;
}
