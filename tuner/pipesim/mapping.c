/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of any mapping, and the exact front of those that split points can say. */
#include "base/base.h"
#include "tuner/eval_boards.h"
#include "tuner/pipesim/dse.h"

int psim_places(const struct tun_problem *p, const struct pl_group *teams, size_t count,
                struct tun_problem *ret)
{
    struct tun_ep eps[PL_EP_MAX];
    int error;

    for (size_t k = 0; k < base_min(count, (size_t)PL_EP_MAX); k++) {
        eps[k] = p->eps[teams[k].ep];
        eps[k].cores = 1;
        eps[k].watts = teams[k].width * tun_ep_watts(&p->eps[teams[k].ep]);
    }
    error = tun_problem_init(ret, p->unit_count, eps, count);
    if (error) {
        return error;
    }
    memcpy(ret->units, p->units, p->unit_count * sizeof(*p->units));
    ret->handoff_ns = p->handoff_ns;
    ret->handoff_ns_per_byte = p->handoff_ns_per_byte;
    ret->boards = p->boards;
    for (size_t k = 0; k < count; k++) {
        for (size_t u = 0; u < p->unit_count; u++) {
            *tun_cell_at(&ret->costs, k, 1, u) =
                *tun_cell_at(&p->costs, teams[k].ep, teams[k].width, u);
        }
    }
    return 0;
}

struct sums {
    double ep_ns[PL_EP_MAX];
    double link_ns[TUN_BOARD_MAX], memory[TUN_BOARD_MAX], energy[TUN_BOARD_MAX];
};

/* Until what crosses the border in front of @unit is there. */
static double hop_ns(const struct tun_problem *p, size_t from, size_t to, size_t unit)
{
    const struct tun_link *link = &p->boards.links[from][to];

    return from == to ? 0 : link->ns + link->ns_per_byte * tun_border_bytes(p, unit);
}

/* Units first..last on one board; those next to it are on other boards, or there are none. */
static void add_segment(const struct tun_problem *p, const uint16_t *places, size_t first,
                        size_t last, struct sums *s)
{
    size_t board = p->eps[places[first]].board;
    size_t before = first > 0 ? p->eps[places[first - 1]].board : p->boards.head;
    size_t after = last + 1 < p->unit_count ? p->eps[places[last + 1]].board : p->boards.head;

    s->link_ns[board] += hop_ns(p, before, board, first) + hop_ns(p, board, after, last + 1);
    s->memory[board] += tun_segment_memory(p, board, first, last);
}

static void add_run(const struct tun_problem *p, const uint16_t *places, size_t first, size_t last,
                    struct sums *s)
{
    const struct tun_ep *ep = &p->eps[places[first]];
    double ns = tun_team_ns(p, first, last, places[first], ep->cores);

    s->ep_ns[places[first]] += ns;
    s->energy[ep->board] += ns * ep->cores * tun_ep_watts(ep);
}

void psim_mapping(const struct tun_problem *p, const uint16_t *places, struct psim_mapped *ret)
{
    struct sums s = {0};
    size_t run = 0, segment = 0;

    *ret = (struct psim_mapped){0};
    for (size_t u = 1; u <= p->unit_count; u++) {
        if (u < p->unit_count && places[u] == places[u - 1]) {
            continue;
        }
        add_run(p, places, run, u - 1, &s);
        run = u;
        if (u == p->unit_count || p->eps[places[u]].board != p->eps[places[u - 1]].board) {
            add_segment(p, places, segment, u - 1, &s);
            segment = u;
        }
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        ret->bottleneck_ns = base_max(ret->bottleneck_ns, s.ep_ns[k] + s.link_ns[p->eps[k].board]);
    }
    for (size_t b = 0; b < base_max(p->boards.count, (size_t)1); b++) {
        s.energy[b] += p->boards.boards[b].link_watts * s.link_ns[b];
        ret->most_memory_bytes = base_max(ret->most_memory_bytes, s.memory[b]);
        ret->most_energy_nj = base_max(ret->most_energy_nj, s.energy[b]);
    }
}

/* ---- the exact front of split-point mappings ---- */

#define CANDIDATES (1u << 19) /* before they are filtered */

