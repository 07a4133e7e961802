/* SPDX-License-Identifier: Apache-2.0 */
/* Reports decisions: history and log. */

#include "daemon/adapt/adapter_private.h"
#include "daemon/service/log.h"

#define AS_GOOD 0.005 /* a smaller gain is reported as none */

/* Writes @detail, and how many events were withheld before this one. */
static void with_untold(struct dmn_model *m, const char *detail, char *ret, size_t bytes)
{
    unsigned untold = m->adapt ? m->adapt->untold : 0;

    snprintf(ret, bytes, "%s", detail);
    if (untold > 0) {
        base_append(ret, bytes, "; %u earlier one%s not reported", untold,
                    untold == 1 ? " was" : "s were");
        m->adapt->untold = 0;
    }
}

/* Adds to @detail how the turns ended. */
static void with_turns(const struct dmn_turns_result *r, char *detail, size_t bytes)
{
    const struct tun_turns_shown *t = &r->shown;

    if (t->pairs == 0) {
        base_append(detail, bytes, "; %s",
                    r->verdict == TUN_TURNS_ENDED
                        ? "the previous plan was no longer slow, so it stays"
                        : "too few frames came in to compare the plans");
        return;
    }
    base_append(detail, bytes, "; in %zu turn%s each it served %.2f times as many frames", t->pairs,
                base_plural(t->pairs), t->ratio);
    if (isfinite(t->high)) {
        base_append(detail, bytes, " (%.2f to %.2f)", t->low, t->high);
    }
    if (r->verdict != TUN_TURNS_BETTER) {
        base_append(detail, bytes, ", so the previous plan stays");
    }
}

/* The plans that took turns, as trials. */
static void add_trials(const struct dmn_model *m, const struct dmn_turns_result *r,
                       struct dmn_history_event *e)
{
    const struct pl_plan *plans[] = {&r->incumbent, &r->challenger};
    const double ns[] = {r->shown.incumbent_ns, r->shown.challenger_ns};

    e->trials = calloc(base_array_count(plans), sizeof(*e->trials));
    for (size_t i = 0; e->trials && i < base_array_count(plans); i++) {
        char text[PL_PLAN_TEXT_MAX];

        pl_plan_format(plans[i], pl_current_eps(m->pipe), text, sizeof(text));
        e->trials[e->trial_count++] =
            (struct dmn_history_trial){.plan = strdup(text),
                                       .role = DMN_ROLE_TURNS,
                                       .bottleneck_ns = ns[i],
                                       .frames = r->frames[i],
                                       .kept = (r->verdict == TUN_TURNS_BETTER) == (i == 1)};
    }
}

struct dmn_history_event *dmn_adapt_tell(struct dmn_model *m, struct dmn_history_event e,
                                         const struct dmn_turns_result *turns)
{
    char detail[900], after[PL_PLAN_TEXT_MAX];

    dmn_model_plan_text(m, after);
    with_untold(m, e.detail, detail, sizeof(detail));
    e.detail = detail;
    e.plan_before = e.plan_before ? e.plan_before : after;
    e.plan_after = after;
    e.fps_after = -1;
    if (turns) {
        with_turns(turns, detail, sizeof(detail));
        add_trials(m, turns, &e);
        e.verdict = turns->verdict;
        e.turns = turns->shown;
        e.lost = turns->failed;
    }
    if (turns && turns->shown.pairs > 0) {
        e.fps_before = 1e9 / turns->shown.incumbent_ns;
        e.fps_after = 1e9 / (turns->verdict == TUN_TURNS_BETTER ? turns->shown.challenger_ns
                                                                : turns->shown.incumbent_ns);
    }
    dmn_log_limited(
        LOG_NOTICE,
        ((struct dmn_log_fields){.id = DMN_MSG_ADAPTED, .model = m->name, .plan = after}),
        "model %s: %s: %s (%s)", m->name, dmn_cause_name(e.cause), detail,
        dmn_event_outcome_names[e.outcome]);
    return dmn_plan_event(m, &e);
}

/* How many times longer an EP takes than the table says at the present frequency: for the units
 * that the decision corrected, else by measurement. */
