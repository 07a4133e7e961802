/* SPDX-License-Identifier: Apache-2.0 */
/* A model on the daemon's cores as the tuner sees it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/planner.h"

/* What a team spends on a frame besides its units until a trial has shown it: taking it off a ring
 * and passing it on, one wake included, and fetching what another core wrote (docs/pipeline.md). */
#define HANDOFF_NS 5000.0
#define HANDOFF_NS_PER_BYTE 0.02

/* Kinds without watts in the configuration: power grows faster than speed, energy for the same work
 * with its root. An estimate; it only ranks kinds. */
#define WATTS_EXPONENT 1.5

static const char *const objectives[] = {
    [TUN_THROUGHPUT] = "throughput", [TUN_LATENCY] = "latency", [TUN_POWER] = "power"};

const char *dmn_objective_name(enum tun_objective objective)
{
    return objectives[objective];
}

int dmn_objective_find(const char *name, enum tun_objective *ret)
{
    for (size_t i = 0; i < base_array_count(objectives); i++) {
        if (strcmp(objectives[i], name) == 0) {
            *ret = (enum tun_objective)i;
            return 0;
        }
    }
    return -EINVAL;
}

struct dmn_goal dmn_goal_config(const struct dmn_config *config)
{
    return (struct dmn_goal){
        .objective = (enum tun_objective)dmn_config_int(config, DMN_KEY_PLANNER_OBJECTIVE),
        .fps = (double)dmn_config_int(config, DMN_KEY_PLANNER_FPS),
        .latency_ms = (double)dmn_config_int(config, DMN_KEY_PLANNER_LATENCY_MS)};
}

static void describe_units(const struct mdl_model *model, struct tun_problem *p)
{
    for (size_t u = 0; u < model->unit_count; u++) {
        const struct mdl_unit *unit = &model->units[u];

        p->units[u] = (struct tun_unit){
            .weight = base_max(unit->weight, 1.0),
            .in_bytes = u ? (double)model->units[u - 1].live_bytes : 0,
        };
    }
}

static struct tun_kind describe_kind(const struct dmn_daemon *d, const struct pl_ep *ep)
{
    struct tun_kind kind = {.cores = (uint16_t)ep->cpu_count,
                            .speed = ep->speed > 0 ? base_min(ep->speed, 1.0) : 1,
                            .bandwidth = 1};

    snprintf(kind.name, sizeof(kind.name), "%s", ep->name);
    for (size_t i = 0; i < d->config->ep_count; i++) {
        if (strcmp(d->config->eps[i].name, ep->name) == 0) {
            kind.watts = d->config->eps[i].watts;
        }
    }
    if (kind.watts <= 0) {
        kind.watts = pow(kind.speed, WATTS_EXPONENT);
    }
    return kind;
}

/* Units and kinds; every cost unknown. */
static int describe(struct dmn_model *m)
{
    const struct dmn_daemon *d = m->daemon;
    struct tun_kind kinds[PL_EP_MAX];
    size_t cores = 0;
    int error;

    for (size_t e = 0; e < d->eps.count; e++) {
        kinds[e] = describe_kind(d, &d->eps.eps[e]);
        cores += kinds[e].cores;
    }
    if (cores > PL_CPU_MAX) {
        return -EINVAL;
    }
    error = tun_problem_init(&m->problem, m->model->unit_count, kinds, d->eps.count);
    if (error) {
        return error;
    }
    m->problem.handoff_ns = HANDOFF_NS;
    m->problem.handoff_ns_per_byte = HANDOFF_NS_PER_BYTE;
    describe_units(m->model, &m->problem);
    return 0;
}

/* Weight over speed where nothing is known. */
static void fill(struct tun_problem *p)
{
    for (size_t k = 0; k < p->kind_count; k++) {
        for (size_t w = 1; w <= p->kinds[k].cores; w++) {
            for (size_t u = 0; u < p->unit_count; u++) {
                struct tun_cell *c = tun_cell_at(&p->costs, k, w, u);

                if (c->source == TUN_UNKNOWN) {
                    *c = (struct tun_cell){.ns = p->units[u].weight / p->kinds[k].speed / (double)w,
                                           .sigma = 0.5,
                                           .source = TUN_PREDICTED};
                }
            }
        }
    }
}

int dmn_planner_init(struct dmn_model *m, struct pl_plan *ret, const char **ret_algorithm)
{
    int error = describe(m);

    if (error) {
        return error;
    }
    error = dmn_state_load(m, ret, ret_algorithm);
    fill(&m->problem);
    return error ? DMN_E_NO_PLAN : 0;
}

void dmn_planner_deinit(struct dmn_model *m)
{
    dmn_planner_clocks_free(m);
    tun_problem_deinit(&m->problem);
}
