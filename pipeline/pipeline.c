/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>

#include "pipeline/fence.h"
#include "pipeline/frame_pool.h"
#include "pipeline/pipeline.h"
#include "pipeline/stage_set.h"

/* Limit of the ratio of a core's speed to the slowest core's; limits the frame pool. */
#define SPEED_RATIO_MAX 16.0
/* Room in the pool for the frames that teams hold at once, and for those that gather meanwhile; a
 * plan may use it, unless it is set how many frames may be in flight. */
#define BATCH_FRAMES_MAX 256u

struct pl_pipeline {
    const struct krn_net *net; /* borrowed */
    struct pl_options options;
    struct pl_ep_set eps; /* the EPs that new plans refer to */
    struct pl_frame_pool pool;
    size_t frames; /* of the pool, for plans whose teams take one frame at a time */
    struct pl_sequencer sequencer;
    struct pl_set *set;         /* owned; serves */
    struct pl_set *old;         /* owned; draining, or NULL */
    struct pl_unit_total *past; /* owned; [units], under plans whose teams are gone */
    uint8_t *pieces;            /* owned; [units], for the next plan; NULL: none is cut */
    uint64_t admitted;          /* frames so far: number of the next one */
    size_t in_flight;
    struct pl_trace *trace; /* borrowed; NULL: not traced */
    uint32_t trace_id;
};

/*
 * The frames that one stage with a team per core needs, the most demanding plan: while the slowest
 * core holds one frame, a core that is N times as fast passes N. Equal cores: 2 per core + 2.
 */
static size_t default_frames(const struct pl_ep_set *eps)
{
    double slowest = 0, frames = 2;

    for (size_t i = 0; i < eps->count; i++) {
        double speed = eps->eps[i].speed;

        if (speed > 0 && (slowest == 0 || speed < slowest)) {
            slowest = speed;
        }
    }
    for (size_t i = 0; i < eps->count; i++) {
        double speed = eps->eps[i].speed;
        double ratio = speed > 0 ? base_min(ceil(speed / slowest), SPEED_RATIO_MAX) : 1;

        frames += (double)eps->eps[i].cpu_count * (ratio + 1);
    }
    return (size_t)base_min(frames, (double)UINT16_MAX);
}

static size_t batch_frames(const struct pl_ep_set *eps)
{
    size_t cores = 0;

    for (size_t i = 0; i < eps->count; i++) {
        cores += eps->eps[i].cpu_count;
    }
    return base_min(2 * PL_BATCH_MAX * cores, (size_t)BATCH_FRAMES_MAX);
}

/* Sets the sizes of the frame pool. */
static int make_pool(struct pl_pipeline *p)
{
    size_t frames = p->options.frames, all = frames;

    if (frames == 0) {
        frames = default_frames(&p->eps);
        all = base_min(frames + batch_frames(&p->eps), (size_t)UINT16_MAX);
    }
    p->frames = frames;
    return pl_frame_pool_init(&p->pool, all, krn_net_model(p->net)->arena_bytes);
}

static int new_set(struct pl_pipeline *p, const struct pl_plan *plan, uint32_t epoch,
                   struct pl_set **ret)
{
    struct pl_set_config c = {
        .plan = plan,
        .eps = &p->eps,
        .frames = p->pool.count,
        .epoch = epoch,
        .net = p->net,
        .options = &p->options,
        .pieces = p->pieces,
    };
    size_t units = krn_net_model(p->net)->unit_count;
    int r = pl_plan_check(plan, &p->eps, units, NULL, 0);

    return r < 0 ? r : pl_set_new(&c, ret);
}

