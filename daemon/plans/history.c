/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/history.h"

#include "base/base.h"

const char *const dmn_event_outcome_names[DMN_OUTCOME_COUNT] = {
    [DMN_OUTCOME_SERVING] = "serving",
    [DMN_OUTCOME_SWITCHED] = "switched",
    [DMN_OUTCOME_KEPT] = "kept",
    [DMN_OUTCOME_REVERTED] = "reverted",
    [DMN_OUTCOME_ROLLED_BACK] = "rolled back",
    [DMN_OUTCOME_CANCELLED] = "cancelled",
    [DMN_OUTCOME_DEADLINE] = "deadline",
    [DMN_OUTCOME_FAILED] = "failed",
    [DMN_OUTCOME_NOTED] = "noted",
    [DMN_OUTCOME_TUNING] = "tuning",
    [DMN_OUTCOME_TUNED] = "tuned",
};

const char *const dmn_trial_role_names[] = {
    [DMN_ROLE_SERVING] = "serving", [DMN_ROLE_BEFORE] = "before", [DMN_ROLE_KNOWN] = "known",
    [DMN_ROLE_SHAPES] = "shapes",   [DMN_ROLE_SEARCH] = "search", [DMN_ROLE_AGAIN] = "again",
    [DMN_ROLE_TURNS] = "turns",
};

/* ---- decisions ---- */

struct dmn_decided *dmn_decided_new(struct tun_record *r, const struct tun_decision *d)
{
    struct dmn_decided *to = calloc(1, sizeof(*to));

    if (!to) {
        return NULL;
    }
    to->references = 1;
    to->record = *r;
    *r = TUN_RECORD_NULL;
    to->replan = d->replan;
    to->cause = d->cause;
    to->hold = d->hold;
    to->plan = d->plan;
    to->gain = d->gain;
    return to;
}

struct dmn_decided *dmn_decided_ref(struct dmn_decided *d)
{
    if (d) {
        d->references++;
    }
    return d;
}

struct dmn_decided *dmn_decided_unref(struct dmn_decided *d)
{
    if (d && --d->references == 0) {
        tun_record_deinit(&d->record);
        free(d);
    }
    return NULL;
}

/* ---- events ---- */

/* Frees the array and the strings of its trials. */
static void free_trials(struct dmn_history_trial *trials, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(trials[i].plan);
    }
    free(trials);
}

struct dmn_history_event *dmn_event_ref(struct dmn_history_event *e)
{
    if (e) {
        e->references++;
    }
    return e;
}

struct dmn_history_event *dmn_event_unref(struct dmn_history_event *e)
{
    if (e && --e->references == 0) {
        free_trials(e->trials, e->trial_count);
        dmn_decided_unref(e->decided);
        free((char *)e->model);
        free((char *)e->detail);
        free((char *)e->plan_before);
        free((char *)e->plan_after);
        free(e);
    }
    return NULL;
}

/* Adds the plan as it served: to the trials of a search, else in place of an earlier one. */
static void add_serving(struct dmn_history_event *e, double fps, uint64_t frames)
{
    size_t before = e->searched ? e->trial_count : 0;
    struct dmn_history_trial *trials = calloc(before + 1, sizeof(*trials));

    if (!trials) {
        return;
    }
    for (size_t i = 0; i < before; i++) {
        trials[i] = e->trials[i];
        e->trials[i].plan = NULL;
    }
    trials[before] = (struct dmn_history_trial){.plan = strdup(e->plan_after),
                                                .role = DMN_ROLE_SERVING,
                                                .bottleneck_ns = fps > 0 ? 1e9 / fps : 0,
                                                .frames = frames,
                                                .kept = e->outcome == DMN_OUTCOME_SWITCHED};
    free_trials(e->trials, e->trial_count);
    e->trials = trials;
    e->trial_count = before + 1;
}

/* The newest measurement of the plan that serves after a search is the one that is kept. */
static void mark_kept(struct dmn_history_event *e)
{
    bool found = false;

    for (size_t i = e->trial_count; i-- > 0;) {
        struct dmn_history_trial *t = &e->trials[i];

        t->kept =
            !found && !t->stopped && !t->failed && t->plan && strcmp(t->plan, e->plan_after) == 0;
        found |= t->kept;
    }
}

