/* SPDX-License-Identifier: Apache-2.0 */
/* What was learned of a model, saved for the next start. There is one file per model. It has one
 * state for each combination of EPs, governors, frequency limits and quota, newest first. States of
 * older versions have no limits and quota: they fit any. A new file is written beside the old one
 * and renamed. A state with an error counts as missing. */
#include "daemon/plans/kept.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/config/state_file.h"
#include "daemon/machine/eps.h"
#include "daemon/machine/machine.h"
#include "daemon/machine/sampling.h"
#include "daemon/plans/planning.h"
#include "daemon/service/log.h"
#include "tuner/json/costs_json.h"

#define STATES_MAX 16u
#define HANDOFF_MAX 1e10

/* What was learned is valid for the same state of the machine. */
static void describe(const struct dmn_machine *machine, struct gov_machine_state *ret)
{
    dmn_eps_state(&machine->eps, dmn_sensors_now(machine), machine->topology, machine->sysfs_root,
                  ret);
}

static bool state_path(const struct dmn_plans *plans, const struct mdl_model *model,
                       const char *name, char ret[DMN_STATE_PATH_MAX])
{
    return dmn_state_file_path(DMN_STATE_MODEL, plans->models->state_dir, model->identity, name,
                               ret);
}

/* Reads the states of a valid file. Return: borrowed from *ret_root; NULL: there is none. */
static json_t *read_states(const char *path, json_t **ret_root)
{
    json_t *states;

    *ret_root = NULL;
    if (dmn_state_file_read(DMN_STATE_MODEL, path, ret_root) == -ENOENT) {
        return NULL;
    }
    states = json_object_get(*ret_root, "states");
    if (!json_is_array(states)) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0},
                        "ignoring %s: not a saved model state", path);
        json_decref(*ret_root);
        *ret_root = NULL;
        return NULL;
    }
    return states;
}

/* Return: how well a state fits: 2: fully; 1: except for the limits; 0: not at all. */
static int is_for(const json_t *state, const struct gov_machine_state *k)
{
    const char *eps = json_string_value(json_object_get(state, "eps"));
    const char *governors = json_string_value(json_object_get(state, "governors"));
    const char *limits = json_string_value(json_object_get(state, "limits"));

    if (!eps || !governors || strcmp(eps, k->eps) != 0 || strcmp(governors, k->governors) != 0) {
        return 0;
    }
    return limits && strcmp(limits, k->limits) == 0 ? 2 : 1;
}

/* Return: a new state replaces @state: both are the same, or @state is from before limits were
 * saved. */
static bool replaces(const json_t *state, const struct gov_machine_state *k)
{
    int fit = is_for(state, k);

    return fit == 2 || (fit == 1 && !json_object_get(state, "limits"));
}

bool dmn_state_suits(const struct dmn_model *m)
{
    return !m->planning->keep_nothing || m->planning->keep_nothing_epoch != pl_epoch(m->pipe);
}

void dmn_state_save(struct dmn_model *m)
{
    char path[DMN_STATE_PATH_MAX], plan[PL_PLAN_TEXT_MAX];
    json_t *kept, *states = json_array(), *file, *state;
    base_autofree struct gov_machine_state *k = malloc(sizeof(*k));
    size_t i;
    int r;

    if (!k || !dmn_state_suits(m) || !state_path(m->planning->of, m->model, m->name, path)) {
        json_decref(states);
        return;
    }
    describe(m->planning->of->machine, k);
    dmn_model_plan_text(m, plan);
    json_array_append_new(
        states, json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:o}", "eps", k->eps, "governors",
                          k->governors, "limits", k->limits, "plan", plan, "algorithm",
                          dmn_origin_name(m->origin), "handoff_ns", m->planning->problem.handoff_ns,
                          "handoff_ns_per_byte", m->planning->problem.handoff_ns_per_byte, "costs",
                          tun_costs_json(&m->planning->problem)));
    kept = read_states(path, &file);
    json_array_foreach(kept, i, state)
    {
        if (json_array_size(states) < STATES_MAX && !replaces(state, k)) {
            json_array_append(states, state);
        }
    }
    json_decref(file);
    r = dmn_state_file_write(DMN_STATE_MODEL, path,
                             json_pack("{s:s, s:o}", "model", m->name, "states", states));
    if (r < 0) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                        "model %s: cannot keep what was learned in %s: %s", m->name, path,
                        strerror(-r));
    }
    m->planning->clocks.learned = false;
    m->planning->clocks.saved_ns = base_now_ns();
}

