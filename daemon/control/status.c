/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/memory.h"

const char *dmn_daemon_state(const struct dmn_daemon *d)
{
    if (d->draining) {
        return "draining";
    }
    for (const struct dmn_model *m = d->models; m; m = m->next) {
        if (m->stalled) {
            return "degraded";
        }
    }
    if (d->failed_models > 0 || !d->models) {
        return "degraded";
    }
    for (const struct dmn_model *m = d->models; m; m = m->next) {
        if (m->retune) {
            return "tuning";
        }
    }
    return dmn_calibrating(d) ? "tuning" : "serving";
}

static json_t *known(uint64_t value)
{
    return value ? json_integer((json_int_t)value) : json_null();
}

static bool ep_used(const struct dmn_daemon *d, size_t ep)
{
    for (const struct dmn_model *m = d->models; m; m = m->next) {
        if (pl_plan_cores(pl_current_plan(m->pipe), ep) > 0) {
            return true;
        }
    }
    return false;
}

/* What governs the cores of a place: by the sample, core by core, where there is one; places that
 * the configuration names need not be those of the topology. */
struct ep_clock {
    int64_t policy; /* -1: none known */
    const char *governor;
    uint64_t now_khz, max_khz; /* 0: unknown */
};

static struct ep_clock clock_of(const struct dmn_daemon *d, const struct pl_ep *e,
                                const struct gov_ep *g)
{
    const struct gov_snapshot *now = dmn_sensors_now(d);
    const struct gov_policy *p = now && e->cpu_count ? gov_snapshot_policy(now, e->cpus[0]) : NULL;
    struct ep_clock c = {.policy = -1, .governor = ""};

    if (p) {
        c = (struct ep_clock){p->number, p->governor, p->now_khz == GOV_UNKNOWN ? 0 : p->now_khz,
                              p->hardware_khz == GOV_UNKNOWN ? 0 : p->hardware_khz};
    } else if (g) {
        c = (struct ep_clock){g->policy, g->governor, g->freq_khz, g->max_freq_khz};
    }
    return c;
}

static json_t *eps_json(const struct dmn_daemon *d)
{
    json_t *list = json_array();

    for (size_t i = 0; i < d->eps.count; i++) {
        const struct pl_ep *e = &d->eps.eps[i];
        const struct gov_ep *g = dmn_ep_found(d, i);
        struct ep_clock c = clock_of(d, e, g);
        json_t *cpus = json_array(), *entry;

        for (size_t k = 0; k < e->cpu_count; k++) {
            json_array_append_new(cpus, json_integer(e->cpus[k]));
        }
        entry = json_pack(
            "{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:b, s:s}", "name", e->name, "cpus",
            cpus, "kind", g ? g->kind : e->name, "capacity", g ? known(g->capacity) : json_null(),
            "policy", c.policy >= 0 ? json_integer(c.policy) : json_null(), "governor",
            c.governor[0] ? json_string(c.governor) : json_null(), "freq_khz", known(c.now_khz),
            "max_freq_khz", known(c.max_khz), "speed", e->speed, "used", ep_used(d, i), "why",
            d->config->ep_count ? "named by the configuration"
            : g                 ? g->why
                                : "");
        json_array_append_new(list, entry);
    }
    return list;
}

/* Cores that no place has, and why. */
static json_t *unused_json(const struct dmn_daemon *d)
{
    json_t *list = json_array();

    for (size_t i = 0; i < d->topology->cpu_count; i++) {
        const struct gov_cpu *c = &d->topology->cpus[i];

        if (!c->used) {
            json_array_append_new(list, json_pack("{s:i, s:b, s:s}", "cpu", (int)c->cpu, "online",
                                                  c->online, "why", c->why));
        }
    }
    return list;
}

/* The place that has core @cpu, which the configuration may have named; NULL: none. */
static const char *place_of(const struct dmn_daemon *d, unsigned cpu)
{
    for (size_t i = 0; i < d->eps.count; i++) {
        for (size_t k = 0; k < d->eps.eps[i].cpu_count; k++) {
            if (d->eps.eps[i].cpus[k] == cpu) {
                return d->eps.eps[i].name;
            }
        }
    }
    return NULL;
}

static bool in_a_plan(const struct dmn_daemon *d, unsigned cpu)
{
    for (const struct dmn_model *m = d->models; m; m = m->next) {
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
static json_t *cpus_json(const struct dmn_daemon *d)
{
    json_t *list = json_array();

    for (size_t i = 0; i < d->topology->cpu_count; i++) {
        const struct gov_cpu *c = &d->topology->cpus[i];
        const char *place = place_of(d, c->cpu);
        bool used = in_a_plan(d, c->cpu);
        char why[GOV_WHY_MAX * 2];

        snprintf(why, sizeof(why), "%s%s",
                 d->config->ep_count == 0 ? c->why
                 : place                  ? "named by the configuration"
                                          : "no place of the configuration has it",
                 !place ? ""
                 : used ? ", in use"
                        : ", left free by the present plans");
        json_array_append_new(list,
                              json_pack("{s:i, s:b, s:b, s:s?, s:s}", "cpu", (int)c->cpu, "online",
                                        c->online, "used", used, "ep", place, "why", why));
    }
    return list;
}

static json_t *clients_json(const struct dmn_daemon *d)
{
    json_t *list = json_array();

    for (const struct dmn_conn *c = d->frames.conns; c; c = c->next) {
        size_t unanswered = 0;

        for (size_t i = 0; i < c->stream_count; i++) {
            unanswered += c->streams[i]->tail - c->streams[i]->head;
        }
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:i, s:I, s:I, s:I, s:I}", "client", c->client,
                                        "pid", (int)c->pid, "uid", (int)c->account->uid, "streams",
                                        (json_int_t)c->stream_count, "unanswered",
                                        (json_int_t)unanswered, "answered", (json_int_t)c->answered,
                                        "backlog_bytes", (json_int_t)(c->out_used - c->out_pos)));
    }
    return list;
}

json_t *dmn_status_json(struct dmn_daemon *d, const char *model)
{
    json_t *models = json_array();

    gov_topology_update_freq(d->sysfs_root, d->topology);
    for (const struct dmn_model *m = d->models; m; m = m->next) {
        if (!model || strcmp(m->name, model) == 0) {
            json_array_append_new(models, dmn_model_status_json(m));
        }
    }
    return json_pack("{s:s, s:s, s:f, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:s}, s:I, s:o}",
                     "state", dmn_daemon_state(d), "version", PIPED_VERSION, "uptime_s",
                     (double)(base_now_ns() - d->started_ns) / 1e9, "pid", (int)getpid(), "models",
                     models, "eps", eps_json(d), "cpus", cpus_json(d), "cpus_unused",
                     unused_json(d), "sensors", dmn_sensors_json(d), "clients", clients_json(d),
                     "blas", "core", d->blas.core, "config", d->blas.config, "failed_models",
                     (json_int_t)d->failed_models, "memory", dmn_memory_json(d));
}
