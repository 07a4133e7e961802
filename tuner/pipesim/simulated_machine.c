/* SPDX-License-Identifier: Apache-2.0 */
/* A trial on a simulated machine. */

#include "tuner/pipesim/simulated_machine.h"

#define NOISE_LEAST 0.1 /* no mean comes out below a tenth of the truth */

/* The plan's samples so far; what is sampled once is not measured again. */
struct bench {
    struct psim_machine *m;
    struct tun_sample *samples;
    size_t count;
};

static double measure(struct bench *b, const struct pl_group *g, size_t unit)
{
    const struct psim_machine *m = b->m;
    double frames = (double)pl_group_batch(g);
    double ns = tun_cell_at(&m->truth->costs, g->ep, g->width, unit)->ns * m->slow[g->ep] *
                tun_at_once_factor(tun_at_once_at(m->truth, g->ep, unit), frames);

    if (m->noise > 0) {
        ns *= base_max(NOISE_LEAST, 1 + m->noise * tun_random_normal(&b->m->random));
    }
    b->samples[b->count++] = (struct tun_sample){.ep = g->ep,
                                                 .width = g->width,
                                                 .unit = (uint32_t)unit,
                                                 .ns = ns,
                                                 .sigma = m->noise,
                                                 .frames = frames};
    return ns;
}

/* An earlier group of the stage of the same shape, which has the same figures. */
static size_t same_shape(const struct pl_stage_plan *stage, size_t group)
{
    for (size_t g = 0; g < group; g++) {
        if (stage->groups[g].ep == stage->groups[group].ep &&
            stage->groups[g].width == stage->groups[group].width &&
            stage->groups[g].more == stage->groups[group].more) {
            return g;
        }
    }
    return group;
}

static double team_ns(struct bench *b, const struct pl_stage_plan *stage,
                      const struct pl_group *group)
{
    const struct tun_problem *p = b->m->truth;
    double ns = p->handoff_ns;

    if (stage->first_unit > 0) {
        ns += p->handoff_ns_per_byte * p->units[stage->first_unit].in_bytes;
    }
    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        ns += measure(b, group, u);
    }
    return ns;
}

/* The formulas of tuner/eval.h, on measured figures. */
static void run_stage(struct bench *b, const struct pl_stage_plan *stage, size_t s,
                      struct tun_outcome *o)
{
    double rate = 0, slowest = 0, core_watts = 0;

    for (size_t g = 0; g < stage->group_count; g++) {
        const struct pl_group *group = &stage->groups[g];
        size_t same = same_shape(stage, g);

        o->team_ns[s][g] = same < g ? o->team_ns[s][same] : team_ns(b, stage, group);
        rate += group->count / o->team_ns[s][g];
        slowest =
            base_max(slowest, tun_latency_of(b->m->truth, pl_group_batch(group), o->team_ns[s][g]));
        core_watts += group->count * group->width * tun_ep_watts(&b->m->truth->eps[group->ep]);
    }
    o->stage_ns[s] = 1 / rate;
    o->bottleneck_ns = base_max(o->bottleneck_ns, o->stage_ns[s]);
    o->latency_ns += slowest;
    o->energy_nj += core_watts / rate;
}

struct psim_machine psim_machine(const struct tun_problem *truth, uint64_t seed)
{
    struct psim_machine m = {.truth = truth, .random.state = seed};

    for (size_t k = 0; k < PL_EP_MAX; k++) {
        m.slow[k] = 1;
    }
    return m;
}

void psim_trial(struct psim_machine *m, const struct pl_plan *plan, struct tun_sample *samples,
                struct tun_trial *ret)
{
    struct bench b = {.m = m, .samples = samples};
    struct tun_outcome truth;

    *ret = (struct tun_trial){.plan = *plan, .frames = m->frames ? m->frames : 10};
    if (!tun_fits(m->truth, plan) || tun_eval(m->truth, plan, &truth) != 0) {
        ret->failed = true;
        ret->frames = 0;
        return;
    }
    ret->measured.stage_count = plan->stage_count;
    for (size_t s = 0; s < plan->stage_count; s++) {
        run_stage(&b, &plan->stages[s], s, &ret->measured);
    }
    ret->samples = samples;
    ret->sample_count = b.count;
    ret->spent_ns = ret->measured.latency_ns + (double)ret->frames * ret->measured.bottleneck_ns;
}
