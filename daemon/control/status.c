/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of Status. */
#include "base/base.h"
#include "base/pixfmt.h"
#include "daemon/control/control.h"
#include "daemon/control/json.h"
#include "daemon/frames/stream.h"
#include "daemon/machine/cgroup_limits.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "governor/machine_state.h"
#include "governor/topology.h"
#include "pipeline/plan_move.h"

#define NO_LIMIT ((uint64_t)1 << 60) /* bytes: version 1 of control groups has no word for none */

const char *const dmn_state_names[] = {[DMN_STATE_SERVING] = "serving",
                                       [DMN_STATE_TUNING] = "tuning",
                                       [DMN_STATE_DEGRADED] = "degraded",
                                       [DMN_STATE_DRAINING] = "draining"};

const char *const dmn_policy_names[IPC_POLICY_COUNT] = {
    [IPC_POLICY_BLOCK] = "block", [IPC_POLICY_LATEST] = "latest", [IPC_POLICY_REJECT] = "reject"};

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
        bool measured;
        double watts = dmn_planner_ep_watts(control->machine, i, &measured);
        char why[128];
        json_t *entry = json_pack(
            "{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:b, s:b, s:s}", "name", e->name,
            "cpus", dmn_json_cores(e->cpus, e->cpu_count), "kind", g ? g->kind : e->name,
            "capacity", g ? known(g->capacity) : json_null(), "policy",
            c.policy >= 0 ? json_integer(c.policy) : json_null(), "governor",
            c.governor[0] ? json_string(c.governor) : json_null(), "freq_khz", known(c.now_khz),
            "max_freq_khz", known(c.max_khz), "speed", e->speed, "watts",
            watts > 0 ? json_real(watts) : json_null(), "watts_measured", measured, "used",
            ep_used(control, i), "why", ep_why(control, e, g, why, sizeof(why)));
        json_array_append_new(list, entry);
    }
    return list;
}

/* The EP that has core @cpu, perhaps by configuration; NULL: none. */
static const char *place_of(const struct dmn_control *control, unsigned cpu)
{
    const struct pl_ep_set *eps = &control->machine->eps;
    size_t e = pl_ep_like(eps, &(struct pl_ep){.cpus = {(uint16_t)cpu}, .cpu_count = 1});

    return e == SIZE_MAX ? NULL : eps->eps[e].name;
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

static json_t *memory_json(const struct dmn_control *control)
{
    struct dmn_memory m = dmn_memory_now(control->models);
    uint64_t limit = dmn_cgroup_limit(control->machine->sysfs_root, DMN_CGROUP_MEMORY);

    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "resident_bytes",
                     known(m.resident_bytes), "peak_bytes", known(m.peak_bytes), "weight_bytes",
                     (json_int_t)m.weight_bytes, "packed_bytes", (json_int_t)m.packed_bytes,
                     "arena_bytes", (json_int_t)m.arena_bytes, "for_models_bytes",
                     known(m.for_models_bytes), "limit_bytes", known(limit < NO_LIMIT ? limit : 0));
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

/* ---- clients ---- */

static json_t *stream_json(const struct dmn_stream *s)
{
    struct dmn_stream_use use = s->use;
    json_t *picture =
        s->width ? json_pack("[I, I]", (json_int_t)s->width, (json_int_t)s->height) : json_null();

    dmn_stream_use_until(&use, &s->base.flow, base_now_ns());
    return json_pack("{s:I, s:s?, s:s, s:s, s:o, s:I, s:I, s:f, s:f, s:f, s:I}", "stream",
                     (json_int_t)s->base.id, "model", s->clients ? s->clients->model->name : NULL,
                     "pixfmt", pixfmt_table[s->format.pixfmt].name, "policy",
                     dmn_policy_names[s->policy], "picture", picture, "credits",
                     (json_int_t)s->base.flow.credits, "unanswered",
                     (json_int_t)s->base.flow.unanswered, "some_s", (double)use.some_ns / 1e9,
                     "more_s", (double)use.more_ns / 1e9, "full_s", (double)use.full_ns / 1e9,
                     "fills", (json_int_t)use.fills);
}

static json_t *clients_json(const struct dmn_frames *f)
{
    json_t *list = json_array();
    const struct ipc_conn *c;

    LIST_FOREACH(c, &f->server.conns, linked) {
        const struct dmn_peer *p = dmn_peer_of(c);
        json_t *opened = json_array();
        size_t unanswered = 0;

        for (size_t i = 0; i < c->stream_count; i++) {
            unanswered += c->streams[i]->tail - c->streams[i]->head;
            json_array_append_new(opened, stream_json(dmn_stream_of(c->streams[i])));
        }
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:o}", "client", c->client, "pid",
                            (int)p->pid, "uid", (int)p->account->uid, "streams",
                            (json_int_t)c->stream_count, "unanswered", (json_int_t)unanswered,
                            "answered", (json_int_t)p->answered, "backlog_bytes",
                            (json_int_t)ipc_outgoing_waiting(&c->out), "opened", opened));
    }
    return list;
}