struct label {
    double time, memory, energy;
};
struct list {
    struct label *labels; /* owned */
    size_t count, room;
};
struct front {
    const struct tun_problem *p;
    size_t cut_count, *cuts;     /* positions 0..unit_count where a place may begin or end, owned */
    double *sums;                /* [ep][unit_count + 1], owned */
    struct list *before, *after; /* [cut_count], owned: one board fewer, and with the board */
    struct list candidates, options;
    struct label *stairs; /* room for filtering, owned */
    size_t stairs_room;
};

static int push(struct list *l, const struct label *label)
{
    if (!base_room(&l->labels, sizeof(*l->labels), l->count, &l->room)) {
        return -ENOMEM;
    }
    l->labels[l->count++] = *label;
    return 0;
}

/* @to becomes the same list. */
static int copy(const struct list *from, struct list *to)
{
    if (!base_room_for(&to->labels, sizeof(*to->labels), from->count, &to->room)) {
        return -ENOMEM;
    }
    to->count = from->count;
    if (from->count > 0) {
        memcpy(to->labels, from->labels, from->count * sizeof(*to->labels));
    }
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct label *p = a, *q = b;

    if (p->time != q->time) {
        return p->time < q->time ? -1 : 1;
    }
    if (p->memory != q->memory) {
        return p->memory < q->memory ? -1 : 1;
    }
    return (p->energy > q->energy) - (p->energy < q->energy);
}

/* Leaves what nothing else is no worse than: in the order of time, a label is dropped if one before
 * it has no more memory and energy. stairs: those so far, by rising memory and falling energy. */
static int filter(struct front *f, struct list *l)
{
    size_t steps = 0, kept = 0;

    if (!base_room_for(&f->stairs, sizeof(*f->stairs), l->count, &f->stairs_room)) {
        return -ENOMEM;
    }
    qsort(l->labels, l->count, sizeof(*l->labels), by_time);
    for (size_t i = 0; i < l->count; i++) {
        struct label label = l->labels[i];
        size_t low = 0, high = steps, end;

        while (low < high) { /* the first step with more memory */
            size_t middle = (low + high) / 2;

            if (f->stairs[middle].memory <= label.memory) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low > 0 && f->stairs[low - 1].energy <= label.energy) {
            continue;
        }
        while (low > 0 && f->stairs[low - 1].memory == label.memory) {
            low--;
        }
        for (end = low; end < steps && f->stairs[end].energy >= label.energy;) {
            end++;
        }
        memmove(&f->stairs[low + 1], &f->stairs[end], (steps - end) * sizeof(*f->stairs));
        steps = steps - (end - low) + 1;
        f->stairs[low] = label;
        l->labels[kept++] = label;
    }
    l->count = kept;
    return 0;
}

static double run_ns(const struct front *f, size_t ep, size_t from, size_t to)
{
    const struct tun_problem *p = f->p;
    const double *sums = f->sums + ep * (p->unit_count + 1);

    return tun_handoff_ns(p, from) + sums[to] - sums[from];
}

static double border_ns(const struct tun_problem *p, size_t board, size_t cut)
{
    bool edge = cut == 0 || cut == p->unit_count;
    size_t other = edge ? p->boards.head : board == 0 ? 1 : 0;

    return hop_ns(p, board, other, cut);
}

/* The ways to run units from..to-1 on a board: where its second place begins. */
static int make_options(struct front *f, size_t board, size_t first_ep, size_t ep_count,
                        size_t from_cut, size_t to_cut)
{
    const struct tun_problem *p = f->p;
    size_t from = f->cuts[from_cut], to = f->cuts[to_cut];
    double link = border_ns(p, board, from) + border_ns(p, board, to);
    double memory = tun_segment_memory(p, board, from, to - 1);

    f->options.count = 0;
    for (size_t c = ep_count > 1 ? from_cut : to_cut; c <= to_cut; c++) {
        size_t cut = f->cuts[c];
        double ns[2] = {cut > from ? run_ns(f, first_ep, from, cut) : 0,
                        cut < to ? run_ns(f, first_ep + 1, cut, to) : 0};
        struct label option = {.time = base_max(ns[0], ns[1]) + link,
                               .memory = memory,
                               .energy = p->boards.boards[board].link_watts * link};

        for (size_t k = 0; k < ep_count; k++) {
            const struct tun_ep *ep = &p->eps[first_ep + k];

            option.energy += ns[k] * ep->cores * tun_ep_watts(ep);
        }
        if (push(&f->options, &option)) {
            return -ENOMEM;
        }
    }
    return filter(f, &f->options);
}

