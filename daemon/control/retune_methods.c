/* SPDX-License-Identifier: Apache-2.0 */
/* Retune and CancelRetune. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"

static json_t *given(struct dmn_call *c, const char *key)
{
    json_t *value = json_object_get(c->parameters, key);

    return json_is_null(value) ? NULL : value;
}

/* The model that is meant; answers and returns NULL when there is none. */
static bool refuse(struct dmn_call *c, const char *parameter)
{
    dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", parameter);
    return false;
}

/* A list of the algorithms' names, for somebody who asked for another one. */
static void unknown_algorithm(struct dmn_call *c, const char *name)
{
    char why[512];
    size_t count, used;
    const struct tun_algorithm *const *all = tun_algorithms(&count);

    used = (size_t)snprintf(why, sizeof(why), "no algorithm \"%.60s\"; there are", name);
    for (size_t i = 0; i < count && used < sizeof(why); i++) {
        used +=
            (size_t)snprintf(why + used, sizeof(why) - used, "%s %s", i ? "," : "", all[i]->name);
    }
    dmn_call_error(c, "Unsupported", "why", why);
}

/* 0 and absent: not asked for. Return: false when it was refused. */
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

    *ret = dmn_goal_config(c->daemon->config);
    if (objective && *objective && dmn_objective_find(objective, &ret->objective) < 0) {
        char why[160];

        snprintf(why, sizeof(why), "no objective \"%.60s\"; there are throughput, latency, power",
                 objective);
        dmn_call_error(c, "Unsupported", "why", why);
        return false;
    }
    if (!bound(c, "fps", 1e9, &ret->fps) || !bound(c, "latency_ms", 1e9, &ret->latency_ms)) {
        return false;
    }
    return ret->objective != TUN_POWER || ret->fps > 0 || refuse(c, "fps");
}

static bool options(struct dmn_call *c, struct tun_options *ret)
{
    json_int_t alpha = dmn_config_int(c->daemon->config, DMN_KEY_PLANNER_ALPHA), heuristic = 0,
               trials = 0, seed = 1;

    if (!count(c, "alpha", 100000, &alpha) || !count(c, "heuristic", 6, &heuristic) ||
        !count(c, "trials", 1000000, &trials) || !count(c, "seed", INT64_MAX, &seed)) {
        return false;
    }
    *ret = (struct tun_options){.seed = (uint64_t)seed,
                                .alpha = (unsigned)alpha,
                                .heuristic = (unsigned)heuristic,
                                .trials_max = (size_t)trials};
    return true;
}

void dmn_method_retune(struct dmn_call *c)
{
    const char *name = json_string_value(given(c, "algorithm"));
    bool wait = !given(c, "wait") || json_is_true(given(c, "wait"));
    struct dmn_retune_request q = {.cause = "request", .call = wait ? c : NULL};
    struct dmn_model *m = dmn_call_model(c, "model");
    int error;

    if (!m) {
        return;
    }
    if (!name || !*name) {
        name = dmn_config_string(c->daemon->config, DMN_KEY_PLANNER_ALGORITHM);
    }
    q.algorithm = tun_algorithm_find(name);
    if (!q.algorithm) {
        unknown_algorithm(c, name);
        return;
    }
    if (!goal(c, &q.goal) || !options(c, &q.options)) {
        return;
    }
    if (dmn_calibrating(c->daemon)) {
        dmn_call_error(c, "Busy", "why", "a calibration is under way: figures would suffer");
        return;
    }
    error = dmn_retune_begin(m, &q);
    if (error == -EBUSY) {
        dmn_call_error(c, "Busy", "why", "a retune or a change of plan is under way");
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
