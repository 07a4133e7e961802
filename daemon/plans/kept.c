/* SPDX-License-Identifier: Apache-2.0 */
/* What was learned of a model, saved for the next start. There is one file per model. It has one
 * state for each combination of EPs, governors, frequency limits and quota, newest first. States of
 * older versions have no limits and quota: they fit any. Nor have they "at_once". A state with an
 * error counts as missing.
 *
 * A load reads the file on its own thread. The disk's thread reads it again, adds a state and
 * writes it. What the loop asks is in memory: dmn_planning.kept. */
#include <math.h>

#include "daemon/config/state_file.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"
#include "daemon/service/log.h"
#include "daemon/service/work.h"
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
static json_t *read_states(const char *path, const char *identity, json_t **ret_root)
{
    json_t *states;

    *ret_root = NULL;
    if (dmn_state_file_read(DMN_STATE_MODEL, path, identity, ret_root) != 0) {
        return NULL;
    }
    states = json_object_get(*ret_root, "states");
    if (!json_is_array(states)) {
        dmn_log(LOG_WARNING, "ignoring %s: not a saved model state", path);
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

bool dmn_kept_suits(const struct dmn_model *m)
{
    struct dmn_costs_hold held = dmn_costs_held(m);

    return m->planning->of->machine->whole.count == 0 &&
           (!held.keeping || held.keeping_epoch != pl_epoch(m->pipe));
}

/* Return: new reference: @state, then those of @others that it does not replace. NULL: no
 * memory. */
static json_t *with_state(json_t *others, json_t *state, const struct gov_machine_state *k)
{
    json_t *states = json_array(), *other;
    size_t i;

    if (json_array_append(states, state) < 0) {
        json_decref(states);
        return NULL;
    }
    json_array_foreach(others, i, other)
    {
        if (json_array_size(states) < STATES_MAX && !replaces(other, k)) {
            json_array_append(states, other);
        }
    }
    return states;
}

/* A state on its way to the file. */
struct saving {
    struct dmn_job job;
    int error; /* how it went */
    struct gov_machine_state k;
    char path[DMN_STATE_PATH_MAX], model[64];
    char *identity; /* owned */
    json_t *state;  /* owned, and nobody else has it */
};

static void saving_run(struct dmn_job *job)
{
    struct saving *s = base_container_of(job, struct saving, job);
    json_t *root, *states;

    states = with_state(read_states(s->path, s->identity, &root), s->state, &s->k);
    json_decref(root);
    s->error = dmn_state_file_write(
        DMN_STATE_MODEL, s->path, s->identity,
        states ? json_pack("{s:s, s:o}", "model", s->model, "states", states) : NULL);
}

static void saving_free(struct saving *s)
{
    json_decref(s->state);
    free(s->identity);
    free(s);
}

static void saving_done(struct dmn_job *job)
{
    struct saving *s = base_container_of(job, struct saving, job);

    if (dmn_state_untold(s->error)) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = s->model},
                        "model %s: cannot keep what was learned in %s: %s", s->model, s->path,
                        strerror(-s->error));
    }
    saving_free(s);
}

/* The disk's thread has @state, so the loop has a copy. */
static void remember(struct dmn_planning *of, json_t *state, const struct gov_machine_state *k)
{
    json_t *copy = json_deep_copy(state), *states = copy ? with_state(of->kept, copy, k) : NULL;

    json_decref(copy);
    if (states) {
        json_decref(of->kept);
        of->kept = states;
    }
}

