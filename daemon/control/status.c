/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "daemon/control/boards_json.h"
#include "daemon/control/clients_json.h"
#include "daemon/control/control.h"
#include "daemon/control/json.h"
#include "daemon/control/sensors_json.h"
#include "daemon/frames/frames.h"
#include "daemon/machine/cgroup_limits.h"
#include "daemon/machine/sampling.h"
#include "governor/machine_state.h"
#include "governor/topology.h"
#include "pipeline/plan_move.h"

#define NO_LIMIT ((uint64_t)1 << 60) /* bytes: version 1 of control groups has no word for none */

static json_t *known(uint64_t value)
{
    return value ? json_integer((json_int_t)value) : json_null();
}

static bool ep_used(const struct dmn_control *control, size_t ep)
{
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        if (pl_plan_cores(pl_current_plan(m->pipe), ep) > 0) {
            return true;
        }
    }
    return false;
}

/* Why an EP is as it is. @g: its cores as the machine has them; NULL: unknown. */
static const char *ep_why(const struct dmn_control *control, const struct pl_ep *e,
                          const struct gov_ep *g, char *room, size_t bytes)
{
    const struct pl_ep_set *whole = dmn_machine_whole(control->machine);
    size_t of = pl_ep_like(whole, e);

    if (of != SIZE_MAX && whole->eps[of].cpu_count > e->cpu_count) {
        if (e->name[pl_ep_base(e->name)] == '\0') {
            snprintf(room, bytes, "without its cores that are slowed");
        } else {
            snprintf(room, bytes, "split off %s: core %u is slower than its siblings",
                     whole->eps[of].name, e->cpus[0]);
        }
        return room;
    }
    return dmn_machine_config(control->machine)->ep_count ? "named by the configuration"
           : g                                            ? g->why
                                                          : "";
}

static json_t *eps_json(const struct dmn_control *control)
{
    json_t *list = json_array();

    for (size_t i = 0; i < control->machine->eps.count; i++) {
        const struct pl_ep *e = &control->machine->eps.eps[i];
        const struct gov_ep *g =
            gov_topology_ep(control->machine->topology, control->machine->eps.eps[i].cpus[0]);
        struct gov_clock c =
            gov_clock_of(dmn_sensors_now(control->machine), control->machine->topology,
                         &(struct gov_cores){e->name, e->cpus, e->cpu_count});
        json_t *cpus = json_array(), *entry;
        char why[128];

        for (size_t k = 0; k < e->cpu_count; k++) {
            json_array_append_new(cpus, json_integer(e->cpus[k]));
        }
        entry = json_pack(
            "{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:b, s:s}", "name", e->name, "cpus",
            cpus, "kind", g ? g->kind : e->name, "capacity", g ? known(g->capacity) : json_null(),
            "policy", c.policy >= 0 ? json_integer(c.policy) : json_null(), "governor",
            c.governor[0] ? json_string(c.governor) : json_null(), "freq_khz", known(c.now_khz),
            "max_freq_khz", known(c.max_khz), "speed", e->speed, "used", ep_used(control, i), "why",
            ep_why(control, e, g, why, sizeof(why)));
        json_array_append_new(list, entry);
    }
    return list;
}

/* Cores that are in no EP, and why. */
static json_t *unused_json(const struct dmn_control *control)
{
    json_t *list = json_array();

    for (size_t i = 0; i < control->machine->topology->cpu_count; i++) {
        const struct gov_cpu *c = &control->machine->topology->cpus[i];

        if (!c->used) {
            json_array_append_new(list, json_pack("{s:i, s:b, s:s}", "cpu", (int)c->cpu, "online",
                                                  c->online, "why", c->why));
        }
    }
    return list;
}

/* The EP that has core @cpu, perhaps by configuration; NULL: none. */
static const char *place_of(const struct dmn_control *control, unsigned cpu)
{
    for (size_t i = 0; i < control->machine->eps.count; i++) {
        for (size_t k = 0; k < control->machine->eps.eps[i].cpu_count; k++) {
            if (control->machine->eps.eps[i].cpus[k] == cpu) {
                return control->machine->eps.eps[i].name;
            }
        }
    }
    return NULL;
}

