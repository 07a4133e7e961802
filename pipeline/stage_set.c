/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/stage_set.h"
#include "pipeline/dispatch.h"

/* Not cleared: the team that uses it touches its pages first, and so places them. */
static void *alloc_scratch(size_t bytes)
{
    if (bytes > SIZE_MAX - BASE_CACHE_LINE_BYTES) {
        return NULL;
    }
    return aligned_alloc(BASE_CACHE_LINE_BYTES,
                         base_align_up(base_max(bytes, (size_t)1), BASE_CACHE_LINE_BYTES));
}

static void *alloc_lines(size_t count, size_t bytes)
{
    size_t all;
    void *p = base_mul(count, bytes, &all) ? alloc_scratch(all) : NULL;

    return p != NULL ? memset(p, 0, all) : NULL;
}

/* Gives a team @width more cores of an EP. Teams take the cores of an EP in order and wrap around
 * after the last. */
static void place_team(struct pl_team *t, const struct pl_ep *ep, size_t width, size_t *next_core)
{
    double speed = ep->speed > 0 ? ep->speed : 1;

    for (size_t i = 0; i < width; i++) {
        t->cpus[t->width + i] = ep->cpus[(*next_core)++ % ep->cpu_count];
    }
    t->width = (uint16_t)(t->width + width);
    t->rate += speed * (double)width;
}

/* Places a team of @g. Where it spans EPs, each unit has the speeds of all members. */
static int place(struct pl_set *s, struct pl_team *t, const struct pl_group *g, size_t *next_core)
{
    size_t units = (size_t)(t->last_unit - t->first_unit) + 1, each;

    place_team(t, &s->eps.eps[g->ep], g->width, &next_core[g->ep]);
    for (size_t i = 0; i < PL_ALSO_MAX && g->also[i].width > 0; i++) {
        size_t ep = g->also[i].ep;

        place_team(t, &s->eps.eps[ep], g->also[i].width, &next_core[ep]);
    }
    if (!pl_group_spans(g)) {
        return 0;
    }
    each = (size_t)KRN_UNEVEN_EACH * t->width;
    t->uneven = calloc(units, sizeof(t->uneven[0]));
    t->speeds = calloc(units * each, sizeof(t->speeds[0]));
    if (t->uneven == NULL || t->speeds == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < units * each; i++) {
        size_t ep = g->ep, end = g->width;

        for (size_t k = 0; i % t->width >= end; k++) {
            ep = g->also[k].ep;
            end += g->also[k].width;
        }
        t->speeds[i].hint = s->eps.eps[ep].speed > 0 ? s->eps.eps[ep].speed : 1;
    }
    for (size_t u = 0; u < units; u++) {
        t->uneven[u] = (struct krn_uneven){.members = t->width, .speeds = t->speeds + u * each};
        krn_uneven_first(&t->uneven[u]);
    }
    return 0;
}

/* Return: the group of a stage's team @k. */
static const struct pl_group *group_of(const struct pl_stage_plan *stage, size_t k)
{
    const struct pl_group *g = stage->groups;

    for (; k >= g->count; g++) {
        k -= g->count;
    }
    return g;
}

/* A unit's expected relative cost: cycles, at 16 multiply-accumulates or one moved element per
 * cycle. */
static double unit_share(const struct mdl_model *m, const struct mdl_unit *u)
{
    double cycles = 1;

    for (size_t k = u->first_op; k <= u->last_op; k++) {
        const struct mdl_op *op = &m->ops[k];

        cycles += op->macs / 16 + (double)mdl_elements(&m->tensors[op->out[0]]);
    }
    return cycles;
}

static int make_shares(struct pl_team *t)
{
    const struct mdl_model *m = krn_net_model(t->common->net);
    size_t count = (size_t)(t->last_unit - t->first_unit) + 1;
    double all = 0, until = 0, whole = 0;

    for (size_t u = 0; u < m->unit_count; u++) {
        whole += unit_share(m, &m->units[u]);
        until = u == t->last_unit ? whole : until;
    }
    t->due_part = until / whole;
    t->shares = calloc(count, sizeof(t->shares[0]));
    for (size_t i = 0; t->shares != NULL && i < count; i++) {
        t->shares[i] = unit_share(m, &m->units[t->first_unit + i]);
        all += t->shares[i];
    }
    for (size_t i = 0; t->shares != NULL && i < count; i++) {
        t->shares[i] /= all;
    }
    t->clocks.shares = t->shares;
    return t->shares == NULL ? -ENOMEM : 0;
}