/* What clients were refused lately. */
static json_t *refusals_json(const struct dmn_frames *f)
{
    uint64_t now_ns = base_now_ns();
    static const char *const whats[] = {[DMN_REFUSED_CONNECTION] = "connection",
                                        [DMN_REFUSED_STREAM] = "stream",
                                        [DMN_REFUSED_POOL] = "pool",
                                        [DMN_REFUSED_FRAME] = "frame"};
    json_t *list = json_array();

    for (size_t i = 0; i < DMN_REFUSALS; i++) {
        const struct dmn_refused_client *r = &f->refusals[i];

        if (r->count == 0) {
            continue;
        }
        /* the reason may quote what the client sent */
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:s, s:s, s:o*, s:I, s:f}", "client", r->client, "pid",
                            (int)r->pid, "uid", (int)r->uid, "what", whats[r->what], "status",
                            ipc_status_name(r->status), "why", json_text_shown(r->why), "count",
                            (json_int_t)r->count, "ago_s",
                            (double)(now_ns - base_min(now_ns, r->last_ns)) / 1e9));
    }
    return list;
}

/* ---- */

static json_t *mix_json(const struct dmn_control *control)
{
    const struct dmn_mix *mix = control->plans->mix;

    return mix ? dmn_mix_json(mix, control->models) : json_null();
}

json_t *dmn_status_json(struct dmn_control *control, const char *model)
{
    json_t *models = json_array();
    char features[KRN_CPU_TEXT_MAX];

    gov_topology_update_freq(control->machine->sysfs_root, control->machine->topology);
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        if (!*model || strcmp(m->name, model) == 0) {
            json_t *entry = dmn_model_status_json(m);

            json_object_set_new(entry, "route", dmn_route_json(control->boards, m));
            json_array_append_new(models, entry);
        }
    }
    return json_pack(
        "{s:s, s:s, s:f, s:i, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:s}, s:o, s:o, s:s, s:o, s:o, "
        "s:o, s:o}",
        "state", dmn_state_names[control->host->state(control->host->ctx)], "version",
        PIPED_VERSION, "uptime_s", (double)(base_now_ns() - control->host->started_ns) / 1e9, "pid",
        (int)getpid(), "models", models, "eps", eps_json(control), "cpus", cpus_json(control),
        "sensors", dmn_sensors_json(control->machine), "clients", clients_json(control->frames),
        "blas", "core", control->host->blas.core, "config", control->host->blas.config,
        "failed_models", dmn_failed_json(&control->models->failed), "memory", memory_json(control),
        "cpu_features", krn_cpu_names(krn_cpu_features(), features), "boards",
        dmn_boards_json(control->boards), "refusals", refusals_json(control->frames), "loop",
        loop_json(control), "mix", mix_json(control));
}
