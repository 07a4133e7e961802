/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of governors, limits and heat, told even where no decision is about them.
 *
 * Each new snapshot is compared with what was known before. What changed is kept for every model
 * until a decision of the same cause tells of it; one that nobody told of for a while becomes an
 * event of its own: the plan was the user's, was not watched yet, or something else was decided.
 */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/adapt_private.h"

#define LIMIT_STEP 0.01 /* relative: a limit that differs by more is another one */
/* So long a decision may take: three readings, the solution, a window. */
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

static bool too_hot(const struct gov_snapshot *s)
{
    for (size_t z = 0; z < s->zone_count; z++) {
        if (s->zones[z].past_passive == GOV_YES) {
            return true;
        }
    }
    return false;
}

/* 0: unknown. */
static uint64_t limit_of(const struct gov_policy *p)
{
    uint64_t limit = base_min(p->max_khz, p->firmware_khz);

    return limit == GOV_UNKNOWN ? 0 : limit;
}

static bool differs(uint64_t before, uint64_t now)
{
    double step = (double)before * LIMIT_STEP;

    return before > 0 && now > 0 &&
           ((double)now > (double)before + step || (double)now < (double)before - step);
}

/* What is new about a policy goes into @known. Return: the cause and a sentence, or NULL. */
static const char *look(const struct gov_snapshot *s, const struct gov_policy *p,
                        struct dmn_adapt_policy *known, char *ret, size_t bytes)
{
    struct dmn_adapt_policy before = *known;
    uint64_t limit = limit_of(p);
    bool limited = p->hardware_khz != GOV_UNKNOWN && limit > 0 && limit < p->hardware_khz;

    if (p->governor[0]) {
        memcpy(known->governor, p->governor, sizeof(known->governor));
    }
    known->limit_khz = limit ? limit : before.limit_khz;
    if (limit || p->by_heat != GOV_MAYBE) {
        known->by_heat = p->by_heat == GOV_YES || (limited && too_hot(s));
    }
    if (before.governor[0] && strcmp(before.governor, known->governor) != 0) {
        snprintf(ret, bytes, "governor %s instead of %s", known->governor, before.governor);
        return tun_cause_name(TUN_CAUSE_GOVERNOR);
    }
    if (!differs(before.limit_khz, limit)) {
        if (before.limit_khz == 0 || before.by_heat == known->by_heat) {
            return NULL;
        }
        snprintf(ret, bytes, "%s limited by heat", known->by_heat ? "now" : "no longer");
        return tun_cause_name(TUN_CAUSE_THERMAL);
    }
    snprintf(ret, bytes, "at most %.0f MHz instead of %.0f%s", (double)limit / 1e3,
             (double)before.limit_khz / 1e3, known->by_heat ? ", by heat" : "");
    return tun_cause_name(known->by_heat || before.by_heat ? TUN_CAUSE_THERMAL
                                                           : TUN_CAUSE_FREQUENCY);
}

/* What changed in one snapshot for one reason. */
struct seen {
    const char *cause; /* static; NULL: a free one */
    char what[96];     /* of the first policy */
    bool differ;       /* of others it is something else */
    uint16_t cpus[GOV_CPU_MAX];
    size_t cpu_count;
};

static struct seen *seen_for(struct seen *seen, size_t count, const char *cause)
{
    for (size_t i = 0; i < count; i++) {
        if (!seen[i].cause || strcmp(seen[i].cause, cause) == 0) {
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
    dmn_cpu_list_format(seen->cpus, seen->cpu_count, cpus, sizeof(cpus));
    snprintf(to->text, sizeof(to->text), "core%s %s: %s%s", seen->cpu_count == 1 ? "" : "s", cpus,
             seen->what, seen->differ ? ", and others" : "");
}

void dmn_adapt_machine_see(struct dmn_daemon *d, const struct gov_snapshot *s, uint64_t now_ns)
{
    struct dmn_adapt_machine *k = &d->adapt->machine;
    struct seen seen[3] = {{0}}; /* one for each cause */

    if (!s || s->sequence == k->sequence) {
        return;
    }
    k->sequence = s->sequence;
    for (size_t i = 0; i < s->policy_count; i++) {
        struct dmn_adapt_policy *known = known_policy(k, s->policies[i].number);
        char what[sizeof(seen[0].what)];
        const char *cause = known ? look(s, &s->policies[i], known, what, sizeof(what)) : NULL;
        struct seen *to = cause ? seen_for(seen, base_array_count(seen), cause) : NULL;

        if (to) {
            add(to, s, i, what);
        }
    }
    for (struct dmn_model *m = d->models; m; m = m->next) {
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

bool dmn_adapt_machine_told(struct dmn_adapt_model *a, const char *cause)
{
    bool any = false;

    for (size_t i = a->seen_count; i-- > 0;) {
        if (strcmp(a->seen[i].cause, cause) == 0) {
            forget(a, i);
            any = true;
        }
    }
    return any;
}

/* Why nothing follows from it. */
static const char *reason(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    if (dmn_adapt_pinned(m)) {
        return "the plan is the user's";
    }
    if (!a->serving) {
        return "the plan is not watched yet";
    }
    return a->held && strcmp(a->held, tun_hold_name(TUN_HOLD_COOLDOWN)) == 0
               ? "the plan stays until the cool-down is over"
           : a->held && strcmp(a->held, tun_hold_name(TUN_HOLD_BUDGET)) == 0
               ? "the plan stays until the hour allows another change"
               : "the plan stays";
}

void dmn_adapt_machine_tell(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;

    while (a->seen_count > 0 && !a->job && !a->tuning && now_ns - a->seen[0].at_ns > ANSWER_NS) {
        char detail[sizeof(a->seen[0].text) + 64], plan[PL_PLAN_TEXT_MAX];

        snprintf(detail, sizeof(detail), "%s; %s", a->seen[0].text, reason(m));
        dmn_model_plan_text(m, plan);
        json_decref(dmn_adapt_tell(m, &(struct dmn_adapt_told){
                                          .cause = a->seen[0].cause,
                                          .detail = detail,
                                          .algorithm = m->algorithm,
                                          .outcome = "kept",
                                          .before = plan,
                                          .after = plan,
                                          .fps_before = dmn_adapt_fps(a, 3),
                                      }));
        forget(a, 0);
    }
}