static bool in_a_plan(const struct dmn_control *control, unsigned cpu)
{
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        for (size_t i = 0; i < pl_team_count(m->pipe); i++) {
            struct pl_team_stats t;

            pl_team_stats(m->pipe, i, &t);
            for (size_t k = 0; k < base_min((size_t)t.width, base_array_count(t.cpus)); k++) {
                if (t.cpus[k] == cpu) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Every core of the machine, and why it is used or not. */
static json_t *cpus_json(const struct dmn_control *control)
{
    json_t *list = json_array();

    for (size_t i = 0; i < control->machine->topology->cpu_count; i++) {
        const struct gov_cpu *c = &control->machine->topology->cpus[i];
        const char *place = place_of(control, c->cpu);
        bool used = in_a_plan(control, c->cpu);
        char why[GOV_WHY_MAX * 2];

        snprintf(why, sizeof(why), "%s%s",
                 dmn_machine_config(control->machine)->ep_count == 0 ? c->why
                 : place                                             ? "named by the configuration"
                         : "in no execution place of the configuration",
                 !place ? ""
                 : used ? ", in use"
                        : ", left free by the present plans");
        json_array_append_new(list,
                              json_pack("{s:i, s:b, s:b, s:s?, s:s}", "cpu", (int)c->cpu, "online",
                                        c->online, "used", used, "ep", place, "why", why));
    }
    return list;
}

static json_t *bytes(uint64_t count)
{
    return count ? json_integer((json_int_t)count) : json_null();
}

static json_t *memory_json(const struct dmn_control *control)
{
    struct dmn_memory m = dmn_memory_now(control->models);
    uint64_t limit = dmn_cgroup_memory_limit(control->machine->sysfs_root);

    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "resident_bytes",
                     bytes(m.resident_bytes), "peak_bytes", bytes(m.peak_bytes), "weight_bytes",
                     (json_int_t)m.weight_bytes, "packed_bytes", (json_int_t)m.packed_bytes,
                     "arena_bytes", (json_int_t)m.arena_bytes, "for_models_bytes",
                     bytes(m.for_models_bytes), "limit_bytes", bytes(limit < NO_LIMIT ? limit : 0));
}

static json_t *loop_json(const struct dmn_control *control)
{
    json_t *list = json_array();
    const struct dmn_loop_user *u;

    LIST_FOREACH(u, &control->turns->known, linked) {
        if (u->uid != DMN_LOOP_NOBODY) {
            json_array_append_new(list, json_pack("{s:I, s:f, s:I}", "uid", (json_int_t)u->uid,
                                                  "spent_s", (double)u->spent_ns / 1e9, "put_off",
                                                  (json_int_t)u->put_off));
        }
    }
    return list;
}

json_t *dmn_status_json(struct dmn_control *control, const char *model)
{
    json_t *models = json_array();
    char features[KRN_CPU_TEXT_MAX];

    gov_topology_update_freq(control->machine->sysfs_root, control->machine->topology);
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        if (!model || strcmp(m->name, model) == 0) {
            json_t *entry = dmn_model_status_json(m);

            json_object_set_new(entry, "route", dmn_route_json(control->boards, m));
            json_array_append_new(models, entry);
        }
    }
    return json_pack(
        "{s:s, s:s, s:f, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:s}, s:o, s:o, s:s, s:o, s:o, "
        "s:o}",
        "state", dmn_state_name(control->host->state(control->host->ctx)), "version", PIPED_VERSION,
        "uptime_s", (double)(base_now_ns() - control->host->started_ns) / 1e9, "pid", (int)getpid(),
        "models", models, "eps", eps_json(control), "cpus", cpus_json(control), "cpus_unused",
        unused_json(control), "sensors", dmn_sensors_json(control->machine), "clients",
        dmn_clients_json(control->frames), "blas", "core", control->host->blas.core, "config",
        control->host->blas.config, "failed_models", dmn_failed_json(&control->models->failed),
        "memory", memory_json(control), "cpu_features", krn_cpu_names(krn_cpu_features(), features),
        "boards", dmn_boards_json(control->boards), "refusals", dmn_refusals_json(control->frames),
        "loop", loop_json(control));
}
