/* SPDX-License-Identifier: Apache-2.0 */
/* Retune and CancelRetune. */
#include <math.h>

#include "base/base.h"
#include "base/near_word.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/plans/profile.h"
#include "daemon/plans/retune.h"

static json_t *given(struct dmn_call *c, const char *key)
{
    json_t *value = json_object_get(c->parameters, key);

    return json_is_null(value) ? NULL : value;
}

static bool refuse(struct dmn_call *c, const char *parameter)
{
    dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", parameter);
    return false;
}

/* Answers an unknown algorithm with the list of names. */
static void unknown_algorithm(struct dmn_call *c, const char *name)
{
    const struct tun_algorithm *const *all;
    struct near_word n = {.given = name};
    char why[640], hint[NEAR_WORD_HINT_BYTES];
    size_t count;

    all = tun_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        near_word_try(&n, all[i]->name);
    }
    snprintf(why, sizeof(why), "no algorithm \"%.60s\"%s%s: " TUN_SEARCH_NAMES, name,
             near_word_hint(&n, hint), *hint ? " Algorithms" : "; algorithms");
    dmn_call_error(c, "Unsupported", "why", why);
}

/* Reads a bound; 0 and absent: none. Return: true; false: refused, and the call was answered. */
static bool bound(struct dmn_call *c, const char *key, double max, double *ret)
{
    json_t *value = given(c, key);
    double number = json_number_value(value);

    if (value && !(isfinite(number) && number >= 0 && number <= max)) {
        return refuse(c, key);
    }
    *ret = value ? number : *ret;
    return true;
}

static bool count(struct dmn_call *c, const char *key, json_int_t max, json_int_t *ret)
{
    json_t *value = given(c, key);
    json_int_t number = json_integer_value(value);

    if (value && (number < 0 || number > max)) {
        return refuse(c, key);
    }
    *ret = value ? number : *ret;
    return true;
}

static bool goal(struct dmn_call *c, struct dmn_goal *ret)
{
    const char *objective = json_string_value(given(c, "objective"));

    *ret = dmn_goal_config(dmn_machine_config(c->control->machine));
    if (objective && *objective && dmn_objective_find(objective, &ret->objective) < 0) {
        char why[160];

        snprintf(why, sizeof(why), "no objective \"%.60s\"; objectives: throughput, latency, power",
                 objective);
        dmn_call_error(c, "Unsupported", "why", why);
        return false;
    }
    if (!bound(c, "fps", 1e9, &ret->fps) || !bound(c, "latency_ms", 1e9, &ret->latency_ms)) {
        return false;
    }
    return ret->objective != TUN_POWER || ret->fps > 0 || refuse(c, "fps");
}

static bool encoding(struct dmn_call *c, enum tun_encoding *ret)
{
    const char *name = json_string_value(given(c, "encoding"));

    return !name || !*name || tun_encoding_find(name, ret) || refuse(c, "encoding");
}

static bool options(struct dmn_call *c, struct tun_options *ret)
{
    enum tun_encoding genes = TUN_ENCODING_SPE;
    json_int_t alpha =
                   dmn_config_int(dmn_machine_config(c->control->machine), DMN_KEY_PLANNER_ALPHA),
               heuristic = 0, stages = 0, trials = 0, seed = 1;

    if (!count(c, "alpha", 100000, &alpha) || !count(c, "heuristic", 6, &heuristic) ||
        !count(c, "stages", 16, &stages) || !encoding(c, &genes) ||
        !count(c, "trials", 1000000, &trials) || !count(c, "seed", INT64_MAX, &seed)) {
        return false;
    }
    *ret = (struct tun_options){.seed = (uint64_t)seed,
                                .alpha = (unsigned)alpha,
                                .heuristic = (unsigned)heuristic,
                                .encoding = genes,
                                .stages = (unsigned)stages,
                                .trials_max = (size_t)trials};
    return true;
}

static void on_done(void *ctx, const struct dmn_outcome *o, struct dmn_history_event *event)
{
    if (o) {
        dmn_call_refuse(ctx, o);
    } else {
        dmn_call_reply(ctx, json_pack("{s:o}", "event", dmn_event_json(event)), false);
    }
}

void dmn_method_retune(struct dmn_call *c)
{
    const char *name = json_string_value(given(c, "algorithm"));
    bool wait = !given(c, "wait") || json_is_true(given(c, "wait"));
    struct dmn_retune_request q = {
        .cause = DMN_CAUSE_REQUEST, .done = wait ? on_done : NULL, .done_ctx = c};
    struct dmn_model *m = dmn_call_model(c, "model");
    int error;

    if (!m) {
        return;
    }
    q.algorithm = name && *name ? tun_algorithm_find(name)
                                : dmn_planner_algorithm(dmn_machine_config(c->control->machine));
    if (!q.algorithm) {
        unknown_algorithm(c, name);
        return;
    }
    if (!goal(c, &q.goal) || !options(c, &q.options)) {
        return;
    }
    if (dmn_profiling(c->control->plans)) {
        dmn_call_error(c, "Busy", "why", "profiling is in progress; it would distort measurements");
        return;
    }
    error = dmn_retune_begin(m, &q);
    if (error == -EBUSY) {
        dmn_call_error(c, "Busy", "why", "a retune or a change of plan is in progress");
    } else if (error == -ENODATA) {
        dmn_call_error(c, "Unsupported", "why",
                       "the model is too large to run on this board alone (boards.memory_mib)");
    } else if (error == -EINVAL) {
        refuse(c, "objective");
    } else if (error) {
        dmn_call_error(c, "Busy", "why", strerror(-error));
    } else if (!wait) {
        dmn_call_reply(c, json_pack("{s:n}", "event"), false);
    }
}

void dmn_method_cancel_retune(struct dmn_call *c)
{
    struct dmn_model *m = dmn_call_model(c, "model");

    if (m) {
        bool cancelled = dmn_retune_cancel(m);

        dmn_call_reply(c, json_pack("{s:b}", "cancelled", cancelled), false);
    }
}
