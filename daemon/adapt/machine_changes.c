/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports changes of governors, limits and heat, even if no decision is about them.
 *
 * Each new snapshot is compared with the last known state. Every model keeps a change until a
 * decision of the same cause reports it. After a while the change gets an event of its own: the
 * plan was the user's, was not watched yet, or the decision was about something else.
 */

#include "daemon/adapt/adapter_private.h"

#define LIMIT_STEP 0.01 /* relative: a smaller change of a limit is ignored */
/* A decision may take this long: three readings, solving, one window. */
#define ANSWER_NS (2 * BASE_NS_PER_S)

static struct dmn_adapt_policy *known_policy(struct dmn_adapt_machine *k, uint32_t number)
{
    for (size_t i = 0; i < k->count; i++) {
        if (k->policies[i].number == number) {
            return &k->policies[i];
        }
    }
    if (k->count < GOV_POLICY_MAX) {
        k->policies[k->count] = (struct dmn_adapt_policy){.number = number};
        return &k->policies[k->count++];
    }
    return NULL;
}

static bool differs(uint64_t before, uint64_t now)
{
    double step = (double)before * LIMIT_STEP;

    return before > 0 && now > 0 &&
           ((double)now > (double)before + step || (double)now < (double)before - step);
}

/* Updates @known with what is new about a policy. Return: the cause, with a sentence; or NONE. */
static enum tun_cause look(const struct gov_policy *p, struct dmn_adapt_policy *known, char *ret,
                           size_t bytes)
{
    struct dmn_adapt_policy before = *known;
    uint64_t limit = p->limit_khz == GOV_UNKNOWN ? 0 : p->limit_khz;

    if (p->governor[0]) {
        memcpy(known->governor, p->governor, sizeof(known->governor));
    }
    known->limit_khz = limit ? limit : before.limit_khz;
    if (limit || p->by_heat != GOV_MAYBE) {
        known->by_heat = p->heated;
    }
    if (before.governor[0] && strcmp(before.governor, known->governor) != 0) {
        snprintf(ret, bytes, "governor %s instead of %s", known->governor, before.governor);
        return TUN_CAUSE_GOVERNOR;
    }
    if (!differs(before.limit_khz, limit)) {
        if (before.limit_khz == 0 || before.by_heat == known->by_heat) {
            return TUN_CAUSE_NONE;
        }
        snprintf(ret, bytes, "%s limited by heat", known->by_heat ? "now" : "no longer");
        return TUN_CAUSE_THERMAL;
    }
    snprintf(ret, bytes, "at most %.0f MHz instead of %.0f%s", (double)limit / 1e3,
             (double)before.limit_khz / 1e3, known->by_heat ? ", by heat" : "");
    return known->by_heat || before.by_heat ? TUN_CAUSE_THERMAL : TUN_CAUSE_FREQUENCY;
}

/* What changed in one snapshot for one cause. */
struct seen {
    enum tun_cause cause; /* NONE: unused */
    char what[96];        /* the text of the first policy */
    bool differ;          /* other policies changed differently */
    uint16_t cpus[GOV_CPU_MAX];
    size_t cpu_count;
};

static struct seen *seen_for(struct seen *seen, size_t count, enum tun_cause cause)
{
    for (size_t i = 0; i < count; i++) {
        if (seen[i].cause == TUN_CAUSE_NONE || seen[i].cause == cause) {
            seen[i].cause = cause;
            return &seen[i];
        }
    }
    return NULL;
}

static void add(struct seen *to, const struct gov_snapshot *s, size_t policy, const char *what)
{
    if (to->cpu_count == 0) {
        snprintf(to->what, sizeof(to->what), "%s", what);
    }
    to->differ |= strcmp(to->what, what) != 0;
    for (size_t i = 0; i < s->cpu_count && to->cpu_count < GOV_CPU_MAX; i++) {
        if (s->cpus[i].policy == (int)policy) {
            to->cpus[to->cpu_count++] = s->cpus[i].cpu;
        }
    }
}

static bool spend(double *bucket, uint64_t *filled_ns, uint64_t now_ns, double most, double each_s)
{
    double filled = (double)(now_ns - *filled_ns) / 1e9 / each_s;

    *bucket = *filled_ns == 0 || filled > most ? most : base_min(most, *bucket + filled);
    *filled_ns = now_ns;
    if (*bucket < 1) {
        return false;
    }
    *bucket -= 1;
    return true;
}