/* Every label of the units before, with every option. */
static int merge(struct front *f, const struct list *before)
{
    for (size_t i = 0; i < before->count; i++) {
        for (size_t o = 0; o < f->options.count; o++) {
            const struct label *a = &before->labels[i], *b = &f->options.labels[o];
            const struct label label = {base_max(a->time, b->time), base_max(a->memory, b->memory),
                                        base_max(a->energy, b->energy)};
            int error = push(&f->candidates, &label);

            if (!error && f->candidates.count >= CANDIDATES) {
                error = filter(f, &f->candidates);
            }
            if (error) {
                return error;
            }
        }
    }
    return 0;
}

static int add_board(struct front *f, size_t board, size_t first_ep, size_t ep_count)
{
    struct list *swap;

    for (size_t to = 0; to < f->cut_count; to++) {
        if (copy(&f->before[to], &f->candidates)) { /* the board runs nothing */
            return -ENOMEM;
        }
        for (size_t from = 0; from < to; from++) {
            if (f->before[from].count > 0 &&
                (make_options(f, board, first_ep, ep_count, from, to) ||
                 merge(f, &f->before[from]))) {
                return -ENOMEM;
            }
        }
        if (filter(f, &f->candidates) || copy(&f->candidates, &f->after[to])) {
            return -ENOMEM;
        }
    }
    swap = f->before;
    f->before = f->after;
    f->after = swap;
    return 0;
}

static int prepare(struct front *f, const bool *may_cut)
{
    const struct tun_problem *p = f->p;
    size_t n = p->unit_count;

    f->cuts = calloc(n + 1, sizeof(*f->cuts));
    f->sums = calloc(p->ep_count * (n + 1), sizeof(*f->sums));
    f->before = calloc(n + 1, sizeof(*f->before));
    f->after = calloc(n + 1, sizeof(*f->after));
    if (!f->cuts || !f->sums || !f->before || !f->after) {
        return -ENOMEM;
    }
    for (size_t u = 0; u <= n; u++) {
        if (u == 0 || u == n || !may_cut || may_cut[u]) {
            f->cuts[f->cut_count++] = u;
        }
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        double *sums = f->sums + k * (n + 1);

        for (size_t u = 0; u < n; u++) {
            sums[u + 1] = sums[u] + tun_cell_at(&p->costs, k, p->eps[k].cores, u)->ns;
        }
    }
    return push(&f->before[0], &(struct label){0});
}

int psim_split_front(const struct tun_problem *p, const bool *may_cut, double **ret,
                     size_t *ret_count)
{
    struct front f = {.p = p};
    int error = prepare(&f, may_cut);
    double *points = NULL;

    for (size_t b = 0, ep = 0; !error && b < p->boards.count; b++) {
        size_t count = 0;

        while (ep + count < p->ep_count && p->eps[ep + count].board == b) {
            count++;
        }
        error = count < 1 || count > 2 ? -EINVAL : add_board(&f, b, ep, count);
        ep += count;
    }
    if (!error) {
        const struct list *end = &f.before[f.cut_count - 1];

        points = calloc(3 * end->count + 1, sizeof(*points));
        error = points ? 0 : -ENOMEM;
        for (size_t i = 0; !error && i < end->count; i++) {
            memcpy(points + 3 * i, &end->labels[i], 3 * sizeof(*points));
        }
        *ret_count = end->count;
    }
    for (size_t c = 0; f.before && f.after && c <= p->unit_count; c++) {
        free(f.before[c].labels);
        free(f.after[c].labels);
    }
    free(f.before);
    free(f.after);
    free(f.cuts);
    free(f.sums);
    free(f.candidates.labels);
    free(f.options.labels);
    free(f.stairs);
    if (!error) {
        *ret = points;
    }
    return error;
}
