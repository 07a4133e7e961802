/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that measure: Retune, CancelRetune, Profile. */

#include "base/base.h"
#include "base/near_word.h"
#include "daemon/boards/board_model.h"
#include "daemon/boards/over_boards.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/profile.h"
#include "daemon/plans/retune.h"

/* Answers an unknown algorithm with the list of names. */
static void unknown_algorithm(struct dmn_call *c, const char *name)
{
    const struct tun_algorithm *const *all;
    struct near_word n = {.given = name};
    char hint[NEAR_WORD_HINT_BYTES];
    size_t count;

    all = tun_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        near_word_try(&n, all[i]->name);
    }
    near_word_hint(&n, hint);
    dmn_call_error(c, "Unsupported", "no algorithm \"%.60s\"%s%s: " TUN_SEARCH_NAMES, name, hint,
                   *hint ? " Algorithms" : "; algorithms");
}

static bool goal(struct dmn_call *c, struct dmn_goal *ret)
{
    const char *objective = json_text_of(c->parameters, "objective");

    *ret = dmn_goal_config(dmn_machine_config(c->control->machine));
    if (*objective && tun_objective_find(objective, &ret->objective) < 0) {
        dmn_call_error(c, "Unsupported",
                       "no objective \"%.60s\"; objectives: throughput, latency, power", objective);
        return false;
    }
    /* 0: no bound */
    return dmn_call_number(c, "fps", 0, 1e9, &ret->fps) &&
           dmn_call_number(c, "latency_ms", 0, 1e9, &ret->latency_ms) &&
           (ret->objective != TUN_POWER || ret->fps > 0 || dmn_call_invalid(c, "fps"));
}