static int make_team(struct pl_set *s, struct pl_team *t, size_t stage, size_t k, size_t *next_core,
                     const uint8_t *pieces)
{
    const struct pl_stage_plan *plan = &s->plan.stages[stage];
    const struct pl_group *g = group_of(plan, k);
    const struct pl_ep *ep = &s->eps.eps[g->ep];
    const struct mdl_unit *units = krn_net_model(s->common.net)->units;
    struct krn_range ops = {units[plan->first_unit].first_op, units[plan->last_unit].last_op + 1};
    size_t scratch_bytes;
    int r;

    t->common = &s->common;
    t->stage = (uint16_t)stage;
    t->ep = g->ep;
    t->replica = (uint16_t)k;
    t->first_unit = plan->first_unit;
    t->last_unit = plan->last_unit;
    t->batch = (uint16_t)pl_group_batch(g);
    t->kind = (uint16_t)krn_net_kind(s->common.net, ep->name);
    t->patience = PL_PATIENCE;
    t->given_ns = base_now_ns();
    snprintf(t->name, sizeof(t->name), "piped:s%u.%.*s%u", t->stage, (int)PL_EP_NAME_MAX, ep->name,
             t->replica);
    r = place(s, t, g, next_core);
    pl_team_share_cores(t);
    r = r == 0 ? pl_clocks_init(&t->clocks, (size_t)(t->last_unit - t->first_unit) + 1) : r;
    if (r == 0 && s->common.options.asleep) {
        scratch_bytes = BASE_CACHE_LINE_BYTES;
    } else if (r == 0 && t->uneven) {
        r = krn_net_join_uneven(s->common.net, t->kind, ops, t->width, t->batch, &scratch_bytes);
    } else if (r == 0) {
        r = krn_net_join(s->common.net, t->kind, ops.begin, ops.end - 1, t->width, &scratch_bytes);
    }
    if (r < 0) {
        return r;
    }
    t->joined = !s->common.options.asleep;
    if (t->batch > 1 && t->joined && !t->uneven) {
        scratch_bytes = base_max(
            scratch_bytes, krn_net_frames_bytes(s->common.net, t->kind, ops, t->width, t->batch));
    }
    r = pieces ? pl_team_cut(t, pieces, &scratch_bytes) : 0;
    if (r < 0) {
        return r;
    }
    t->scratch = alloc_scratch(scratch_bytes);
    return t->scratch == NULL ? -ENOMEM : make_shares(t);
}

/* Called before the teams join, so that weights are packed in place, and after, for those that
 * another model had packed already. */
static void place_weights(const struct pl_set *s, const struct pl_stage_plan *stage)
{
    const struct krn_net *net = s->common.net;
    const struct mdl_unit *units = krn_net_model(net)->units;
    uint32_t eps_of_kind[KRN_KIND_MAX] = {0};
    uint64_t nodes[KRN_KIND_MAX] = {0};

    for (size_t g = 0; g < stage->group_count; g++) {
        size_t kind = krn_net_kind(net, s->eps.eps[stage->groups[g].ep].name);

        for (size_t ep = 0; ep < s->eps.count; ep++) {
            if (pl_group_on(&stage->groups[g], ep) > 0) {
                eps_of_kind[kind] |= (uint32_t)1 << ep;
            }
        }
    }
    for (size_t k = 0; k < krn_net_kinds(net); k++) {
        nodes[k] = pl_stage_nodes(stage, &s->eps, eps_of_kind[k]);
    }
    krn_net_place(net, units[stage->first_unit].first_op, units[stage->last_unit].last_op, nodes);
}

static int make_teams(struct pl_set *s, const uint8_t *pieces)
{
    size_t next_core[PL_EP_MAX] = {0}, n = 0;
    int r = 0;

    for (size_t stage = 0; stage < s->plan.stage_count; stage++) {
        size_t teams = pl_stage_teams(&s->plan.stages[stage]);

        place_weights(s, &s->plan.stages[stage]);
        for (size_t k = 0; r == 0 && k < teams; k++) {
            r = make_team(s, &s->teams[n++], stage, k, next_core, pieces);
        }
    }
    for (size_t stage = 0; r == 0 && stage < s->plan.stage_count; stage++) {
        place_weights(s, &s->plan.stages[stage]);
    }
    return r;
}

