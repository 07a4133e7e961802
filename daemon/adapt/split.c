/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits an EP while a core of it is slowed, and joins it again.
 *
 * tuner/adapt/apart.h tells which cores are slower than their siblings. Each becomes an EP of its
 * own, by a change as of cores (cores.c), which the watch sees as any other EP. docs/adaptation.md
 * says when, how it is proved (live_turns.c), and what is not split.
 */

#include "daemon/adapt/adapter_private.h"
#include "pipeline/plan_move.h"

#define AGAIN_NS (5 * BASE_NS_PER_S) /* from a join to the next split; doubled for hasty ones */
#define REFUSED_NS (10 * BASE_NS_PER_S)
#define WANTED_NS (60 * BASE_NS_PER_S) /* an EP that a user needs whole stays so */
#define STAYS_NS BASE_NS_PER_S /* from a join that turns refuted to the next; doubled each time */
#define HASTY_MOST 6u
#define ALIKE_WINDOWS 2u /* in a row, in which cores that were slowed are not, end turns */

/* Return: nothing but this prevents a change, and no verdict about a plan is pending. */
static bool all_calm(const struct dmn_adapt *adapt)
{
    for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (!dmn_adapt_free_to_act(m) || !m->adapt || m->adapt->job || m->adapt->search ||
            m->adapt->verify_left > 0) {
            return false;
        }
    }
    return adapt->models->models && LIST_EMPTY(&adapt->models->arrivals);
}

static bool any_pinned(const struct dmn_adapt *adapt)
{
    for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (dmn_origin_pinned(m->origin)) {
            return true;
        }
    }
    return false;
}

/* The model that shows which cores are slow: the only one that frames come in for; NULL: there are
 * several, or none. */
static const struct dmn_model *only_busy(const struct dmn_adapt *adapt)
{
    const struct dmn_model *busy = NULL;

    for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (m->adapt && dmn_adapt_fps(m->adapt, DMN_ADAPT_PACE) > 0) {
            if (busy) {
                return NULL;
            }
            busy = m;
        }
    }
    return busy;
}

/* Return: no core that is split off is slowed any more, as the clocks of a model's teams show. */
static bool as_whole(const struct dmn_adapt *adapt, size_t windows)
{
    for (size_t i = 0; i < adapt->split.count; i++) {
        bool alike = false;

        for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
            alike |= m->adapt && m->adapt->apart &&
                     tun_apart_alike(m->adapt->apart, adapt->split.cores[i].cpu, windows);
        }
        if (!alike) {
            return false;
        }
    }
    return true;
}

/* "core 1", "cores 1,3" */
static void name_cores(const struct tun_slow_core *cores, size_t count, char *ret, size_t bytes)
{
    uint16_t cpus[DMN_SPLIT_MAX] = {0};
    char list[64];

    for (size_t i = 0; i < count; i++) {
        cpus[i] = cores[i].cpu;
    }
    gov_cpulist_format(cpus, count, list, sizeof(list));
    snprintf(ret, bytes, "core%s %s", base_plural(count), list);
}

static void join(struct dmn_adapt *adapt, const char *why, bool must)
{
    static const struct dmn_split none;
    char cores[80], text[160];

    name_cores(adapt->split.cores, adapt->split.count, cores, sizeof(cores));
    snprintf(text, sizeof(text), "%s; EP with %s is joined again", why, cores);
    dmn_adapt_parts_begin(adapt, &none, text, must);
}

void dmn_split_end(struct dmn_adapt *adapt)
{
    if (adapt->split.count > 0 && !adapt->change) {
        join(adapt, "adaptation is off", true);
    }
}

/* Return: plans were tried on the parts, and none was better. Remembers which cores are not worth
 * it. */
static bool any_lost(struct dmn_adapt *adapt)
{
    bool lost = adapt->together.parts_lost;

    adapt->lost = lost ? adapt->split : adapt->lost;
    adapt->together.parts_lost = false;
    for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (m->adapt->split_lost == TUN_TURNS_WORSE) {
            adapt->lost = adapt->split;
        }
        lost |= m->adapt->split_lost != TUN_TURNS_OPEN;
        m->adapt->split_lost = TUN_TURNS_OPEN;
    }
    return lost;
}

/* Return: the parts are to be joined, as most of the last @windows show. */
static bool to_join(const struct dmn_adapt *adapt, size_t windows, uint64_t now_ns)
{
    return adapt->split.count > 0 && as_whole(adapt, windows) &&
           (adapt->stays == 0 ||
            now_ns - adapt->stays_ns >= STAYS_NS << base_min(adapt->stays, HASTY_MOST));
}

