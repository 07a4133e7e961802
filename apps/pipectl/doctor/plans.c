/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: plans that others would beat, costs that nobody measured, heavy units. */
#include <math.h>

#include "apps/pipectl/doctor/facts.h"

#define BETTER 0.05              /* gain of another plan that is worth a word */
#define GUESSED 0.6              /* share of predicted figures in a cost table */
#define HEAVY 0.1                /* share of a frame that makes a unit heavy */
#define HEAVY_ALL 0.25           /* heavy units together */
#define HEAVY_UNITS 3u           /* to name */
#define INT8_SAVES (1 - 1 / 1.3) /* int8 is at least 1.3 times as fast: docs/quantisation.md */

/* Another plan, and what it would gain in frames/s. */
struct rival {
    const char *plan;
    double gain;
    bool measured;
};

/* The best trial of the newest search that also measured the present plan. */
static void measured_rival(const struct doctor *d, const json_t *model, struct rival *ret)
{
    const json_t *events = json_object_get(d->sample, "events");

    for (size_t i = json_array_size(events); i-- > 0;) {
        const json_t *e = json_array_get(events, i), *best = NULL;
        double present_ms = NAN, best_ms = NAN;

        if (strcmp(ctl_text(e, "model"), ctl_text(model, "name")) != 0) {
            continue;
        }
        json_text_each(json_object_get(e, "trials"), k, t) {
            double ms = ctl_value(t, "bottleneck_ms");

            if (strcmp(ctl_text(t, "plan"), ctl_text(model, "plan")) == 0) {
                present_ms = ms < present_ms || isnan(present_ms) ? ms : present_ms;
            } else if (ms < best_ms || isnan(best_ms)) {
                best_ms = ms;
                best = t;
            }
        }
        if (best && present_ms > 0 && best_ms > 0) {
            *ret = (struct rival){ctl_text(best, "plan"), present_ms / best_ms - 1, true};
            return;
        }
    }
}

static void predicted_rival(const json_t *explanation, struct rival *ret)
{
    json_text_each(json_object_get(explanation, "runners_up"), i, r) {
        double gain = ctl_value(r, "gain");

        if (gain > ret->gain) {
            *ret = (struct rival){ctl_text(r, "plan"), gain, false};
        }
    }
}

static const json_t *explanation_of(const struct doctor *d, const char *model)
{
    return json_object_get(json_object_get(d->sample, "explanations"), model);
}

void doctor_better_plan(struct doctor *d)
{
    DOCTOR_EACH_MODEL(d, i, m) {
        const char *name = ctl_text(m, "name"), *origin = ctl_text(m, "algorithm");
        const json_t *explanation = explanation_of(d, name);
        bool users = strcmp(origin, "manual") == 0 || strcmp(origin, "config") == 0;
        struct doctor_stage busiest = {.busy = NAN};
        struct rival r = {0};
        char advice[DOCTOR_TEXT];

        if (!users || strcmp(ctl_text(explanation, "objective"), "throughput") != 0) {
            continue; /* the daemon's own plan is the best that it knows */
        }
        measured_rival(d, m, &r);
        if (!r.measured) {
            predicted_rival(explanation, &r);
        }
        if (!(r.gain > BETTER)) {
            continue;
        }
        snprintf(advice, sizeof(advice),
                 "Give planning back: pipectl plan auto --model %s%s. Or pipectl retune --model %s "
                 "measures both on live frames.",
                 name,
                 strcmp(origin, "config") == 0 ? ", and take the key plan out of its entry in "
                                                 "models"
                                               : "",
                 name);
        doctor_busiest(d, m, &busiest);
        doctor_find(d, name, doctor_winnable(r.gain / (1 + r.gain), busiest.busy), advice,
                    "The plan %s is %s; %s is %s to serve %.0f %% more frames/s.",
                    ctl_text(m, "plan"),
                    strcmp(origin, "config") == 0 ? "the configuration's" : "a user's", r.plan,
                    r.measured ? "measured" : "predicted", 100 * r.gain);
    }
}

