/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/eval_boards.h"

#include "base/base.h"

/* Stages of one board that follow each other, or one shared stage. */
struct segment {
    uint32_t boards;
    size_t stage, last_stage, first, last; /* units */
    double share[TUN_BOARD_MAX];           /* of its frames */
};
struct eval {
    const struct tun_problem *p;
    const struct pl_plan *plan;
    struct tun_outcome *o;
    struct tun_teams_sum sums[PL_STAGE_MAX][TUN_BOARD_MAX];
    size_t count;
    struct segment segments[PL_STAGE_MAX];
};

uint32_t tun_board_mask(const struct tun_problem *p, const struct pl_stage_plan *stage)
{
    uint32_t mask = 0;

    for (size_t g = 0; g < stage->group_count; g++) {
        mask |= UINT32_C(1) << p->eps[stage->groups[g].ep].board;
    }
    return mask;
}

double tun_border_bytes(const struct tun_problem *p, size_t unit)
{
    return unit == 0               ? p->boards.input_bytes
           : unit == p->unit_count ? p->boards.output_bytes
                                   : p->units[unit].in_bytes;
}

double tun_segment_memory(const struct tun_problem *p, size_t board, size_t first, size_t last)
{
    double weights = 0, arena = 0, frames = p->boards.boards[board].frames_held;

    for (size_t u = first; u <= last; u++) {
        weights += p->units[u].weight_bytes;
        arena = base_max(arena, p->units[u].arena_bytes);
    }
    arena += tun_border_bytes(p, first) + tun_border_bytes(p, last + 1);
    return weights + (frames > 0 ? frames : 1) * arena;
}

static size_t segments_of(const struct tun_problem *p, const struct pl_plan *plan,
                          struct segment *ret)
{
    size_t count = 0;

    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        uint32_t mask = tun_board_mask(p, stage);

        if (count > 0 && ret[count - 1].boards == mask && tun_single(mask)) {
            ret[count - 1].last_stage = s;
            ret[count - 1].last = stage->last_unit;
        } else {
            ret[count++] = (struct segment){.boards = mask,
                                            .stage = s,
                                            .last_stage = s,
                                            .first = stage->first_unit,
                                            .last = stage->last_unit};
        }
    }
    return count;
}

void tun_plan_memory(const struct tun_problem *p, const struct pl_plan *plan, double *ret_bytes)
{
    struct segment segments[PL_STAGE_MAX];
    size_t count = segments_of(p, plan, segments);

    for (size_t b = 0; b < TUN_BOARD_MAX; b++) {
        ret_bytes[b] = 0;
        for (size_t s = 0; s < count; s++) {
            if (segments[s].boards >> b & 1) {
                ret_bytes[b] += tun_segment_memory(p, b, segments[s].first, segments[s].last);
            }
        }
    }
}

bool tun_fits_boards(const struct tun_problem *p, const struct pl_plan *plan)
{
    struct segment segments[PL_STAGE_MAX];
    size_t count = segments_of(p, plan, segments);
    double memory[TUN_BOARD_MAX];
    uint32_t used = 0, shared = 0;

    for (size_t s = 0; s < count; s++) {
        uint32_t mask = segments[s].boards;

        if ((shared & mask) || (!tun_single(mask) && (used & mask))) {
            return false;
        }
        used |= mask;
        shared |= tun_single(mask) ? 0 : mask;
    }
    tun_plan_memory(p, plan, memory);
    for (size_t b = 0; b < p->boards.count; b++) {
        double most = p->boards.boards[b].memory_bytes;

        if (most > 0 && memory[b] > most) {
            return false;
        }
    }
    return true;
}

/* Of @bytes over a link: how long it is busy, or with @hop until they are there; 0 on one board. */
static double link_ns(const struct tun_problem *p, size_t from, size_t to, double bytes, bool hop)
{
    const struct tun_link *l = &p->boards.links[from][to];

    return from == to ? 0 : (hop ? l->ns : 0) + l->ns_per_byte * bytes;
}

double tun_slowest_link(const struct tun_problem *p, size_t board, uint32_t others, bool out,
                        double bytes, bool hop, size_t *ret_other)
{
    double worst = 0;
    size_t other = board;

    for (size_t b = 0; b < p->boards.count; b++) {
        if (others >> b & 1) {
            double ns = link_ns(p, out ? board : b, out ? b : board, bytes, hop);

            if (ns > worst) {
                worst = ns;
                other = b;
            }
        }
    }
    if (ret_other) {
        *ret_other = other;
    }
    return worst;
}

/* Boards before (or, @after, behind) a segment. */
static uint32_t neighbours(const struct eval *e, size_t s, bool after)
{
    bool edge = after ? s + 1 == e->count : s == 0;

    return edge ? UINT32_C(1) << e->p->boards.head : e->segments[after ? s + 1 : s - 1].boards;
}

static void raise_limit(struct eval *e, double ns, enum tun_limit limit, size_t stage, size_t from,
                        size_t to)
{
    struct tun_outcome *o = e->o;

    if (ns > o->bottleneck_ns) {
        o->bottleneck_ns = ns;
        o->limit = limit;
        o->limit_stage = stage;
        o->limit_from = from;
        o->limit_to = to;
    }
}

