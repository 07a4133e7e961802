/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/boards/pass.h"

#include "base/base.h"

#define LABELS_MAX 2048u /* of a node and unit; more are left out: .cut */
#define SUMS_MAX 48u     /* likewise, of energy and latency */
#define ROUNDING 1e-13   /* of a period: sums in another order */

struct tun_least {
    double a, b;
};

static bool memory_fits(const struct tun_pass *p, size_t board, const struct tun_step *s,
                        double *ret_bytes)
{
    double most = p->m->p->boards.boards[board].memory_bytes;

    if (most <= 0 && p->o.figure != TUN_PASS_FRONT) {
        return true;
    }
    *ret_bytes = tun_map_memory(p->m, board, s->from, s->to);
    return most <= 0 || p->o.no_memory || *ret_bytes <= most;
}

static bool energy_fits(const struct tun_pass *p, size_t board, double nj)
{
    double most = p->m->p->boards.boards[board].energy_max_nj;

    return most <= 0 || p->o.no_energy || nj <= most;
}

/* What the units from here on add at least. */
static struct tun_least least(const struct tun_pass *p, size_t from)
{
    bool latency = p->o.figure == TUN_PASS_ENERGY && isfinite(p->o.latency_max_ns);

    return p->o.figure == TUN_PASS_LATENCY ? (struct tun_least){p->least_ns[from], 0}
           : p->o.figure == TUN_PASS_ENERGY
               ? (struct tun_least){p->least_nj[from], latency ? p->least_ns[from] : 0}
               : (struct tun_least){0, 0};
}

static bool beaten(const struct tun_labels *by, const struct tun_label *l, struct tun_least rest)
{
    for (size_t i = 0; i < by->count; i++) {
        if (by->list[i].a <= l->a + rest.a && by->list[i].b <= l->b + rest.b) {
            return true;
        }
    }
    return false;
}

/* Return: 0 or -ENOMEM. */
static int add_label(struct tun_pass *p, struct tun_labels *to, const struct tun_label *l)
{
    size_t kept = 0;

    if (beaten(to, l, (struct tun_least){0, 0})) {
        return 0;
    }
    for (size_t i = 0; i < to->count; i++) {
        if (to->list[i].a < l->a || to->list[i].b < l->b) {
            to->list[kept++] = to->list[i];
        }
    }
    to->count = kept;
    if (kept == (p->o.figure == TUN_PASS_FRONT ? LABELS_MAX : SUMS_MAX)) {
        p->cut = true;
        return 0;
    }
    if (!base_room(&to->list, sizeof(*to->list), kept, &to->room)) {
        return -ENOMEM;
    }
    to->list[to->count++] = *l;
    return 0;
}

/* Continues every label of a node by a segment. */
static int carry(struct tun_pass *p, uint32_t node, const struct tun_step *s,
                 const struct tun_label *l)
{
    const struct tun_labels *from = &p->labels[node * p->m->n + s->from];
    struct tun_labels *to = s->last ? &p->end : &p->labels[(size_t)s->edge->to * p->m->n + s->to];
    int r = 0;

    for (size_t i = 0; r == 0 && i < from->count; i++) {
        struct tun_label n = *l;

        if (p->o.figure == TUN_PASS_FRONT) {
            n.a = base_max(n.a, from->list[i].a);
            n.b = base_max(n.b, from->list[i].b);
        } else {
            n.a += from->list[i].a;
            n.b += from->list[i].b;
        }
        n.period_ns = base_max(base_max(n.period_ns, s->head_ns), from->list[i].period_ns);
        n.node = node;
        n.edge = (uint32_t)(s->edge - p->m->edges);
        n.from = (uint16_t)s->from;
        n.label = (uint16_t)i;
        if (p->o.figure == TUN_PASS_ENERGY &&
            n.b + least(p, s->to).b * (1 - ROUNDING) > p->o.latency_max_ns) {
            continue;
        }
        /* Figures only grow: what a whole plan is no worse than leads nowhere. */
        r = s->last || !beaten(&p->end, &n, least(p, s->to)) ? add_label(p, to, &n) : 0;
    }
    return r;
}