static bool options(struct dmn_call *c, struct tun_options *ret)
{
    const char *encoding = json_text_of(c->parameters, "encoding");
    enum tun_encoding genes = TUN_ENCODING_SPE;
    const struct dmn_config *config = dmn_machine_config(c->control->machine);
    json_int_t alpha = dmn_config_int(config, DMN_KEY_PLANNER_ALPHA),
               heuristic = dmn_config_int(config, DMN_KEY_PLANNER_HEURISTIC), stages = 0,
               trials = 0, seed = 1;

    if (!dmn_call_integer(c, "alpha", 0, 100000, &alpha) ||
        !dmn_call_integer(c, "heuristic", 0, 6, &heuristic) ||
        !dmn_call_integer(c, "stages", 0, 16, &stages) ||
        (*encoding && !tun_encoding_find(encoding, &genes) && !dmn_call_invalid(c, "encoding")) ||
        !dmn_call_integer(c, "trials", 0, 1000000, &trials) ||
        !dmn_call_integer(c, "seed", 0, INT64_MAX, &seed)) {
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

static void on_retuned(void *ctx, const struct dmn_outcome *o, struct dmn_history_event *event)
{
    if (o) {
        dmn_call_refuse(ctx, o);
    } else {
        dmn_call_reply(ctx, json_pack("{s:o}", "event", dmn_event_json(event)), false);
    }
}

/* Answers why no search could begin. */
static void refuse(struct dmn_call *c, const struct dmn_model *m, int error)
{
    const struct dmn_board_model *bm = dmn_boards_of(m);

    switch (error) {
    case -EBUSY:
        dmn_call_error(c, "Busy", "a retune or a change of plan is in progress");
        break;
    case -ENODATA:
        dmn_call_error(c, "Unsupported", "%s",
                       dmn_call_asks(c, "boards")
                           ? "piped-link is away; start the service piped-link"
                           : "the model is too large to run on this board alone "
                             "(boards.memory_mib)");
        break;
    case -ENODEV:
        dmn_call_error(c, "Unsupported", "no other board is there");
        break;
    case -EOPNOTSUPP:
        dmn_call_error(c, "Unsupported", "model %s: %s", m->name,
                       bm ? bm->why
                          : "its key boards is \"" DMN_BOARDS_OFF "\"; set it to \"" DMN_BOARDS_AUTO
                            "\" and reload");
        break;
    case -EINVAL:
        dmn_call_invalid(c, "objective");
        break;
    default:
        dmn_call_error(c, "Busy", "%s", strerror(-error));
    }
}

/* The search that was asked for, or the configuration's. Return: NULL: the call was answered. */
static const struct tun_algorithm *algorithm(struct dmn_call *c, bool boards)
{
    const char *name = json_text_of(c->parameters, "algorithm");
    const struct tun_algorithm *a =
        *name ? tun_algorithm_find(name)
              : dmn_planner_algorithm(dmn_machine_config(c->control->machine));

    if (!a) {
        unknown_algorithm(c, name);
    } else if (boards && a != &tun_exact && a != &tun_nsga2) {
        if (!*name) {
            return &tun_exact;
        }
        dmn_call_error(c, "Unsupported", "%s searches one board; over boards: exact, nsga2", name);
        return NULL;
    }
    return a;
}

void dmn_method_retune(struct dmn_call *c, struct dmn_model *m)
{
    bool wait = !json_is_false(json_object_get(c->parameters, "wait"));
    bool boards = dmn_call_asks(c, "boards");
    struct dmn_retune_request q = {
        .cause = DMN_CAUSE_REQUEST, .done = wait ? on_retuned : NULL, .done_ctx = c};
    int error;

    q.algorithm = algorithm(c, boards);
    if (!q.algorithm || !goal(c, &q.goal) || !options(c, &q.options)) {
        return;
    }
    if (dmn_profiling(c->control->plans)) {
        dmn_call_error(c, "Busy", "profiling is in progress; it would distort measurements");
        return;
    }
    error = boards ? dmn_boards_retune(m, &q) : dmn_retune_begin(m, &q);
    if (error) {
        refuse(c, m, error);
    } else if (!wait) {
        dmn_call_reply(c, json_pack("{s:n}", "event"), false);
    }
}

void dmn_method_cancel_retune(struct dmn_call *c, struct dmn_model *m)
{
    bool cancelled = dmn_retune_cancel(m);

    dmn_call_reply(c, json_pack("{s:b}", "cancelled", cancelled), false);
}

/* ---- Profile ---- */

static json_t *error_json(bool has, double error)
{
    return has ? json_real(error) : json_null();
}

static json_t *result_json(const struct dmn_control *control)
{
    json_t *list = json_array();

    for (size_t e = 0; e < control->machine->eps.count; e++) {
        const struct dmn_profiled *k =
            dmn_profiled(control->plans, control->machine->eps.eps[e].name);
        const struct tun_fit *fits = k->predictor.fits;

        json_t *kind = json_pack("{s:s, s:I, s:o}", "name", control->machine->eps.eps[e].name,
                                 "benches", (json_int_t)k->benches, "error_multi",
                                 error_json(fits[TUN_CONV].has_wide, fits[TUN_CONV].error_wide));

        for (size_t i = 0; i < TUN_LAYERS; i++) {
            char key[32];

            snprintf(key, sizeof(key), "error_%s", dmn_layer_name((enum tun_layer)i));
            json_object_set_new(kind, key, error_json(fits[i].has, fits[i].error));
        }
        json_array_append_new(list, kind);
    }
    return list;
}

static void on_profiled(void *ctx, const struct dmn_outcome *o)
{
    struct dmn_call *c = ctx;

    if (o) {
        dmn_call_refuse(c, o);
    } else {
        dmn_call_reply(c, json_pack("{s:o}", "kinds", result_json(c->control)), false);
    }
}

void dmn_method_profile(struct dmn_call *c)
{
    json_int_t ms = DMN_PROFILE_MS;
    int error;

    if (!dmn_call_integer(c, "ms", 1, DMN_PROFILE_MS_MAX, &ms)) {
        return;
    }
    if (c->control->machine->whole.count > 0) {
        dmn_call_error(c, "Busy",
                       "a core is slowed and its execution place is split; a profile would be of "
                       "that");
        return;
    }
    for (const struct dmn_model *m = c->control->models->models; m; m = m->next) {
        if (m->planning->retune) {
            dmn_call_error(c, "Busy",
                           "a retune is in progress; profiling would distort its measurements");
            return;
        }
    }
    error = dmn_profile_begin(c->control->plans, (struct dmn_done){on_profiled, c}, (unsigned)ms);
    if (error) {
        dmn_call_error(c, "Busy", "%s",
                       error == -EBUSY ? "profiling is in progress" : strerror(-error));
    }
}