/* The links that count with a board: T_b from its @compute_ns. */
static double board_ns(struct eval *e, size_t s, size_t b, double compute_ns, bool *ret_link,
                       size_t *ret_from, size_t *ret_to)
{
    const struct segment *seg = &e->segments[s];
    uint32_t before = neighbours(e, s, false), after = neighbours(e, s, true);
    double in_bytes = tun_border_bytes(e->p, seg->first);
    double out_bytes = tun_border_bytes(e->p, seg->last + 1), in, out;
    bool added = e->p->boards.comm == TUN_COMM_ADDED;
    size_t from, to;

    in = tun_slowest_link(e->p, b, before, false, in_bytes, added, &from);
    out = tun_slowest_link(e->p, b, after, true, out_bytes, added, &to);
    *ret_from = from;
    *ret_to = b;
    if (added) {
        *ret_link = in + out > compute_ns;
        if (out > in) {
            *ret_from = b;
            *ret_to = to;
        }
        return compute_ns + in + out;
    }
    /* Links of unshared neighbours count by themselves, each with its receiver. */
    if (tun_single(seg->boards)) {
        in = tun_single(before) ? in : 0;
        out = tun_single(after) && s + 1 == e->count ? out : 0;
        raise_limit(e, in, TUN_LIMIT_LINK, seg->stage, from, b);
        raise_limit(e, out, TUN_LIMIT_LINK, seg->last_stage + 1, b, to);
        *ret_link = false;
        return compute_ns;
    }
    out = tun_single(after) ? out : 0;
    *ret_link = base_max(in, out) > compute_ns;
    if (out > in) {
        *ret_from = b;
        *ret_to = to;
    }
    return base_max(compute_ns, base_max(in, out));
}

static void eval_segment(struct eval *e, size_t s)
{
    struct segment *seg = &e->segments[s];
    double ns[TUN_BOARD_MAX], rate = 0, worst = 0;
    size_t from = 0, to = 0, slowest = seg->stage;
    bool link = false;

    for (size_t b = 0; b < e->p->boards.count; b++) {
        double compute = 0;
        size_t a, c;
        bool by_link;

        if (!(seg->boards >> b & 1)) {
            continue;
        }
        for (size_t i = seg->stage; i <= seg->last_stage; i++) {
            double stage_ns = 1 / e->sums[i][b].rate;

            if (stage_ns > compute) {
                compute = stage_ns;
                slowest = i;
            }
        }
        ns[b] = board_ns(e, s, b, compute, &by_link, &a, &c);
        rate += 1 / ns[b];
        if (by_link && ns[b] > worst) {
            link = true;
            worst = ns[b];
            from = a;
            to = c;
        }
    }
    if (!tun_single(seg->boards)) {
        e->o->stage_ns[seg->stage] = 1 / rate;
    }
    for (size_t b = 0; b < e->p->boards.count; b++) {
        seg->share[b] = seg->boards >> b & 1 ? tun_single(seg->boards) ? 1 : 1 / ns[b] / rate : 0;
    }
    for (size_t b = 0; b < e->p->boards.count && tun_single(seg->boards); b++) {
        rate = seg->boards >> b & 1 ? 1 / ns[b] : rate;
    }
    raise_limit(e, 1 / rate, link ? TUN_LIMIT_LINK : TUN_LIMIT_TEAMS,
                link && seg->stage == seg->last_stage ? seg->stage : slowest, from, to);
}

/* The border in front of segment @s, or behind the last. */
static void eval_border(struct eval *e, size_t s, double *in_bytes, double *out_bytes)
{
    size_t boards = e->p->boards.count;
    struct segment head = {.boards = UINT32_C(1) << e->p->boards.head};
    const struct segment *from = s > 0 ? &e->segments[s - 1] : &head;
    const struct segment *to = s < e->count ? &e->segments[s] : &head;
    double bytes = tun_border_bytes(e->p, s < e->count ? e->segments[s].first : e->p->unit_count);
    double slowest = 0;

    head.share[e->p->boards.head] = 1;
    for (size_t a = 0; a < boards; a++) {
        for (size_t b = 0; b < boards; b++) {
            double share = from->share[a] * to->share[b];

            if (a == b || !(from->boards >> a & 1) || !(to->boards >> b & 1)) {
                continue;
            }
            slowest = base_max(slowest, link_ns(e->p, a, b, bytes, true));
            out_bytes[a] += share * bytes;
            in_bytes[b] += share * bytes;
        }
    }
    e->o->latency_ns += slowest;
}