/* A segment with these figures: a label's two. */
static struct tun_label label_of(const struct tun_pass *p, double latency_ns, double energy_nj,
                                 double most_bytes, double most_nj)
{
    struct tun_label l = {0};

    switch (p->o.figure) {
    case TUN_PASS_ANY:
        break;
    case TUN_PASS_LATENCY:
        l.a = latency_ns;
        break;
    case TUN_PASS_ENERGY:
        l.a = energy_nj;
        l.b = isfinite(p->o.latency_max_ns) ? latency_ns : 0;
        break;
    case TUN_PASS_FRONT:
        l.a = most_bytes;
        l.b = most_nj;
        break;
    }
    return l;
}

enum { NONE_LONGER = 1 };

/* Return: 0: added or not; NONE_LONGER: nor is any longer segment possible; -ENOMEM. */
static int one_board(struct tun_pass *p, uint32_t node, struct tun_step *s, size_t b)
{
    const struct tun_map *m = p->m;
    const struct tun_board *board = &m->p->boards.boards[b];
    bool added = m->p->boards.comm == TUN_COMM_ADDED;
    size_t kind = m->kind_of[b];
    double in = tun_slowest_link(m->p, b, s->before, false, s->in_bytes, true, NULL);
    double out = tun_slowest_link(m->p, b, s->after, true, s->out_bytes, true, NULL);
    double bytes = 0, bound = p->o.period_ns, link_nj = board->link_watts * (in + out);
    const struct tun_point none = {0, 0, 0}, *points = &none;
    int r = 0, count = 1;

    if (added) {
        bound -= in + out;
        if (bound <= 0 ||
            m->kinds[kind].least_ns[tun_map_segment(m, s->from, s->to)] * (1 - ROUNDING) > bound) {
            return 0;
        }
    } else if (s->to > p->reach[kind][s->from]) {
        return NONE_LONGER;
    } else if (tun_unshared_ns(m, s, b) > p->o.period_ns) {
        return 0;
    }
    if (!memory_fits(p, b, s, &bytes)) {
        return 0;
    }
    if (p->inner[kind].n > 0) {
        count = added ? tun_inner_tighter(&p->inner[kind], bound, s->from, s->to, &points)
                      : tun_inner_points(&p->inner[kind], s->from, s->to, m->n, &points);
    }
    for (int i = 0; r == 0 && i < count; i++) {
        double nj = points[i].energy_nj + link_nj;
        struct tun_label l = label_of(p, points[i].latency_ns + s->latency_ns, nj, bytes, nj);

        if (!isfinite(points[i].energy_nj) || energy_fits(p, b, nj)) {
            l.point = points[i];
            l.bound_ns = bound;
            l.period_ns =
                base_max(points[i].period_ns + (added ? in + out : 0), tun_unshared_ns(m, s, b));
            r = carry(p, node, s, &l);
        }
    }
    return count < 0 ? count : r;
}

enum { TOO_MANY_GROUPS = 1 };

/* Slowest team and watts of a kind's stage of highest rate. Return: 0; TOO_MANY_GROUPS; -ENOMEM. */
static int full_stage(struct tun_kind *k, size_t from, size_t to)
{
    size_t at = tun_segment(&k->space, from, to);
    struct pl_stage_plan stage;
    int r;

    if (k->slowest[at] >= 0) {
        return isinf(k->slowest[at]) ? TOO_MANY_GROUPS : 0;
    }
    r = tun_full_teams(k, from, to, &stage);
    if (r < 0) {
        return r;
    }
    k->slowest[at] = r > 0 ? INFINITY : 0;
    k->watts[at] = 0;
    for (size_t g = 0; r == 0 && g < stage.group_count; g++) {
        const struct pl_group *group = &stage.groups[g];

        k->slowest[at] =
            base_max(k->slowest[at], tun_team_ns(&k->p, from, to - 1, group->ep, group->width));
        k->watts[at] += tun_ep_watts(&k->space.p->eps[group->ep]) * group->width * group->count;
    }
    return r > 0 ? TOO_MANY_GROUPS : 0;
}