/* Joins if that is due. Return: a change began. */
static bool step_to_join(struct dmn_adapt *adapt, uint64_t now_ns)
{
    const struct dmn_machine *machine = adapt->machine;
    bool lost = any_lost(adapt);

    if (any_pinned(adapt)) {
        join(adapt, "the plan is a user's", true);
    } else if (machine->whole_wanted_ns > adapt->split_ns) {
        join(adapt, "a user's plan needs it", true);
    } else if (lost) {
        join(adapt, "no plan is better on its parts", true);
    } else if (to_join(adapt, TUN_APART_RECENT, now_ns)) {
        join(adapt, "all cores are equally fast again", adapt->plans->mix != NULL);
    }
    return adapt->change != NULL;
}

/* Return: the EP that has the core, if it has others as well; NULL: none. */
static const struct pl_ep *ep_with(const struct pl_ep_set *eps, uint16_t cpu)
{
    size_t e = pl_ep_like(eps, &(struct pl_ep){.cpus = {cpu}, .cpu_count = 1});

    return e != SIZE_MAX && eps->eps[e].cpu_count > 1 ? &eps->eps[e] : NULL;
}

/* How long a core must have been slowed to be worth turns: until what a split gains makes up for
 * them. Of two equal stages of which one is slowed, it makes (factor + 1) / 2 times the frames. */
static uint64_t worth_ns(const struct dmn_model *m, const struct tun_slow_core *core)
{
    return (uint64_t)((double)m->adapt->turns_ns * base_max(1.0, 2 / (core->factor - 1)));
}

/* Adds the cores that were slowed for long enough, of EPs that can be split. Return: the first such
 * EP; NULL: none. */
static const struct pl_ep *add_slow(const struct dmn_adapt *adapt, const struct dmn_model *m,
                                    uint64_t now_ns, struct dmn_split *split)
{
    struct tun_slow_core slow[TUN_APART_CORES_MAX];
    size_t count = tun_apart_slow(m->adapt->apart, slow);
    const struct pl_ep *first = NULL;

    for (size_t i = 0; i < count && split->count < DMN_SPLIT_MAX; i++) {
        const struct pl_ep *ep = ep_with(&adapt->machine->eps, slow[i].cpu);

        if (ep && now_ns - slow[i].since_ns >= worth_ns(m, &slow[i]) &&
            !tun_apart_alike(m->adapt->apart, slow[i].cpu, 1)) {
            split->cores[split->count++] = slow[i];
            first = first ? first : ep;
        }
    }
    return first;
}

/* Return: for these cores, about as slow, a split was not better before. */
static bool was_lost(const struct dmn_adapt *adapt, const struct dmn_split *split)
{
    bool same = adapt->lost.count == split->count;

    for (size_t i = 0; same && i < split->count; i++) {
        const struct tun_slow_core *a = &adapt->lost.cores[i], *b = &split->cores[i];

        same = a->cpu == b->cpu && fabs(log(a->factor / b->factor)) < TUN_LOST_CLEAR;
    }
    return same;
}

/* Return: all teams compute whole frames and share them by speed, so they adapt by themselves: in
 * 191 rounds of bench/adapt_cost.py no plan on the parts was better. */
static bool shares_all(const struct dmn_model *m)
{
    return pl_current_plan(m->pipe)->stage_count == 1 && pl_team_count(m->pipe) > 1 &&
           !dmn_adapt_searches(m); /* which is asked for by any change */
}

static bool may_split(const struct dmn_adapt *adapt, const struct dmn_model *m, uint64_t now_ns)
{
    uint64_t again_ns = AGAIN_NS << base_min(adapt->hasty, HASTY_MOST);

    return !any_pinned(adapt) && (dmn_together(m) || dmn_adapt_pace_ns(m) > 0) &&
           (adapt->split_ns == 0 || now_ns - adapt->split_ns >= again_ns) &&
           (adapt->refused_ns == 0 || now_ns - adapt->refused_ns >= REFUSED_NS) &&
           (adapt->machine->whole_wanted_ns == 0 ||
            now_ns - adapt->machine->whole_wanted_ns >= WANTED_NS);
}

/* What ran alone on a core in the last window, by the EPs as they are when whole: what is split off
 * is compared with its siblings. @ret: [PL_TEAM_MAX]. Return: how many cores; 0 if clients sent too
 * few frames. */
static size_t of_whole(const struct dmn_model *m, struct tun_core_seen *ret)
{
    const struct pl_ep_set *whole = dmn_machine_whole(m->of->machine);
    const struct pl_ep_set *eps = pl_current_eps(m->pipe);
    size_t count = m->adapt->starved ? 0 : m->adapt->alone_count;

    for (size_t i = 0; i < count; i++) {
        ret[i] = m->adapt->alone[i];
        ret[i].ep = (uint16_t)pl_ep_like(whole, &eps->eps[ret[i].ep]);
    }
    return count;
}

