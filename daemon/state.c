/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was learned of a model, kept for the next start: one file for each model, in it one state
 * for each set of execution places, setting of their governors, limits of frequency and quota, the
 * newest first. States of older versions have no limits and quota: they are for any. A file is
 * written anew beside the old one and renamed; whatever is wrong in one counts as not there.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"

#define STATE_VERSION 2
#define STATES_MAX 16u
#define LIMIT_STEP 0.05 /* relative: limits nearer than this are one */
#define STATE_BYTES_MAX (16 << 20)
#define NS_MAX 1e15 /* no unit takes longer */
#define HANDOFF_MAX 1e10
#define SIGMA_MAX 10.0 /* a figure that uncertain says nothing */

/* What was learned is good for the same cores ... */
static void describe_eps(const struct pl_ep_set *eps, char *ret, size_t bytes)
{
    size_t used = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < eps->count && used < bytes; i++) {
        char cpus[512];

        dmn_cpu_list_format(eps->eps[i].cpus, eps->eps[i].cpu_count, cpus, sizeof(cpus));
        used += (size_t)snprintf(ret + used, bytes - used, "%s%s:%s", i ? ";" : "",
                                 eps->eps[i].name, cpus);
    }
}

/* ... under the same governors, on cores of the same best frequency ... */
static void describe_governors(const struct dmn_daemon *d, char *ret, size_t bytes)
{
    size_t used = 0;

    gov_topology_update_freq(d->sysfs_root, d->topology);
    ret[0] = '\0';
    for (size_t i = 0; i < d->eps.count && used < bytes; i++) {
        const struct gov_ep *g = dmn_ep_found(d, i);

        used += (size_t)snprintf(ret + used, bytes - used, "%s%s:%s:%llu", i ? ";" : "",
                                 d->eps.eps[i].name, g && g->governor[0] ? g->governor : "unknown",
                                 g ? (unsigned long long)g->max_freq_khz : 0ull);
    }
}

/* The least limit of a place's cores in MHz, rounded to 5 %; 0: unknown. */
static unsigned long limit_mhz(const struct gov_snapshot *s, const struct pl_ep *ep)
{
    uint64_t least = GOV_UNKNOWN;

    for (size_t c = 0; c < ep->cpu_count; c++) {
        const struct gov_policy *p = gov_snapshot_policy(s, ep->cpus[c]);

        least = p ? base_min(least, p->max_khz) : least;
    }
    if (least == GOV_UNKNOWN || least == 0) {
        return 0;
    }
    return (unsigned long)lround(exp(round(log((double)least / 1e3) / LIMIT_STEP) * LIMIT_STEP));
}

/* ... with the same limits of frequency and quota of the control group, as far as they are known.
 */
static void describe_limits(const struct dmn_daemon *d, char *ret, size_t bytes)
{
    const struct gov_snapshot *s = dmn_sensors_now(d);
    size_t used = 0;

    ret[0] = '\0';
    for (size_t i = 0; s && i < d->eps.count && used < bytes; i++) {
        unsigned long mhz = limit_mhz(s, &d->eps.eps[i]);

        if (mhz) {
            used += (size_t)snprintf(ret + used, bytes - used, "%s:%lu;", d->eps.eps[i].name, mhz);
        }
    }
    if (s && isfinite(s->cgroup.quota_cpus) && used < bytes) {
        snprintf(ret + used, bytes - used, "quota:%.1f", s->cgroup.quota_cpus);
    }
}

/* What a state is for. */
struct key {
    char eps[4096], governors[2048], limits[1024];
};

static void describe(const struct dmn_daemon *d, struct key *ret)
{
    describe_eps(&d->eps, ret->eps, sizeof(ret->eps));
    describe_governors(d, ret->governors, sizeof(ret->governors));
    describe_limits(d, ret->limits, sizeof(ret->limits));
}

static bool state_path(const struct dmn_daemon *d, const struct mdl_model *model, const char *name,
                       const char *suffix, char *ret, size_t bytes)
{
    int n = snprintf(ret, bytes, "%s/model-%.64s-%s.v%d.json%s", d->state_dir ? d->state_dir : "",
                     model->hash, name, STATE_VERSION, suffix);

    return d->state_dir && n > 0 && (size_t)n < bytes;
}

