/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: rates and deadlines that cannot be kept, and frames that were late. */
#include <math.h>

#include "apps/pipectl/doctor/facts.h"

#define LEAST_PART 0.05 /* of a rate that is worth wishing */
#define MARGIN 0.98     /* costs are known no better */
#define FASTER 1.05     /* than its rate */
#define SPARE 1.2       /* times what frames take: a deadline that they keep */
#define CLASS_MOST 7

/* The model whose rate takes most of the cores that limit the plan. */
static const json_t *costliest(const json_t *mix)
{
    const json_t *most = NULL;

    json_text_each(json_object_get(mix, "models"), i, row) {
        if (ctl_real(row, "wished") > 0 &&
            (!most || ctl_real(row, "costs") > ctl_real(most, "costs"))) {
            most = row;
        }
    }
    return most;
}

/* @rate with three digits, and no more of it. */
static double rounded(double rate)
{
    double unit = pow(10, floor(log10(rate)) - 2);

    return floor(rate / unit) * unit;
}

/* With part l of all rates the cores that limit the plan are full: model m has part c of them. With
 * part f of its rate they have time for all of the others' if (1 - c) / l + f c / l <= 1. */
static void find_rates(struct doctor *d, const json_t *mix)
{
    const json_t *row = costliest(mix);
    double kept = ctl_real(mix, "of_wishes"), costs = ctl_real(row, "costs");
    double part = (kept - (1 - costs)) / costs, wished = ctl_real(row, "wished");
    struct ctl_words limits = ctl_mix_limits(mix);
    const char *name = ctl_text(row, "model");
    char advice[DOCTOR_TEXT], cores[sizeof(limits) + 32] = "the cores";

    if (!row || !(costs > 0)) {
        return;
    }
    if (part >= LEAST_PART) {
        snprintf(advice, sizeof(advice),
                 "With less of it all others can be kept: pipectl models set %s --rate %.10g.",
                 name, rounded(MARGIN * part * wished));
    } else {
        snprintf(advice, sizeof(advice),
                 "Wish less of several models: without %s the others can have %.0f %% of theirs. "
                 "With %.0f %% of each rate all can be kept: pipectl models set %s --rate %.10g, "
                 "and so on.",
                 name, 100 * base_min(kept / (1 - costs), 1.0), 100 * MARGIN * kept, name,
                 rounded(MARGIN * kept * wished));
    }
    if (*limits.text) {
        snprintf(cores, sizeof(cores), "%s, which limit%s the plan", limits.text,
                 strstr(limits.text, " and ") ? "" : "s");
    }
    doctor_find(d, name, 1 - kept, advice,
                "Not all rates can be kept: %.1f %% of each can. What %s is to have, %.10g "
                "frames/s, costs most: %.0f %% of %s.",
                100 * kept, name, wished, 100 * costs, cores);
}

static const json_t *wishes_of(const struct doctor *d, const char *model)
{
    return json_object_get(json_text_find(json_object_get(d->after, "models"), "name", model),
                           "wishes");
}

static void find_refusal(struct doctor *d, const json_t *refused)
{
    const char *late = ctl_text(refused, "late"), *model = ctl_text(refused, "model");
    double rate = ctl_real(wishes_of(d, model), "rate");
    char advice[DOCTOR_TEXT], less[192] = "";

    if (strcmp(ctl_text(refused, "why"), "unit") != 0 && rate > 0) {
        snprintf(less, sizeof(less), ", or wish less of %s: pipectl models set %s --rate %.10g",
                 model, model, rounded(rate / 2));
    } else if (strcmp(late, model) != 0) {
        snprintf(less, sizeof(less), ", or keep %s off these cores: pipectl plan set --model %s",
                 model, model);
    }
    snprintf(advice, sizeof(advice),
             "Give %s more time: pipectl models set %s --deadline %.3g%s. The answer says whether "
             "that is enough.",
             late, late, 2 * ctl_real(wishes_of(d, late), "deadline_ms"), less);
    doctor_find(d, late, NAN, advice, "A deadline may be missed. %s", ctl_text(refused, "text"));
}

void doctor_wishes(struct doctor *d)
{
    const json_t *mix = json_object_get(d->after, "mix");
    const json_t *refused = json_object_get(mix, "refused");
    bool in_part = ctl_is(mix, "rates") && ctl_real(mix, "of_wishes") < CTL_ALL;

    if (in_part) {
        find_rates(d, mix);
    }
    if (json_is_object(refused) && !(in_part && strcmp(ctl_text(refused, "why"), "load") == 0)) {
        find_refusal(d, refused);
    }
}

/* The highest class of the other models; -1: there are none. */
static double class_of_others(const struct doctor *d, const json_t *model)
{
    double most = -1;

    DOCTOR_EACH_MODEL(d, i, m) {
        most = m == model ? most : base_max(most, ctl_real(m, "wishes.class"));
    }
    return most;
}

/* What helps a model whose frames came no faster than its rate. */
static void advise_late(const struct doctor *d, const json_t *m, char ret[DOCTOR_TEXT])
{
    double ms = ctl_real(m, "wishes.deadline_ms"), p99_ms = ctl_real(m, "latency_ms.p99");
    double class = class_of_others(d, m);
    const char *name = ctl_text(m, "name");

    *ret = '\0';
    if (class >= ctl_real(m, "wishes.class") && class < CLASS_MOST) {
        base_append(ret, DOCTOR_TEXT,
                    "Let it go before others: pipectl models set %s --class %.0f. Or give", name,
                    class + 1);
    }
    base_append(ret, DOCTOR_TEXT,
                "%s it more time: pipectl models set %s --deadline %.0f; 99 %% of its frames take "
                "at most %.4g ms. pipectl plan mix says whether all deadlines can be kept.",
                *ret ? "" : "Give", name, ceil(base_max(ms, p99_ms) * SPARE), p99_ms);
}

void doctor_late(struct doctor *d)
{
    DOCTOR_EACH_MODEL(d, i, m) {
        const json_t *before = json_object_get(json_text_same(json_object_get(d->before, "models"),
                                                              "name", json_object_get(m, "name")),
                                               "frames");
        const json_t *frames = json_object_get(m, "frames"), *w = json_object_get(m, "wishes");
        double due = doctor_more(before, frames, "due"), late = doctor_more(before, frames, "late");
        double fps = doctor_more(before, frames, "admitted") / d->seconds;
        double rate = ctl_real(w, "rate"), ms = ctl_real(w, "deadline_ms");
        const char *name = ctl_text(m, "name");
        char advice[DOCTOR_TEXT];

        if (!(late > 0) || !(due > 0)) {
            continue;
        }
        if (fps > FASTER * rate) {
            snprintf(advice, sizeof(advice),
                     "%.1f frames/s came, and it is to have %.6g: send fewer, or wish more: "
                     "pipectl models set %s --rate %.0f.",
                     fps, rate, name, ceil(fps));
        } else {
            advise_late(d, m, advice);
        }
        doctor_find(d, name, doctor_winnable(late / due, 1), advice,
                    "%.0f of %.0f frames were answered later than the %.4g ms that are wished.",
                    late, due, ms);
    }
}