static bool within(const json_t *value, double min, double max)
{
    double x = json_number_value(value);

    return json_is_number(value) && isfinite(x) && x >= min && x <= max;
}

static void load_costs(struct tun_problem *p, json_t *state)
{
    json_t *handoff = json_object_get(state, "handoff_ns");
    json_t *per_byte = json_object_get(state, "handoff_ns_per_byte");

    if (within(handoff, 0, HANDOFF_MAX) && within(per_byte, 0, HANDOFF_MAX)) {
        p->handoff_ns = json_number_value(handoff);
        p->handoff_ns_per_byte = json_number_value(per_byte);
    }
    tun_costs_take(p, json_object_get(state, "costs"));
}

/* The origin of a saved plan for the model that will use it. */
static struct dmn_origin kept_origin(const json_t *state)
{
    const char *name = json_string_value(json_object_get(state, "algorithm"));
    struct dmn_origin o = dmn_origin_find(name ? name : "");

    return dmn_origin_pinned(o) ? o : (struct dmn_origin){.from = DMN_FROM_SAVED};
}

/* A plan from the configuration is not used when the configuration no longer names it. */
static int load_plan(const struct dmn_machine *on, struct dmn_load *l, json_t *state,
                     struct pl_plan *ret)
{
    const char *plan = json_string_value(json_object_get(state, "plan"));
    struct dmn_origin origin = kept_origin(state);
    char error[256];

    if (!plan || !json_is_string(json_object_get(state, "algorithm")) ||
        origin.from == DMN_FROM_CONFIG ||
        pl_plan_parse(plan, &on->eps, l->model->unit_count, error, sizeof(error), ret) < 0) {
        return DMN_E_NO_PLAN;
    }
    l->origin = origin;
    return 0;
}

/* Return: the state of @states that fits best, the newest of equals; NULL: none fits @least. */
static json_t *best_state(json_t *states, const struct gov_machine_state *k, int least)
{
    json_t *state, *best = NULL;
    int fit = least - 1;
    size_t i;

    json_array_foreach(states, i, state)
    {
        if (is_for(state, k) > fit) {
            fit = is_for(state, k);
            best = state;
        }
    }
    return best;
}

int dmn_state_load(const struct dmn_plans *plans, const struct dmn_machine *on, struct dmn_load *l,
                   struct pl_plan *ret)
{
    base_autofree struct gov_machine_state *k = malloc(sizeof(*k));
    int result = -ENOENT;
    char path[DMN_STATE_PATH_MAX];
    json_t *root, *states, *state;

    if (!k || !state_path(plans, l->model, l->name, path) || !(states = read_states(path, &root))) {
        return -ENOENT;
    }
    describe(on, k);
    state = best_state(states, k, 1);
    if (state) {
        load_costs(&l->planning->problem, state);
        result = load_plan(on, l, state, ret);
    }
    json_decref(root);
    return result;
}

bool dmn_state_plan(const struct dmn_model *m, struct pl_plan *ret)
{
    const struct dmn_plans *plans = m->planning->of;
    base_autofree struct gov_machine_state *k = malloc(sizeof(*k));
    const char *plan;
    char path[DMN_STATE_PATH_MAX], error[256];
    json_t *root, *states, *state;
    bool found;

    if (!k || !state_path(plans, m->model, m->name, path) || !(states = read_states(path, &root))) {
        return false;
    }
    describe(plans->machine, k);
    state = best_state(states, k, 2);
    plan = json_string_value(json_object_get(state, "plan"));
    found = plan && json_is_string(json_object_get(state, "algorithm")) &&
            kept_origin(state).from == DMN_FROM_SAVED &&
            pl_plan_parse(plan, &plans->machine->eps, m->model->unit_count, error, sizeof(error),
                          ret) == 0;
    json_decref(root);
    return found;
}