int pl_new(const struct krn_net *net, const struct pl_ep_set *eps, const struct pl_plan *plan,
           const struct pl_options *options, struct pl_pipeline **ret)
{
    const struct mdl_model *m = krn_net_model(net);
    struct pl_pipeline *p;
    int r;

    if (m->input_count > PL_FRAME_IO_MAX || m->output_count > PL_FRAME_IO_MAX ||
        eps->count > PL_EP_MAX) {
        return -EINVAL;
    }
    p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return -ENOMEM;
    }
    p->net = net;
    p->eps = *eps;
    p->options = *options;
    p->past = calloc(base_max(m->unit_count, (size_t)1), sizeof(p->past[0]));
    if (p->past == NULL) {
        pl_free(p);
        return -ENOMEM;
    }
    r = make_pool(p);
    if (r == 0) {
        r = pl_sequencer_init(&p->sequencer, p->pool.count);
    }
    if (r == 0) {
        r = new_set(p, plan, 1, &p->set);
    }
    if (r < 0) {
        pl_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

struct pl_pipeline *pl_free(struct pl_pipeline *p)
{
    if (p == NULL) {
        return NULL;
    }
    pl_set_free(p->old);
    pl_set_free(p->set);
    pl_sequencer_deinit(&p->sequencer);
    pl_frame_pool_deinit(&p->pool);
    free(p->past);
    free(p->pieces);
    free(p);
    return NULL;
}

/* Return: most frames in flight while teams of a stage are as fast as their EPs. */
static size_t least_frames(const struct pl_pipeline *p)
{
    return base_min(p->frames + 2 * pl_plan_batched(&p->set->plan), p->pool.count);
}

size_t pl_frame_count(const struct pl_pipeline *p)
{
    size_t measured = p->options.frames == 0 ? pl_set_frames(p->set) : 0;

    return base_max(least_frames(p), base_min(measured, p->pool.count));
}

struct pl_frame *pl_frame_get(struct pl_pipeline *p)
{
    size_t taken = p->pool.count - p->pool.free_count;

    return taken < least_frames(p) || taken < pl_frame_count(p) ? pl_frame_pool_get(&p->pool)
                                                                : NULL;
}

void pl_frame_put(struct pl_pipeline *p, struct pl_frame *f)
{
    pl_frame_pool_put(&p->pool, f);
}

static void bind_memory(const struct pl_pipeline *p, struct pl_frame *f)
{
    const struct mdl_model *m = krn_net_model(p->net);
    struct pl_frame_private *private = f->private;

    private->mem.inputs = f->inputs;
    private->mem.outputs = f->outputs;
    private->mem.image = NULL;
    private->mem.image_ns = &f->image_ns;
    if (f->has_image && m->input_count > 0) {
        const struct mdl_storage *s = &m->storages[m->tensors[m->inputs[0].tensor].storage];

        memcpy(private->image_inputs, f->inputs, sizeof(private->image_inputs));
        private->image_inputs[0] = private->mem.arena + s->offset;
        private->mem.inputs = private->image_inputs;
        private->mem.image = &f->image;
    }
}

/* When the frame is released and due by its client's claim. Whoever needs it later may say so, not
 * sooner. */
static void set_due(struct pl_client *client, struct pl_frame *f, uint64_t now_ns, size_t in_flight)
{
    const struct pl_claim *claim = client ? &client->claim : &PL_CLAIM_NULL;
    uint64_t *released = &f->private->released_ns;

    *released = f->due_ns = 0;
    if (claim->period_ns > 0 || claim->deadline_ns > 0) {
        *released = pl_client_release(client, f->came_ns ? f->came_ns : now_ns, now_ns, in_flight);
    }
    if (claim->deadline_ns > 0) {
        f->due_ns = base_max(*released + claim->deadline_ns, f->deadline_ns);
    }
}

int pl_submit(struct pl_pipeline *p, struct pl_frame *f)
{
    uint64_t now = base_now_ns();
    struct pl_route *to;

    assert(f->private->place == PL_PLACE_CALLER);
    if (p->set->common.options.asleep) {
        return PL_E_ASLEEP;
    }
    to = pl_set_room(p->set, now);
    if (!to) {
        return PL_E_FULL;
    }
    bind_memory(p, f);
    f->private->place = PL_PLACE_FLIGHT;
    f->number = p->admitted++;
    f->status = PL_FRAME_OK;
    f->epoch = p->set->epoch;
    f->admitted_ns = now;
    set_due(p->options.client, f, now, p->in_flight);
    p->in_flight++;
    pl_set_admit(p->set, to, f, now);
    return 0;
}

static void drain(struct pl_pipeline *p, struct pl_set *s)
{
    struct pl_frame *f;

    while ((f = pl_set_finished(s)) != NULL) {
        pl_sequencer_put(&p->sequencer, f->number, f);
    }
}

struct pl_frame *pl_collect(struct pl_pipeline *p)
{
    struct pl_frame *f = pl_sequencer_take(&p->sequencer);

    if (f == NULL) {
        /* pairs with the fence between a team's push and its notify() */
        pl_fence();
        if (p->old != NULL) {
            drain(p, p->old);
        }
        drain(p, p->set);
        f = pl_sequencer_take(&p->sequencer);
    }
    if (f != NULL) {
        f->private->place = PL_PLACE_CALLER;
        p->in_flight--;
    }
    return f;
}

int pl_switch(struct pl_pipeline *p, const struct pl_plan *plan)
{
    struct pl_set *next = NULL;
    int r;

    pl_reap(p);
    if (p->old != NULL) {
        return PL_E_BUSY;
    }
    r = new_set(p, plan, p->set->epoch + 1, &next);
    if (r < 0) {
        return r;
    }
    if (p->trace != NULL) {
        pl_set_trace(next, p->trace, p->trace_id);
    }
    p->old = p->set;
    p->set = next;
    pl_set_close(p->old);
    return 0;
}

int pl_cut(struct pl_pipeline *p, const uint8_t *pieces)
{
    size_t units = krn_net_model(p->net)->unit_count;

    for (size_t i = 0; i < units; i++) {
        if (pieces[i] < 1 || pieces[i] > PL_PIECES_MAX) {
            return -EINVAL;
        }
    }
    if (p->pieces == NULL) {
        p->pieces = malloc(base_max(units, (size_t)1));
    }
    if (p->pieces == NULL) {
        return -ENOMEM;
    }
    memcpy(p->pieces, pieces, units);
    return 0;
}

size_t pl_pieces(const struct pl_pipeline *p, size_t unit)
{
    return p->pieces ? p->pieces[unit] : 1;
}

double pl_longest_piece(const struct pl_pipeline *p, size_t unit)
{
    double longest = 0;

    for (size_t i = 0; i < p->set->team_count; i++) {
        const struct pl_team *t = &p->set->teams[i];

        if (t->longest != NULL && unit >= t->first_unit && unit <= t->last_unit) {
            longest = base_max(longest, atomic_load_explicit(&t->longest[unit - t->first_unit],
                                                             memory_order_relaxed));
        }
    }
    return longest;
}

void pl_trace_attach(struct pl_pipeline *p, struct pl_trace *t, uint32_t id)
{
    assert(p->trace == NULL);
    p->trace = t;
    p->trace_id = id;
    if (p->old != NULL) {
        pl_set_trace(p->old, t, id);
    }
    pl_set_trace(p->set, t, id);
}

bool pl_trace_detach(struct pl_pipeline *p)
{
    bool quiet = pl_set_untrace(p->set, false);

    p->trace = NULL;
    p->trace_id = 0;
    return (p->old == NULL || pl_set_untrace(p->old, false)) && quiet;
}

uint32_t pl_trace_id(const struct pl_pipeline *p)
{
    return p->trace_id;
}

bool pl_asleep(const struct pl_pipeline *p)
{
    return p->set->common.options.asleep;
}

int pl_set_eps(struct pl_pipeline *p, const struct pl_ep_set *eps)
{
    if (eps->count > PL_EP_MAX) {
        return -EINVAL;
    }
    p->eps = *eps;
    return 0;
}

/* What @unit took on the team. Return: false if the team does not run it. */
static bool read_unit(const struct pl_team *t, size_t unit, struct pl_series *ret)
{
    bool runs = unit >= t->first_unit && unit <= t->last_unit;

    *ret = (struct pl_series){0};
    if (runs) {
        pl_clocks_read_unit(&t->clocks, unit - t->first_unit, ret);
    }
    return runs;
}

/* Adds what @unit took under the plan of @s. The first sample of a series may still be cut when the
 * second one comes; the sum of a plan that serves leaves it out until then, so that it only
 * grows. */
static void add_unit(const struct pl_set *s, size_t unit, bool over, struct pl_unit_total *to)
{
    for (size_t i = 0; i < s->team_count; i++) {
        struct pl_series time;

        if (read_unit(&s->teams[i], unit, &time) && (time.count > 1 || over)) {
            to->frames += time.count;
            to->ns += (double)time.count * time.mean_ns;
        }
    }
}

void pl_unit_total(const struct pl_pipeline *p, size_t unit, struct pl_unit_total *ret)
{
    *ret = p->past[unit];
    if (p->old != NULL) {
        add_unit(p->old, unit, false, ret);
    }
    add_unit(p->set, unit, false, ret);
}

void pl_reap(struct pl_pipeline *p)
{
    if (p->old != NULL && pl_set_ended(p->old)) {
        /* its last frames may still be in its completion rings */
        drain(p, p->old);
        for (size_t i = 0; i < krn_net_model(p->net)->unit_count; i++) {
            add_unit(p->old, i, true, &p->past[i]);
        }
        p->old = pl_set_free(p->old);
    }
}

bool pl_switching(const struct pl_pipeline *p)
{
    return p->old != NULL;
}

const struct pl_plan *pl_current_plan(const struct pl_pipeline *p)
{
    return &p->set->plan;
}

const struct pl_ep_set *pl_current_eps(const struct pl_pipeline *p)
{
    return &p->set->eps;
}

uint32_t pl_epoch(const struct pl_pipeline *p)
{
    return p->set->epoch;
}

size_t pl_in_flight(const struct pl_pipeline *p)
{
    return p->in_flight;
}

size_t pl_arena_bytes(const struct pl_pipeline *p)
{
    return (p->pool.count - p->pool.least_free) * p->pool.stride;
}

size_t pl_depth(const struct pl_pipeline *p)
{
    return pl_set_depth(p->set);
}

size_t pl_team_count(const struct pl_pipeline *p)
{
    return p->set->team_count;
}

void pl_team_stats(const struct pl_pipeline *p, size_t team, struct pl_team_stats *ret)
{
    const struct pl_team *t = &p->set->teams[team];
    size_t queue = 0;

    memset(ret, 0, sizeof(*ret));
    ret->stage = t->stage;
    ret->ep = t->ep;
    ret->width = t->width;
    memcpy(ret->cpus, t->cpus, sizeof(ret->cpus));
    ret->pinned = t->pinned;
    pl_clocks_read(&t->clocks, ret);
    for (size_t i = 0; i < t->input_count; i++) {
        queue += pl_ring_count(t->inputs[i]);
    }
    ret->queue = (uint32_t)queue;
    ret->waited_ns = atomic_load_explicit(&t->sitter.waited_ns, memory_order_relaxed);
    ret->held_since_ns = atomic_load_explicit(&t->held_since_ns, memory_order_relaxed);
}

bool pl_team_unit_stats(const struct pl_pipeline *p, size_t team, size_t unit,
                        struct pl_series *ret)
{
    return read_unit(&p->set->teams[team], unit, ret);
}

void pl_unit_stats(const struct pl_pipeline *p, size_t unit, struct pl_series *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < p->set->team_count; i++) {
        struct pl_series one;

        if (read_unit(&p->set->teams[i], unit, &one)) {
            pl_series_merge(ret, &one);
        }
    }
}

uint64_t pl_stalled_ns(const struct pl_pipeline *p, uint64_t now_ns)
{
    uint64_t stalled = pl_set_stalled_ns(p->set, now_ns);

    if (p->old != NULL) {
        stalled = base_max(stalled, pl_set_stalled_ns(p->old, now_ns));
    }
    return stalled;
}
