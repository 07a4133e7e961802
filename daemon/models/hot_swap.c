/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/hot_swap.h"

static void fail(struct dmn_hot_swap *r, enum dmn_refusal reason, const char *why)
{
    if (!r->told) {
        r->told = true;
        r->failed(r, &(struct dmn_outcome){.reason = reason, .text = why});
    }
}

void dmn_hot_swap_free(struct dmn_hot_swap *r)
{
    if (r->end) {
        r->end(r);
    }
    free(r->of);
    dmn_load_free(r->load);
    free(r);
}

/* Replaces the old model, if it still exists and nothing else changes it. */
static void replace(struct dmn_hot_swap *r)
{
    struct dmn_models *models = r->models;
    struct dmn_model *old = dmn_model_find(models, r->load->name), *m = NULL;
    char error[MDL_ERROR_MAX];

    if (!old || models->planner->changing(old)) {
        fail(r, DMN_REFUSED_BUSY,
             old ? "the model's plan is being changed" : "the model was unloaded");
        return;
    }
    r->load->from_config = old->from_config;
    if (dmn_model_start(models, r->load, r->cause, error, &m) < 0) {
        fail(r, DMN_REFUSED_LOAD, error);
        return;
    }
    dmn_model_replace(old, m);
    dmn_model_unload(old, (struct dmn_done){0});
    r->serves(r);
}

static int before(struct dmn_arrival *a)
{
    struct dmn_hot_swap *r = base_container_of(a, struct dmn_hot_swap, arrival);

    r->error = r->prepare ? r->prepare(r) : 0;
    return r->error;
}

static bool loaded(struct dmn_arrival *a)
{
    struct dmn_hot_swap *r = base_container_of(a, struct dmn_hot_swap, arrival);

    return !r->loaded || r->loaded(r);
}

static void leave(struct dmn_arrival *a)
{
    fail(base_container_of(a, struct dmn_hot_swap, arrival), DMN_REFUSED_BUSY,
         "the daemon is stopping");
}

static void end(struct dmn_arrival *a, const struct dmn_outcome *o)
{
    struct dmn_hot_swap *r = base_container_of(a, struct dmn_hot_swap, arrival);

    if (!o) {
        replace(r);
    } else if (o->text) { /* without text the requester knows */
        fail(r, o->reason, o->text);
    }
    if (r->models->hot_swap == r) {
        r->models->hot_swap = NULL;
    }
    dmn_hot_swap_free(r);
}

/* Return: why no other hot swap can begin beside @r; borrowed from it. */
static const char *in_way(struct dmn_hot_swap *r)
{
    snprintf(r->in_way, sizeof(r->in_way), "model %s is being %s; ask again when that has ended",
             r->load->name,
             r->cause == DMN_CAUSE_QUANTISE  ? "quantised"
             : r->cause == DMN_CAUSE_REQUEST ? "loaded again"
                                             : "optimised");
    return r->in_way;
}

struct dmn_hot_swap *dmn_hot_swap_new(struct dmn_model *m, enum dmn_cause cause,
                                      struct dmn_outcome *ret_why)
{
    struct dmn_load_source source = dmn_model_source(m);
    struct dmn_models *models = m->of;
    struct dmn_hot_swap *r;

    if (models->hot_swap && !models->hot_swap->arrival.gives_way) {
        *ret_why =
            (struct dmn_outcome){.reason = DMN_REFUSED_BUSY, .text = in_way(models->hot_swap)};
        return NULL;
    }
    if (models->planner->changing(m)) {
        *ret_why = (struct dmn_outcome){.reason = DMN_REFUSED_BUSY,
                                        .text = "the model's plan is being changed"};
        return NULL;
    }
    r = calloc(1, sizeof(*r));
    if (!r || !(r->load = dmn_load_from(&source, models))) {
        free(r);
        *ret_why = (struct dmn_outcome){.reason = DMN_REFUSED_LOAD, .text = "out of memory"};
        return NULL;
    }
    r->models = models;
    r->cause = cause;
    r->arrival = (struct dmn_arrival){.models = models,
                                      .loads = &r->load,
                                      .count = 1,
                                      .before = before,
                                      .loaded = loaded,
                                      .leave = leave,
                                      .end = end};
    return r;
}

void dmn_hot_swap_begin(struct dmn_hot_swap *r)
{
    dmn_arrival_begin(&r->arrival);
    if (r->models->hot_swap) {
        dmn_arrival_cancel(&r->models->hot_swap->arrival, "a request took its place");
    }
    r->models->hot_swap = r;
}

void dmn_hot_swap_cancel(const struct dmn_models *models, const char *name, const char *why)
{
    struct dmn_hot_swap *r = models->hot_swap;

    if (r && strcmp(r->load->name, name) == 0) {
        dmn_arrival_cancel(&r->arrival, why);
    }
}