bool dmn_adapt_may_tell(struct dmn_adapt_model *a, uint64_t now_ns)
{
    bool may = spend(&a->kept_left, &a->kept_ns, now_ns, DMN_ADAPT_KEPT, DMN_ADAPT_KEPT_S);

    a->untold += !may;
    return may;
}

static void remember(struct dmn_adapt_model *a, const struct seen *seen, uint64_t now_ns)
{
    struct dmn_adapt_seen *to;
    char cpus[96];

    if (a->seen_count == DMN_ADAPT_SEEN ||
        !spend(&a->seen_left, &a->seen_ns, now_ns, DMN_ADAPT_CHANGES, DMN_ADAPT_CHANGES_S)) {
        a->untold++;
        return;
    }
    to = &a->seen[a->seen_count++];
    *to = (struct dmn_adapt_seen){.cause = seen->cause, .at_ns = now_ns};
    gov_cpulist_format(seen->cpus, seen->cpu_count, cpus, sizeof(cpus));
    snprintf(to->text, sizeof(to->text), "core%s %s: %s%s", base_plural(seen->cpu_count), cpus,
             seen->what, seen->differ ? ", and others" : "");
}

void dmn_adapt_machine_see(struct dmn_adapt *adapt, const struct gov_snapshot *s, uint64_t now_ns)
{
    struct dmn_adapt_machine *k = &adapt->known;
    struct seen seen[3] = {{0}}; /* one per cause */

    if (!s || s->sequence == k->sequence) {
        return;
    }
    k->sequence = s->sequence;
    for (size_t i = 0; i < s->policy_count; i++) {
        struct dmn_adapt_policy *known = known_policy(k, s->policies[i].number);
        char what[sizeof(seen[0].what)];
        enum tun_cause cause =
            known ? look(&s->policies[i], known, what, sizeof(what)) : TUN_CAUSE_NONE;
        struct seen *to = cause ? seen_for(seen, base_array_count(seen), cause) : NULL;

        if (to) {
            add(to, s, i, what);
        }
    }
    for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
        for (size_t i = 0; m->adapt && i < base_array_count(seen) && seen[i].cause; i++) {
            remember(m->adapt, &seen[i], now_ns);
        }
    }
}

static void forget(struct dmn_adapt_model *a, size_t index)
{
    a->seen_count--;
    memmove(&a->seen[index], &a->seen[index + 1], (a->seen_count - index) * sizeof(a->seen[0]));
}

bool dmn_adapt_machine_told(struct dmn_adapt_model *a, enum tun_cause cause)
{
    bool any = false;

    for (size_t i = a->seen_count; i-- > 0;) {
        if (a->seen[i].cause == cause) {
            forget(a, i);
            any = true;
        }
    }
    return any;
}

/* Why nothing follows from a change. */
static const char *reason(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    if (dmn_origin_pinned(m->origin)) {
        return "the plan is the user's";
    }
    if (!a->serving) {
        return "the plan is not watched yet";
    }
    return a->state.held == TUN_HOLD_COOLDOWN ? "the plan stays until the cool-down is over"
           : a->state.held == TUN_HOLD_BUDGET
               ? "the plan stays until the hour allows another change"
               : "the plan stays";
}

/* What the watch is to be told, once there is one. */
static unsigned event_of(enum tun_cause cause)
{
    return cause == TUN_CAUSE_THERMAL    ? TUN_EVENT_THERMAL
           : cause == TUN_CAUSE_GOVERNOR ? TUN_EVENT_GOVERNOR
                                         : TUN_EVENT_FREQUENCY;
}

void dmn_adapt_machine_tell(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;

    while (a->seen_count > 0 && !a->job && !a->search && now_ns - a->seen[0].at_ns > ANSWER_NS) {
        char detail[sizeof(a->seen[0].text) + 64];

        snprintf(detail, sizeof(detail), "%s; %s", a->seen[0].text, reason(m));
        dmn_adapt_tell(m,
                       (struct dmn_history_event){.cause = dmn_cause_of(a->seen[0].cause),
                                                  .detail = detail,
                                                  .origin = m->origin,
                                                  .outcome = DMN_OUTCOME_KEPT,
                                                  .fps_before = dmn_adapt_fps(a, 3)},
                       NULL);
        if (dmn_adapt_searches(m)) {
            a->due |= event_of(a->seen[0].cause);
        }
        forget(a, 0);
    }
}