/* Return: as one_board(). */
static int several_boards(struct tun_pass *p, uint32_t node, struct tun_step *s)
{
    struct tun_map *m = p->m;
    const struct tun_boards *all = &m->p->boards;
    bool added = all->comm == TUN_COMM_ADDED;
    double ns[TUN_BOARD_MAX], link_ns[TUN_BOARD_MAX], full[TUN_BOARD_MAX];
    double rate = 0, best = 0, most = 0, most_nj = 0, nj = 0, latency = 0, ports = 0;
    uint32_t set = s->edge->set;
    struct tun_label l;

    for (size_t b = 0; b < all->count; b++) {
        double in, out;

        if (!(set >> b & 1)) {
            continue;
        }
        full[b] = tun_full_rate(tun_map_kind(m, b), s->from, s->to);
        best += full[b];
        in = tun_slowest_link(m->p, b, s->before, false, s->in_bytes, added, NULL);
        out = added || tun_single(s->after)
                  ? tun_slowest_link(m->p, b, s->after, true, s->out_bytes, added, NULL)
                  : 0;
        ns[b] = added ? 1 / full[b] + in + out : base_max(1 / full[b], base_max(in, out));
        rate += 1 / ns[b];
    }
    if (best * p->o.period_ns < 1) {
        return NONE_LONGER;
    }
    if (rate * p->o.period_ns < 1) {
        return 0;
    }
    for (size_t b = 0; b < all->count; b++) {
        double bytes = 0;

        if (!(set >> b & 1)) {
            continue;
        }
        ports = base_max(ports, added ? 0 : tun_port_ns(m, s, b, 1 / ns[b] / rate));
        if (!memory_fits(p, b, s, &bytes) || ports > p->o.period_ns) {
            return 0;
        }
        most = base_max(most, bytes);
        link_ns[b] = tun_slowest_link(m->p, b, s->before, false, s->in_bytes, true, NULL) +
                     tun_slowest_link(m->p, b, s->after, true, s->out_bytes, true, NULL);
    }
    for (size_t b = 0; b < all->count && p->inner[0].n > 0; b++) {
        struct tun_kind *k;
        double board_nj;
        size_t at;
        int r;

        if (!(set >> b & 1)) {
            continue;
        }
        k = tun_map_kind(m, b);
        r = full_stage(k, s->from, s->to);
        if (r != 0) {
            return base_min(r, 0);
        }
        at = tun_segment(&k->space, s->from, s->to);
        board_nj = (k->watts[at] / full[b] + all->boards[b].link_watts * link_ns[b]) / ns[b] / rate;
        if (!energy_fits(p, b, board_nj)) {
            return 0;
        }
        nj += board_nj;
        most_nj = base_max(most_nj, board_nj);
        latency = base_max(latency, k->slowest[at]);
    }
    l = label_of(p, latency + s->latency_ns, nj, most, most_nj);
    l.period_ns = base_max(1 / rate, ports);
    return carry(p, node, s, &l);
}

/* All segments that begin at a unit, by one edge. */
static int extend(struct tun_pass *p, uint32_t node, const struct tun_edge *e, size_t from)
{
    const struct tun_map *m = p->m;
    const struct tun_boards *all = &m->p->boards;
    uint32_t head = UINT32_C(1) << all->head;
    struct tun_step s = {.edge = e,
                         .before = m->nodes[node].used ? m->nodes[node].last : head,
                         .from = from,
                         .in_bytes = tun_border_bytes(m->p, from)};
    double hop = tun_border_latency(m, s.before, e->set, s.in_bytes);
    size_t board = (size_t)__builtin_ctz(e->set), first = m->n;
    int r = 0;

    if (e->to != TUN_NO_NODE) {
        uint32_t left = tun_nodes_present(m) & ~(uint32_t)m->nodes[e->to].used;

        first = base_max(from + 1, (size_t)p->rest[tun_nodes_canonical(m, left)]);
    }
    for (s.to = first; r == 0 && s.to <= m->n; s.to++) {
        s.last = s.to == m->n;
        s.out_bytes = tun_border_bytes(m->p, s.to);
        if (s.last && !e->may_end) {
            break;
        }
        s.after = s.last ? head : e->next == TUN_PROMISE_SHARED && !m->promise_all ? 0xff : e->next;
        s.latency_ns = hop;
        if (s.last) {
            s.latency_ns += tun_border_latency(m, e->set, head, s.out_bytes);
        }
        if (all->comm == TUN_COMM_OVERLAPPED && !(e->set & head)) {
            s.head_ns = all->boards[all->head].port_ns_per_byte *
                        base_max(from > 0 ? 0 : all->input_bytes, s.last ? all->output_bytes : 0);
            if (s.head_ns > p->o.period_ns) {
                continue;
            }
        }
        r = tun_single(e->set) ? one_board(p, node, &s, board) : several_boards(p, node, &s);
    }
    return base_min(r, 0);
}