static void eval_energy(struct eval *e)
{
    for (size_t s = 0; s < e->count; s++) {
        const struct segment *seg = &e->segments[s];
        double in_bytes = tun_border_bytes(e->p, seg->first);
        double out_bytes = tun_border_bytes(e->p, seg->last + 1);

        for (size_t b = 0; b < e->p->boards.count; b++) {
            double ns = 0;

            if (seg->boards >> b & 1) {
                ns =
                    tun_slowest_link(e->p, b, neighbours(e, s, false), false, in_bytes, true, NULL);
                ns +=
                    tun_slowest_link(e->p, b, neighbours(e, s, true), true, out_bytes, true, NULL);
            }
            e->o->board_energy_nj[b] += seg->share[b] * ns * e->p->boards.boards[b].link_watts;
        }
        for (size_t i = seg->stage; i <= seg->last_stage; i++) {
            for (size_t b = 0; b < e->p->boards.count; b++) {
                if (seg->boards >> b & 1) {
                    e->o->board_energy_nj[b] +=
                        seg->share[b] * e->sums[i][b].watts / e->sums[i][b].rate;
                }
            }
        }
    }
    for (size_t b = 0; b < e->p->boards.count; b++) {
        e->o->energy_nj += e->o->board_energy_nj[b];
        e->o->most_energy_nj = base_max(e->o->most_energy_nj, e->o->board_energy_nj[b]);
        e->o->most_memory_bytes = base_max(e->o->most_memory_bytes, e->o->memory_bytes[b]);
    }
}

/* Cores that a frame meets more than once, because it comes back to their board. */
static void eval_visits(struct eval *e)
{
    double busy_ns[PL_EP_MAX] = {0};

    for (size_t s = 0; s < e->count; s++) {
        const struct segment *seg = &e->segments[s];

        for (size_t i = seg->stage; i <= seg->last_stage; i++) {
            for (size_t g = 0; g < e->plan->stages[i].group_count; g++) {
                const struct pl_group *group = &e->plan->stages[i].groups[g];
                size_t b = e->p->eps[group->ep].board;
                double ns = tun_busy_ns(e->p, group, e->sums[i][b].rate, seg->share[b], busy_ns);

                raise_limit(e, ns, TUN_LIMIT_TEAMS, i, 0, 0);
            }
        }
    }
}

/* All but memory and energy. Return: 0 or TUN_E_UNKNOWN. */
static int eval_times(struct eval *e)
{
    double in_bytes[TUN_BOARD_MAX] = {0}, out_bytes[TUN_BOARD_MAX] = {0};

    for (size_t s = 0; s < e->plan->stage_count; s++) {
        if (tun_sum_teams(e->p, e->plan, s, NULL, e->o, e->sums[s]) != 0) {
            return TUN_E_UNKNOWN;
        }
    }
    e->count = segments_of(e->p, e->plan, e->segments);
    for (size_t s = 0; s < e->count; s++) {
        eval_segment(e, s);
    }
    eval_visits(e);
    for (size_t s = 0; s <= e->count; s++) {
        eval_border(e, s, in_bytes, out_bytes);
    }
    for (size_t b = 0; b < e->p->boards.count && e->p->boards.comm == TUN_COMM_OVERLAPPED; b++) {
        double port = e->p->boards.boards[b].port_ns_per_byte;

        raise_limit(e, port * base_max(in_bytes[b], out_bytes[b]), TUN_LIMIT_PORT, 0, b, b);
    }
    return 0;
}

int tun_eval_boards(const struct tun_problem *p, const struct pl_plan *plan,
                    struct tun_outcome *ret)
{
    struct tun_outcome o = {.stage_count = plan->stage_count};
    struct eval e = {.p = p, .plan = plan, .o = &o};
    int r = eval_times(&e);

    if (r == 0) {
        tun_plan_memory(p, plan, o.memory_bytes);
        eval_energy(&e);
        *ret = o;
    }
    return r;
}

int tun_eval_shares(const struct tun_problem *p, const struct pl_plan *plan,
                    double ret[PL_STAGE_MAX][TUN_BOARD_MAX])
{
    struct tun_outcome o = {.stage_count = plan->stage_count};
    struct eval e = {.p = p, .plan = plan, .o = &o};
    int r = eval_times(&e);

    for (size_t s = 0; r == 0 && s < e.count; s++) {
        for (size_t i = e.segments[s].stage; i <= e.segments[s].last_stage; i++) {
            memcpy(ret[i], e.segments[s].share, sizeof(e.segments[s].share));
        }
    }
    return r;
}

void tun_limit_text(const struct tun_problem *p, const struct pl_plan *plan,
                    const struct tun_outcome *o, char ret[TUN_ERROR_MAX])
{
    const struct tun_board *boards = p->boards.boards;

    if (o->limit == TUN_LIMIT_LINK) {
        snprintf(ret, TUN_ERROR_MAX, "link %s to %s", boards[o->limit_from].name,
                 boards[o->limit_to].name);
        return;
    }
    if (o->limit == TUN_LIMIT_PORT) {
        snprintf(ret, TUN_ERROR_MAX, "port of %s", boards[o->limit_from].name);
        return;
    }
    snprintf(ret, TUN_ERROR_MAX, "stage %zu (", o->limit_stage);
    for (size_t b = 0, n = 0; b < p->boards.count; b++) {
        if (tun_board_mask(p, &plan->stages[o->limit_stage]) >> b & 1) {
            base_append(ret, TUN_ERROR_MAX, "%s%s", n++ ? ", " : "", boards[b].name);
        }
    }
    base_append(ret, TUN_ERROR_MAX, ")");
}