static int start_teams(struct pl_set *s)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->team_count; i++) {
        r = pl_team_start(&s->teams[i]);
    }
    for (size_t i = 0; r == 0 && i < s->team_count; i++) {
        r = pl_team_wait_ready(&s->teams[i]);
    }
    return r;
}

static int build(struct pl_set *s, size_t frames, const uint8_t *pieces)
{
    int r;

    pl_routes_count(s);
    s->teams = alloc_lines(s->team_count, sizeof(s->teams[0]));
    s->rings = alloc_lines(s->ring_count, sizeof(s->rings[0]));
    /* a ring between two stages is pointed to from both ends */
    s->ring_pointers = calloc(2 * s->ring_count, sizeof(s->ring_pointers[0]));
    if (s->teams == NULL || s->rings == NULL || s->ring_pointers == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->ring_count; i++) {
        r = pl_ring_init(&s->rings[i], frames);
        if (r < 0) {
            return r;
        }
    }
    r = make_teams(s, pieces);
    if (r < 0) {
        return r;
    }
    pl_routes_connect(s);
    return start_teams(s);
}

int pl_set_new(const struct pl_set_config *c, struct pl_set **ret)
{
    struct pl_set *s = alloc_lines(1, sizeof(*s));
    int r;

    if (s == NULL) {
        return -ENOMEM;
    }
    s->plan = *c->plan;
    s->eps = *c->eps;
    s->epoch = c->epoch;
    s->common.net = c->net;
    s->common.options = *c->options;
    if (pl_plan_oversubscribed(c->plan, c->eps)) {
        /* on a shared core, a spinning thread blocks the one that it waits for */
        s->common.options.spin_ns = 0;
    }
    r = build(s, c->frames, c->pieces);
    if (r < 0) {
        pl_set_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

static void end_teams(struct pl_set *s)
{
    atomic_store_explicit(&s->common.abort, true, memory_order_relaxed);
    for (size_t i = 0; i < s->team_count; i++) {
        pl_wake_signal(&s->teams[i].wake);
        if (s->teams[i].sitter.client != NULL) {
            pl_sit_cancel(&s->teams[i].sitter);
        }
    }
    for (size_t i = 0; i < s->team_count; i++) {
        if (s->teams[i].started) {
            pthread_join(s->teams[i].thread, NULL);
        }
    }
}

static void end_team(struct pl_team *t)
{
    if (t->joined) {
        const struct mdl_unit *units = krn_net_model(t->common->net)->units;

        krn_net_leave(t->common->net, t->kind, units[t->first_unit].first_op,
                      units[t->last_unit].last_op);
    }
    pl_clocks_deinit(&t->clocks);
    free(t->scratch);
    free(t->shares);
    free(t->uneven);
    free(t->speeds);
    free(t->pieces);
    free(t->longest);
}

struct pl_set *pl_set_free(struct pl_set *s)
{
    if (s == NULL) {
        return NULL;
    }
    if (s->teams != NULL) {
        end_teams(s);
        (void)pl_set_untrace(s, true);
        for (size_t i = 0; i < s->team_count; i++) {
            end_team(&s->teams[i]);
        }
    }
    for (size_t i = 0; s->rings != NULL && i < s->ring_count; i++) {
        pl_ring_deinit(&s->rings[i]);
    }
    free(s->teams);
    free(s->rings);
    free(s->ring_pointers);
    free(s);
    return NULL;
}

void pl_set_trace(struct pl_set *s, struct pl_trace *t, uint32_t id)
{
    for (size_t i = 0; i < s->team_count; i++) {
        struct pl_team *team = &s->teams[i];

        pl_team_trace(team, t, s->eps.eps[team->ep].name, s->epoch, id);
    }
}

bool pl_set_untrace(struct pl_set *s, bool joined)
{
    bool quiet = true;

    for (size_t i = 0; i < s->team_count; i++) {
        quiet = pl_team_untrace(&s->teams[i], joined) && quiet;
    }
    return quiet;
}

bool pl_set_ended(const struct pl_set *s)
{
    return atomic_load_explicit(&s->common.exited, memory_order_acquire) == s->team_count;
}

uint64_t pl_set_stalled_ns(const struct pl_set *s, uint64_t now_ns)
{
    uint64_t longest = 0;

    for (size_t i = 0; i < s->team_count; i++) {
        longest = base_max(longest, pl_team_stalled_ns(&s->teams[i], now_ns));
    }
    return longest;
}