/* One row of the table: [ns, sigma] or null for each unit; NULL: nothing in it is worth keeping. */
static json_t *row_json(const struct tun_problem *p, size_t kind, size_t width)
{
    json_t *row = json_array();
    bool any = false;

    for (size_t u = 0; u < p->unit_count; u++) {
        const struct tun_cell *c = tun_cell_at(&p->costs, kind, width, u);

        if (c->source >= TUN_SAVED) {
            json_array_append_new(row, json_pack("[f, f]", c->ns, c->sigma));
            any = true;
        } else {
            json_array_append_new(row, json_null());
        }
    }
    if (!any) {
        json_decref(row);
        return NULL;
    }
    return row;
}

static json_t *costs_json(const struct tun_problem *p)
{
    json_t *costs = json_object();

    for (size_t k = 0; k < p->kind_count; k++) {
        json_t *widths = json_object();

        for (size_t w = 1; w <= p->kinds[k].cores; w++) {
            json_t *row = row_json(p, k, w);
            char name[24];

            snprintf(name, sizeof(name), "%zu", w);
            if (row) {
                json_object_set_new(widths, name, row);
            }
        }
        json_object_set_new(costs, p->kinds[k].name, widths);
    }
    return costs;
}

/* The states of a file that is one of ours. Return: borrowed from *ret_root, NULL: there is none.
 */
static json_t *read_states(const char *path, json_t **ret_root)
{
    struct stat st;
    json_t *states;

    *ret_root = NULL;
    if (stat(path, &st) < 0) {
        return NULL;
    }
    if (S_ISREG(st.st_mode) && st.st_size <= STATE_BYTES_MAX) {
        *ret_root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    }
    states = json_object_get(*ret_root, "states");
    if (!json_is_array(states) ||
        json_integer_value(json_object_get(*ret_root, "version")) != STATE_VERSION) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0},
                        "%s is no kept state of a model: ignored", path);
        json_decref(*ret_root);
        *ret_root = NULL;
        return NULL;
    }
    return states;
}

/* How well a state fits: 2: all of it; 1: but for the limits; 0: not at all. */
static int is_for(const json_t *state, const struct key *k)
{
    const char *eps = json_string_value(json_object_get(state, "eps"));
    const char *governors = json_string_value(json_object_get(state, "governors"));
    const char *limits = json_string_value(json_object_get(state, "limits"));

    if (!eps || !governors || strcmp(eps, k->eps) != 0 || strcmp(governors, k->governors) != 0) {
        return 0;
    }
    return limits && strcmp(limits, k->limits) == 0 ? 2 : 1;
}

/* Is it in place of @state that a new one is written: the same, or one from before limits were
 * kept. */
static bool replaces(const json_t *state, const struct key *k)
{
    int fit = is_for(state, k);

    return fit == 2 || (fit == 1 && !json_object_get(state, "limits"));
}

void dmn_state_save(struct dmn_model *m)
{
    char path[4096], temporary[4096], plan[PL_PLAN_TEXT_MAX];
    json_t *kept, *states = json_array(), *root, *file, *state;
    base_autofree struct key *k = malloc(sizeof(*k));
    size_t i;

    if (!k || !dmn_adapt_keeps(m) ||
        !state_path(m->daemon, m->model, m->name, "", path, sizeof(path)) ||
        !state_path(m->daemon, m->model, m->name, ".new", temporary, sizeof(temporary))) {
        json_decref(states);
        return;
    }
    describe(m->daemon, k);
    dmn_model_plan_text(m, plan);
    json_array_append_new(
        states, json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:o}", "eps", k->eps, "governors",
                          k->governors, "limits", k->limits, "plan", plan, "algorithm",
                          m->algorithm, "handoff_ns", m->problem.handoff_ns, "handoff_ns_per_byte",
                          m->problem.handoff_ns_per_byte, "costs", costs_json(&m->problem)));
    kept = read_states(path, &file);
    json_array_foreach(kept, i, state)
    {
        if (json_array_size(states) < STATES_MAX && !replaces(state, k)) {
            json_array_append(states, state);
        }
    }
    json_decref(file);
    root =
        json_pack("{s:i, s:s, s:o}", "version", STATE_VERSION, "model", m->name, "states", states);
    /* the rename makes it whole or absent; a loss by power failure costs one retune */
    if (!root || json_dump_file(root, temporary, JSON_COMPACT | JSON_REAL_PRECISION(9)) < 0 ||
        rename(temporary, path) < 0) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                        "what was learned of model %s could not be kept in %s: %s", m->name, path,
                        strerror(errno));
        unlink(temporary);
    }
    json_decref(root);
    m->clocks.learned = false;
    m->clocks.saved_ns = base_now_ns();
}