void dmn_kept_save(struct dmn_model *m)
{
    struct dmn_planning *of = m->planning;
    struct saving *s = dmn_kept_suits(m) ? calloc(1, sizeof(*s)) : NULL;
    char plan[PL_PLAN_TEXT_MAX];

    if (!s) {
        return;
    }
    s->job = (struct dmn_job){.run = saving_run, .done = saving_done};
    snprintf(s->model, sizeof(s->model), "%s", m->name);
    describe(of->of->machine, &s->k);
    dmn_model_plan_text(m, plan);
    s->state =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:o, s:o*}", "eps", s->k.eps, "governors",
                  s->k.governors, "limits", s->k.limits, "plan", plan, "algorithm",
                  dmn_origin_name(m->origin), "handoff_ns", of->problem.handoff_ns,
                  "handoff_ns_per_byte", of->problem.handoff_ns_per_byte, "costs",
                  tun_costs_json(&of->problem), "at_once", tun_at_once_json(&of->problem, true));
    remember(of, s->state, &s->k);
    of->clocks.learned = false;
    of->clocks.saved_ns = base_now_ns();
    if (!state_path(of->of, m->model, m->name, s->path) ||
        !(s->identity = strdup(m->model->identity))) {
        saving_free(s); /* without a state folder it is only remembered */
        return;
    }
    dmn_work_do(of->of->models->disk, &s->job);
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
    (void)tun_at_once_take(p, json_object_get(state, "at_once")); /* else as measured at load */
}

/* The origin of a saved plan for the model that will use it. */
static struct dmn_origin kept_origin(const json_t *state)
{
    const char *name = json_string_value(json_object_get(state, "algorithm"));
    struct dmn_origin o = dmn_origin_find(name ? name : "");

    return dmn_origin_pinned(o) ? o : (struct dmn_origin){.from = DMN_FROM_SAVED};
}

/* Return: the state has a plan of the model alone that fits @eps, with @ret and its origin set. */
static bool plan_of(json_t *state, const struct pl_ep_set *eps, size_t unit_count,
                    struct dmn_origin *ret_origin, struct pl_plan *ret)
{
    const char *plan = json_string_value(json_object_get(state, "plan"));
    const char *by = json_string_value(json_object_get(state, "algorithm"));
    char error[256];

    *ret_origin = kept_origin(state);
    return plan && by && dmn_origin_find(by).from != DMN_FROM_MIX &&
           pl_plan_parse(plan, eps, unit_count, error, sizeof(error), ret) == 0;
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

void dmn_kept_read(void *ctx, struct dmn_load *l)
{
    const struct dmn_plans *plans = ctx;
    char path[DMN_STATE_PATH_MAX];
    json_t *root, *states;

    if (state_path(plans, l->model, l->name, path)) {
        dmn_work_settle(plans->models->disk); /* another model of this name may still be saved */
        states = read_states(path, l->model->identity, &root);
        json_decref(l->kept);
        l->kept = json_incref(states);
        json_decref(root);
    }
}

int dmn_kept_load(const struct dmn_machine *on, struct dmn_load *l, struct pl_plan *ret)
{
    base_autofree struct gov_machine_state *k = malloc(sizeof(*k));
    struct dmn_origin origin;
    json_t *state;

    if (!k || !l->kept) {
        return -ENOENT;
    }
    json_decref(l->planning->kept);
    l->planning->kept = json_incref(l->kept);
    describe(on, k);
    state = best_state(l->kept, k, 1);
    if (!state) {
        return -ENOENT;
    }
    load_costs(&l->planning->problem, state);
    /* one from the configuration is not used when that no longer names it */
    if (!plan_of(state, &on->eps, l->model->unit_count, &origin, ret) ||
        origin.from == DMN_FROM_CONFIG) {
        return DMN_E_NO_PLAN;
    }
    l->origin = origin;
    return 0;
}

bool dmn_kept_plan(const struct dmn_model *m, struct pl_plan *ret)
{
    const struct dmn_machine *machine = m->planning->of->machine;
    base_autofree struct gov_machine_state *k = malloc(sizeof(*k));
    struct dmn_origin origin;

    if (!k) {
        return false;
    }
    describe(machine, k);
    return plan_of(best_state(m->planning->kept, k, 2), &machine->eps, m->model->unit_count,
                   &origin, ret) &&
           origin.from == DMN_FROM_SAVED;
}