static void see(const struct dmn_model *m, uint64_t start_ns)
{
    struct tun_core_seen seen[PL_TEAM_MAX];
    size_t count = of_whole(m, seen);

    tun_apart_see(m->adapt->apart, seen, count, start_ns);
}

/* A window of large networks takes half a second, in which a plan for slowed cores serves after
 * their end. The teams' clocks show it sooner. */
void dmn_split_see_turns(const struct dmn_adapt *adapt, struct dmn_model *m, uint64_t start_ns)
{
    struct tun_core_seen seen[PL_TEAM_MAX];
    bool alike = true;
    size_t count;

    if (adapt->split.count == 0 || adapt->change || start_ns == 0) {
        return;
    }
    count = of_whole(m, seen);
    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < adapt->split.count && alike; i++) {
        alike = tun_apart_times(seen, count, adapt->split.cores[i].cpu) < TUN_APART_ALIKE;
    }
    m->adapt->alike = alike ? m->adapt->alike + 1 : 0;
    if (m->adapt->alike == ALIKE_WINDOWS) {
        dmn_turns_end(m->adapt->turns);
    }
}

/* Return: soon it may be due to split an EP. */
static bool suspects(const struct dmn_adapt *adapt, const struct dmn_model *m, uint64_t now_ns)
{
    struct tun_slow_core slow[TUN_APART_CORES_MAX];
    size_t count = tun_apart_suspects(m->adapt->apart, slow);
    uint64_t more_ns = 2 * TUN_APART_WINDOWS * adapt->period_ms * BASE_NS_PER_MS;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        any |= now_ns - slow[i].since_ns <= worth_ns(m, &slow[i]) + more_ns &&
               ep_with(&adapt->machine->eps, slow[i].cpu) != NULL;
    }
    return any && (dmn_together(m) || only_busy(adapt) == m) && may_split(adapt, m, now_ns);
}

/* While one core of an EP is suspected, or one that was split off seems to be free, it is too early
 * to decide about the EP, and what is measured must not be learned as a cost of its cores. */
void dmn_split_see(struct dmn_adapt *adapt, struct dmn_model *m, uint64_t start_ns, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;

    a->suspects = false;
    if (!a->apart && !(a->apart = tun_apart_new())) {
        return;
    }
    if (a->apart_epoch != pl_epoch(m->pipe)) {
        tun_apart_forget(a->apart);
        a->apart_epoch = pl_epoch(m->pipe);
    }
    if (a->serving && start_ns > 0 && now_ns > start_ns) {
        see(m, start_ns);
        a->suspects = suspects(adapt, m, now_ns) || to_join(adapt, 1, now_ns);
    }
    if (a->suspects) {
        a->alarmed = true;
    }
}

/* Splits an EP that @m shows to have a slowed core, if that is due. Return: a change began. */
static bool split_for(struct dmn_adapt *adapt, const struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_split split = adapt->split;
    const struct pl_ep *ep;
    char cores[80], text[192];

    if (!m->adapt->apart || (shares_all(m) && !dmn_together(m)) || !may_split(adapt, m, now_ns)) {
        return false;
    }
    ep = add_slow(adapt, m, now_ns, &split);
    if (!ep || was_lost(adapt, &split)) {
        return false;
    }
    for (struct dmn_model *each = adapt->models->models; each; each = each->next) {
        if (!each->adapt->corrected) {
            dmn_adapt_unlearn(each);
        }
    }
    name_cores(&split.cores[adapt->split.count], split.count - adapt->split.count, cores,
               sizeof(cores));
    snprintf(text, sizeof(text), "%s: %.1f times slower than its siblings; EP %s is split", cores,
             split.cores[adapt->split.count].factor, ep->name);
    dmn_adapt_parts_begin(adapt, &split, text, false);
    return true;
}

static void step_to_split(struct dmn_adapt *adapt, uint64_t now_ns)
{
    const struct dmn_model *only = only_busy(adapt);
    bool began = false;

    for (const struct dmn_model *m = adapt->models->models; m && !began; m = m->next) {
        began = (m == only || dmn_together(m)) && split_for(adapt, m, now_ns);
    }
}

void dmn_split_step(struct dmn_adapt *adapt, uint64_t now_ns)
{
    if (adapt->change || !all_calm(adapt)) {
        return;
    }
    if (adapt->split.count == 0 || !step_to_join(adapt, now_ns)) {
        step_to_split(adapt, now_ns);
    }
}