static bool within(const json_t *value, double min, double max)
{
    double x = json_number_value(value);

    return json_is_number(value) && isfinite(x) && x >= min && x <= max;
}

static void load_row(struct tun_problem *p, size_t kind, size_t width, json_t *row)
{
    if (json_array_size(row) != p->unit_count) {
        return;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        json_t *ns = json_array_get(json_array_get(row, u), 0);
        json_t *sigma = json_array_get(json_array_get(row, u), 1);

        if (within(ns, 1e-3, NS_MAX) && within(sigma, 0, SIGMA_MAX)) {
            *tun_cell_at(&p->costs, kind, width, u) =
                (struct tun_cell){.ns = json_number_value(ns),
                                  .sigma = json_number_value(sigma),
                                  .source = TUN_SAVED};
        }
    }
}

static void load_costs(struct tun_problem *p, json_t *state)
{
    json_t *costs = json_object_get(state, "costs");
    json_t *handoff = json_object_get(state, "handoff_ns");
    json_t *per_byte = json_object_get(state, "handoff_ns_per_byte");

    if (within(handoff, 0, HANDOFF_MAX) && within(per_byte, 0, HANDOFF_MAX)) {
        p->handoff_ns = json_number_value(handoff);
        p->handoff_ns_per_byte = json_number_value(per_byte);
    }
    for (size_t k = 0; k < p->kind_count; k++) {
        json_t *widths = json_object_get(costs, p->kinds[k].name);

        for (size_t w = 1; w <= p->kinds[k].cores; w++) {
            char name[24];

            snprintf(name, sizeof(name), "%zu", w);
            load_row(p, k, w, json_object_get(widths, name));
        }
    }
}

/* A plan of the configuration is no longer wanted when the configuration does not name it. */
static int load_plan(const struct dmn_daemon *d, struct dmn_load *l, json_t *state,
                     struct pl_plan *ret)
{
    const char *plan = json_string_value(json_object_get(state, "plan"));
    const char *algorithm = json_string_value(json_object_get(state, "algorithm"));
    char error[256];

    if (!plan || !algorithm || strcmp(algorithm, "config") == 0 ||
        pl_plan_parse(plan, &d->eps, l->model->unit_count, error, sizeof(error), ret) < 0) {
        return DMN_E_NO_PLAN;
    }
    l->algorithm = strcmp(algorithm, "manual") == 0 ? "manual" : "saved";
    return 0;
}

/* The state of @states that fits best, the newest of equals; NULL: none that fits @least. */
static json_t *best_state(json_t *states, const struct key *k, int least)
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

int dmn_state_load(const struct dmn_daemon *d, struct dmn_load *l, struct pl_plan *ret)
{
    base_autofree struct key *k = malloc(sizeof(*k));
    int result = -ENOENT;
    char path[4096];
    json_t *root, *states, *state;

    if (!k || !state_path(d, l->model, l->name, "", path, sizeof(path)) ||
        !(states = read_states(path, &root))) {
        return -ENOENT;
    }
    describe(d, k);
    state = best_state(states, k, 1);
    if (state) {
        load_costs(&l->problem, state);
        result = load_plan(d, l, state, ret);
    }
    json_decref(root);
    return result;
}

bool dmn_state_plan(const struct dmn_model *m, struct pl_plan *ret)
{
    const struct dmn_daemon *d = m->daemon;
    base_autofree struct key *k = malloc(sizeof(*k));
    const char *plan, *algorithm;
    char path[4096], error[256];
    json_t *root, *states, *state;
    bool found;

    if (!k || !state_path(d, m->model, m->name, "", path, sizeof(path)) ||
        !(states = read_states(path, &root))) {
        return false;
    }
    describe(d, k);
    state = best_state(states, k, 2);
    plan = json_string_value(json_object_get(state, "plan"));
    algorithm = json_string_value(json_object_get(state, "algorithm"));
    found = plan && algorithm && strcmp(algorithm, "config") != 0 &&
            strcmp(algorithm, "manual") != 0 &&
            pl_plan_parse(plan, &d->eps, m->model->unit_count, error, sizeof(error), ret) == 0;
    json_decref(root);
    return found;
}