void doctor_guessed_costs(struct doctor *d)
{
    DOCTOR_EACH_MODEL(d, i, m) {
        const json_t *table = json_object_get(explanation_of(d, ctl_text(m, "name")), "table");
        double guessed = ctl_value(table, "predicted");
        double all = guessed + ctl_value(table, "measured") + ctl_value(table, "saved");

        if (guessed > GUESSED * all && !doctor_is_aside(d, m)) {
            doctor_find(d, ctl_text(m, "name"), NAN,
                        "pipectl retune measures plans on live frames; pipectl profile, while "
                        "nobody uses the daemon, makes the guesses better.",
                        "Costs are guesses: %.0f of %.0f figures of the cost table are predicted, "
                        "so a better plan may not be known.",
                        guessed, all);
        }
    }
}

struct heavy {
    double share[HEAVY_UNITS], all, sum_ms, frame_ms;
    json_int_t unit[HEAVY_UNITS];
    size_t count;
};

/* Keeps the largest, in the order of their share. */
static void keep_heavy(struct heavy *h, json_int_t unit, double share)
{
    size_t at = h->count;

    if (share < HEAVY) {
        return;
    }
    while (at > 0 && h->share[at - 1] < share) {
        at--;
    }
    if (at >= HEAVY_UNITS) {
        return;
    }
    h->count = base_min(h->count + 1, (size_t)HEAVY_UNITS);
    for (size_t i = h->count - 1; i > at; i--) {
        h->share[i] = h->share[i - 1];
        h->unit[i] = h->unit[i - 1];
    }
    h->share[at] = share;
    h->unit[at] = unit;
}

/* @pictures: share of the time in which pictures were converted, by unit 0, whose time bounds it:
 * the share is of wall time, the units' times leave out what others took. */
static struct heavy heavy_of(const json_t *units, double pictures)
{
    struct heavy h = {0};
    double pictures_ms;

    json_text_each(units, i, u) {
        double ms = ctl_value(u, "ewma_ms");

        h.frame_ms += ms > 0 ? ms : 0;
    }
    pictures_ms = ctl_value(json_array_get(units, 0), "ewma_ms");
    pictures_ms = pictures_ms > 0 ? base_min(pictures * h.frame_ms, pictures_ms) : 0;
    h.frame_ms -= pictures_ms;
    json_text_each(units, i, u) {
        double ms = ctl_value(u, "ewma_ms") - (i == 0 ? pictures_ms : 0);

        if (h.frame_ms > 0 && ms > 0 && ctl_value(u, "weight_bytes") > 0) {
            keep_heavy(&h, json_integer_value(json_object_get(u, "unit")), ms / h.frame_ms);
        }
    }
    for (size_t i = 0; i < h.count; i++) {
        h.all += h.share[i];
    }
    h.sum_ms = h.all * h.frame_ms;
    return h;
}

void doctor_heavy_units(struct doctor *d)
{
    json_text_each(d->models, i, m) {
        const char *name = ctl_text(m, "name");
        const json_t *status = doctor_model(d, m, "name");
        struct heavy h = heavy_of(json_object_get(json_object_get(d->sample, "units"), name),
                                  doctor_pictures_share(d, status));
        struct doctor_stage busiest = {.busy = NAN, .runs = 1};
        char list[96] = "", advice[DOCTOR_TEXT];

        doctor_busiest(d, status, &busiest);
        if (h.all < HEAVY_ALL || ctl_value(m, "integers") > 0 || !status ||
            doctor_is_aside(d, status)) {
            continue;
        }
        for (size_t k = 0; k < h.count; k++) {
            base_append(list, sizeof(list), "%s%lld",
                        k == 0             ? ""
                        : k + 1 == h.count ? " and "
                                           : ", ",
                        (long long)h.unit[k]);
        }
        snprintf(advice, sizeof(advice),
                 "Quantise the model: pipectl quantize %s --calibrate DIR, which serves integers "
                 "only if examples keep their class and it is faster. pipectl units --sort time "
                 "lists all.",
                 name);
        doctor_find(d, name, doctor_winnable(h.all * INT8_SAVES * busiest.runs, busiest.busy),
                    advice, "Unit%s %s take%s %.0f %% of a frame, %.2f of %.2f ms, in f32.",
                    base_plural(h.count), list, h.count == 1 ? "s" : "", 100 * h.all, h.sum_ms,
                    h.frame_ms);
    }
}
