/* SPDX-License-Identifier: Apache-2.0 */
/* What adaptation knows of one model: whether it may act on it, and what it reports to plans/. */
#include "daemon/adapt/adapter_private.h"

struct dmn_adapt_job *dmn_adapt_job_leave(struct dmn_adapt_job *j)
{
    if (j) {
        dmn_job_leave(&j->work);
    }
    return NULL;
}

bool dmn_adapt_pinned(const struct dmn_model *m)
{
    return dmn_origin_pinned(m->origin);
}

bool dmn_adapt_searches(const struct dmn_model *m)
{
    return dmn_planner_searches(dmn_machine_config(m->of->machine)) && !dmn_adapt_pinned(m);
}

bool dmn_adapt_free_to_act(const struct dmn_model *m)
{
    return !dmn_plan_changing(m) && !m->leaving && !pl_switching(m->pipe) && !m->of->stopping &&
           !(m->adapt && m->adapt->turns) && !dmn_profiling(m->planning->of);
}

bool dmn_adapt_holds(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    return a && ((a->serving && (a->corrected || a->alarmed || a->verify_left > 0)) || a->carried ||
                 a->turns);
}

bool dmn_adapt_comparable(const struct dmn_model *m, const struct tun_problem *p)
{
    return m->adapt && m->adapt->fed > 0 && p->objective == TUN_THROUGHPUT &&
           !(p->bounds.period_max_ns > 0) && !(p->bounds.latency_max_ns > 0);
}

void dmn_adapt_publish(struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    dmn_costs_hold(
        m, (struct dmn_costs_hold){
               .learning = dmn_adapt_holds(m),
               .trials = a && a->search && a->corrected,
               /* a plan that is not watched yet counts as good */
               .keeping = a && (a->turns ||
                                (a->quota <= 0 && (a->carried || (a->serving && a->corrected)))),
               .keeping_epoch = !a         ? 0
                                : a->turns ? pl_epoch(m->pipe)
                                           : a->epoch});
}

void dmn_adapt_forget(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;

    a->serving = a->corrected = a->alarmed = false;
    a->split_lost = TUN_TURNS_OPEN;
    a->verify_left = 0;
    a->job = dmn_adapt_job_leave(a->job);
    a->event = dmn_event_unref(a->event);
    free(base_take(a->carried));
    a->unverified = false;
    tun_problem_deinit(&a->good[0]);
    tun_problem_deinit(&a->good[1]);
    dmn_adapt_publish(m);
}

const char *dmn_adapt_phase_name(enum dmn_adapt_phase phase)
{
    static const char *const names[] = {
        [DMN_ADAPT_OFF] = "off",           [DMN_ADAPT_PINNED] = "pinned",
        [DMN_ADAPT_WAITING] = "waiting",   [DMN_ADAPT_WATCHING] = "watching",
        [DMN_ADAPT_DECIDING] = "deciding", [DMN_ADAPT_VERIFYING] = "verifying",
        [DMN_ADAPT_TUNING] = "tuning",
    };

    return names[phase];
}

static enum dmn_adapt_phase phase_of(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    if (!dmn_config_int(dmn_machine_config(m->of->machine), DMN_KEY_ADAPT_ENABLED)) {
        return DMN_ADAPT_OFF;
    }
    if (dmn_adapt_pinned(m)) {
        return DMN_ADAPT_PINNED;
    }
    if (!a) {
        return DMN_ADAPT_WAITING;
    }
    return a->job                                     ? DMN_ADAPT_DECIDING
           : a->turns                                 ? DMN_ADAPT_VERIFYING
           : a->search                                ? DMN_ADAPT_TUNING
           : !a->serving || !dmn_adapt_free_to_act(m) ? DMN_ADAPT_WAITING
           : a->verify_left > 0                       ? DMN_ADAPT_VERIFYING
                                                      : DMN_ADAPT_WATCHING;
}

void dmn_adapt_state(const struct dmn_model *m, struct dmn_adapt_state *ret)
{
    const struct dmn_adapt_model *a = m->adapt;

    *ret = (struct dmn_adapt_state){.phase = phase_of(m), .known = a != NULL};
    if (a) {
        ret->decided = a->decided;
        ret->cause = a->last_cause;
        ret->outcome = a->last_outcome;
        ret->held = a->held;
        ret->corrected = a->corrected;
        ret->cooldown_ns = tun_adapt_cooldown_ns(a->watch);
        ret->windows = a->windows;
        ret->decisions = a->decisions;
        ret->switches = a->switches;
    }
}

bool dmn_adapt_watched(const struct dmn_model *m, size_t index, struct tun_watch_view *ret)
{
    return m->adapt && m->adapt->serving && tun_adapt_watch(m->adapt->watch, index, ret);
}