static double times_slower(const struct tun_record *r, const struct tun_decision *d, size_t ep)
{
    size_t units = r->problem.unit_count, changed = 0;
    double sum = 0;

    for (size_t i = ep * units; i < (ep + 1) * units; i++) {
        if (d->slow[i] != r->slow[i]) {
            sum += log(d->slow[i]);
            changed++;
        }
    }
    return changed ? exp(sum / (double)changed) : d->factor[ep];
}

/* Describes what happened to the EP of the cause. */
static void describe_ep(const struct tun_record *r, const struct tun_decision *d, char *ret,
                        size_t bytes)
{
    const char *name = r->problem.eps[d->ep].name;
    const struct tun_ep_now *k = &r->eps[d->ep];
    double factor = times_slower(r, d, d->ep);

    if (d->cause == TUN_CAUSE_HOTPLUG || d->cause == TUN_CAUSE_CPUSET) {
        snprintf(ret, bytes, "%s has %u of %u cores", name, k->cores, r->problem.eps[d->ep].cores);
    } else if (k->khz > 0 && k->khz_before > 0 && fabs(log(k->khz / k->khz_before)) > 0.01) {
        snprintf(ret, bytes, "%s runs at %.0f MHz instead of %.0f", name, k->khz / 1e3,
                 k->khz_before / 1e3);
    } else if (d->released) {
        snprintf(ret, bytes, "%s is as fast as when free again", name);
    } else if (factor > 1) {
        snprintf(ret, bytes, "%s takes %.2f times as long as when free%s", name, factor,
                 d->quota ? ", by the quota of the service" : "");
    } else {
        snprintf(ret, bytes, "%s takes %.2f times as long as expected", name, factor);
    }
}

/* Describes what happened if it is not about one EP. */
static const char *without_ep(const struct tun_record *r, const struct tun_decision *d)
{
    if (d->cause == TUN_CAUSE_GPIO) {
        return "a GPIO line asks";
    }
    if (r->events & (TUN_EVENT_HOTPLUG | TUN_EVENT_CPUSET)) {
        return "other cores than before";
    }
    if (r->events & TUN_EVENT_PARTS) {
        return "an EP is split or joined";
    }
    if (d->cause == TUN_CAUSE_MEASURED) {
        return "costs were measured since the plan was chosen";
    }
    return r->events & (TUN_EVENT_GOVERNOR | TUN_EVENT_FREQUENCY | TUN_EVENT_THERMAL)
               ? "the machine changed since the last search"
               : "several EPs";
}

void dmn_adapt_detail(const struct tun_record *r, const struct tun_decision *d, char *ret,
                      size_t bytes)
{
    if (d->ep < r->problem.ep_count) {
        describe_ep(r, d, ret, bytes);
    } else {
        snprintf(ret, bytes, "%s", without_ep(r, d));
    }
    if ((d->search && d->replan) || d->hold == TUN_HOLD_TOGETHER) { /* another event tells it */
        return;
    }
    if (d->must) {
        base_append(ret, bytes, "; the previous plan no longer fits");
    } else if (d->hold == TUN_HOLD_NONE && d->gain < AS_GOOD) {
        base_append(ret, bytes, "; the earlier plan is as good and returns");
    } else if (d->hold == TUN_HOLD_NONE) {
        base_append(ret, bytes, "; the new plan should gain %.0f %%", 100 * d->gain);
    } else if (d->hold == TUN_HOLD_GAIN) {
        base_append(ret, bytes, "; the best plan would gain %.1f %%, which is too little",
                    base_max(100 * d->gain, 0.0));
    } else if (d->hold == TUN_HOLD_COOLDOWN || d->hold == TUN_HOLD_BUDGET) {
        const char *until = d->hold == TUN_HOLD_COOLDOWN ? "the cool-down is over"
                                                         : "the hour allows another change";

        if (d->search) {
            base_append(ret, bytes, "; a search waits until %s", until);
        } else {
            base_append(ret, bytes, "; a plan that gains %.0f %% waits until %s", 100 * d->gain,
                        until);
        }
    } else if (d->hold == TUN_HOLD_LOST) {
        base_append(ret, bytes, "; a plan should gain %.0f %%, which turns do not show",
                    100 * d->gain);
    } else if (d->hold == TUN_HOLD_BOUNDS) {
        base_append(ret, bytes, "; no plan keeps the bounds");
    } else {
        base_append(ret, bytes, "; the present plan is the best one");
    }
}