void dmn_event_measured(struct dmn_history_event *e, enum dmn_event_outcome outcome, double fps,
                        uint64_t frames, uint64_t lost)
{
    if (!e) {
        return;
    }
    e->outcome = outcome;
    e->fps_after = fps;
    e->lost = e->searched ? base_max(e->lost, lost) : lost;
    add_serving(e, fps, frames);
    if (outcome == DMN_OUTCOME_ROLLED_BACK) {
        char *plan = strdup(e->plan_before ? e->plan_before : "");

        if (plan) {
            free((char *)e->plan_after);
            e->plan_after = plan;
        }
    }
    if (e->searched) {
        mark_kept(e);
    }
}

/* ---- the ring ---- */

int dmn_history_init(struct dmn_history *h, size_t size)
{
    *h = (struct dmn_history){.size = size, .next_id = 1};
    h->events = calloc(size, sizeof(struct dmn_history_event *));
    return h->events ? 0 : -ENOMEM;
}

void dmn_history_deinit(struct dmn_history *h)
{
    for (size_t i = 0; h->events && i < h->size; i++) {
        dmn_event_unref(h->events[i]);
    }
    free(h->events);
    *h = (struct dmn_history){0};
}

void dmn_history_now(char ret[DMN_DATE_MAX])
{
    char date[32];
    struct timespec now;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret, DMN_DATE_MAX, "%s.%03ldZ", date, now.tv_nsec / 1000000);
}

struct dmn_history_event *dmn_history_get(const struct dmn_history *h, size_t back)
{
    return back < h->count ? h->events[(h->at + 2 * h->size - 1 - back) % h->size] : NULL;
}

static void drop_old_decisions(struct dmn_history *h)
{
    size_t decisions = 0;

    for (size_t i = 0; i < h->count; i++) {
        struct dmn_history_event *e = dmn_history_get(h, i);

        if (e->decided && ++decisions > DMN_HISTORY_DECISIONS) {
            e->decided = dmn_decided_unref(e->decided);
        }
    }
}

struct dmn_history_event *dmn_history_add(struct dmn_history *h, const struct dmn_history_event *e)
{
    struct dmn_history_event *to = malloc(sizeof(*to));

    if (!to) {
        free_trials(e->trials, e->trial_count);
        return NULL;
    }
    *to = *e;
    to->references = 1;
    to->decided = dmn_decided_ref(e->decided);
    to->model = strdup(e->model);
    to->detail = strdup(e->detail ? e->detail : "");
    to->plan_before = e->plan_before && *e->plan_before ? strdup(e->plan_before) : NULL;
    to->plan_after = strdup(e->plan_after);
    if (!to->model || !to->detail || !to->plan_after) {
        return dmn_event_unref(to);
    }
    if (to->searched) {
        mark_kept(to);
    }
    dmn_history_now(to->at);
    to->at_ns = base_now_ns();
    to->id = h->next_id++;
    dmn_event_unref(h->events[h->at]);
    h->events[h->at] = to;
    h->at = (h->at + 1) % h->size;
    h->count = base_min(h->count + 1, h->size);
    if (to->decided) {
        drop_old_decisions(h);
    }
    return to;
}

static bool changed_plan(const struct dmn_history_event *e)
{
    return e->outcome == DMN_OUTCOME_ROLLED_BACK || !e->plan_before ||
           strcmp(e->plan_before, e->plan_after) != 0;
}

const struct dmn_history_event *dmn_history_chosen(const struct dmn_history *h, const char *model,
                                                   const char *plan)
{
    const struct dmn_history_event *e;

    for (size_t i = 0; (e = dmn_history_get(h, i)); i++) {
        if (strcmp(e->model, model) != 0 || e->cause == DMN_CAUSE_LINK ||
            e->cause == DMN_CAUSE_BOARD) {
            continue;
        }
        if (strcmp(e->plan_after, plan) != 0) {
            return NULL;
        }
        if (changed_plan(e)) {
            return e;
        }
    }
    return NULL;
}

const char *dmn_event_chooser(const struct dmn_history_event *e)
{
    bool decided = (e->cause > DMN_CAUSE_NONE && e->cause < DMN_CAUSE_START &&
                    e->cause != DMN_CAUSE_GPIO) || /* the button asks for a retune */
                   e->cause == DMN_CAUSE_MODELS;

    if (e->outcome == DMN_OUTCOME_SERVING) {
        return "start";
    }
    if (decided) {
        return "adaptation";
    }
    if (e->searched) {
        return "retune";
    }
    if (dmn_origin_pinned(e->origin)) {
        return e->origin.from == DMN_FROM_USER ? "hand" : "config";
    }
    return "request";
}