/* A stage is no faster than its fastest team, and takes no less energy than its thriftiest. */
static int fill_least(struct tun_pass *p)
{
    const struct tun_problem *all = p->m->p;

    p->least_ns = calloc(p->m->n + 1, sizeof(*p->least_ns));
    p->least_nj = calloc(p->m->n + 1, sizeof(*p->least_nj));
    if (!p->least_ns || !p->least_nj) {
        return -ENOMEM;
    }
    for (size_t u = p->m->n; u-- > 0;) {
        double ns = INFINITY, nj = INFINITY;

        for (size_t k = 0; k < all->ep_count; k++) {
            double watts = tun_ep_watts(&all->eps[k]);

            for (size_t w = 1; w <= all->eps[k].cores; w++) {
                double cost = tun_cell_at(&all->costs, k, w, u)->ns;

                ns = base_min(ns, cost);
                nj = base_min(nj, cost * watts * (double)w);
            }
        }
        p->least_ns[u] = p->least_ns[u + 1] + ns * (1 - ROUNDING);
        p->least_nj[u] = p->least_nj[u + 1] + nj * (1 - ROUNDING);
    }
    return 0;
}

static int prepare(struct tun_pass *p, double period_ns)
{
    struct tun_map *m = p->m;
    bool bound = false;
    enum tun_want want;
    int r = 0;

    for (size_t b = 0; b < m->p->boards.count; b++) {
        bound |= m->p->boards.boards[b].energy_max_nj > 0 && !p->o.no_energy;
    }
    want = p->o.figure == TUN_PASS_LATENCY ? (bound ? TUN_WANT_BOTH : TUN_WANT_LATENCY)
           : p->o.figure == TUN_PASS_ENERGY && isfinite(p->o.latency_max_ns) ? TUN_WANT_BOTH
                                                                             : TUN_WANT_ENERGY;
    for (size_t k = 0; r == 0 && k < m->kind_count; k++) {
        p->reach[k] = calloc(m->n + 1, sizeof(*p->reach[k]));
        r = p->reach[k] ? tun_inner_reach(&m->kinds[k], period_ns, p->reach[k]) : -ENOMEM;
        if (r == 0 && (p->o.figure != TUN_PASS_ANY || bound)) {
            r = tun_inner_init(&m->kinds[k], period_ns, want, &p->inner[k]);
        }
    }
    r = r == 0 ? fill_least(p) : r;
    if (r == 0) {
        tun_rest(m, p->o.period_ns, p->reach, p->rest);
    }
    return r;
}

int tun_pass_run(struct tun_map *m, const struct tun_pass_options *o, struct tun_pass *ret)
{
    struct tun_pass p = {.m = m, .o = *o};
    struct tun_label start = {0};
    int r;

    p.o.period_ns /= 1 - ROUNDING;
    p.labels = calloc(m->node_count * m->n, sizeof(*p.labels));
    r = p.labels ? prepare(&p, o->period_ns) : -ENOMEM;
    r = r == 0 ? add_label(&p, &p.labels[0], &start) : r;
    for (uint32_t node = 0; r == 0 && node < m->node_count; node++) {
        const struct tun_node *from = &m->nodes[node];

        for (size_t at = 0; r == 0 && at < m->n; at++) {
            bool done = o->figure == TUN_PASS_ANY && p.end.count > 0;

            for (uint32_t e = 0;
                 p.labels[node * m->n + at].count && r == 0 && !done && e < from->edge_count; e++) {
                r = extend(&p, node, &m->edges[from->first_edge + e], at);
            }
        }
    }
    if (r < 0) {
        tun_pass_deinit(&p);
        return r;
    }
    for (size_t k = 0; k < m->kind_count; k++) {
        p.cut |= p.inner[k].cut;
    }
    *ret = p;
    return p.end.count > 0 ? 0 : TUN_E_IMPOSSIBLE;
}

void tun_pass_deinit(struct tun_pass *p)
{
    for (size_t i = 0; p->labels && i < p->m->node_count * p->m->n; i++) {
        free(p->labels[i].list);
    }
    for (size_t k = 0; k < TUN_BOARD_MAX; k++) {
        free(p->reach[k]);
        tun_inner_deinit(&p->inner[k]);
    }
    free(p->labels);
    free(p->least_ns);
    free(p->least_nj);
    free(p->end.list);
    *p = TUN_PASS_NULL;
}
