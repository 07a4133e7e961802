/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/search/places.h"

void tun_pipeline_plan(const struct tun_pipeline *p, struct pl_plan *ret)
{
    uint16_t next = 0;

    *ret = (struct pl_plan){.stage_count = p->stage_count};
    for (size_t s = 0; s < p->stage_count; s++) {
        struct pl_stage_plan *stage = &ret->stages[s];

        stage->first_unit = next;
        next = (uint16_t)(next + p->layers[s]);
        stage->last_unit = (uint16_t)(next - 1);
        stage->group_count = 1;
        stage->groups[0] =
            (struct pl_group){.ep = p->places[s].ep, .width = p->places[s].width, .count = 1};
    }
}

/* What the whole network takes on one core of each EP. Return: false if a cost is unknown. */
static bool whole_network(const struct tun_problem *p, double ret_ns[PL_EP_MAX])
{
    for (size_t k = 0; k < p->ep_count; k++) {
        ret_ns[k] = 0;
        for (size_t u = 0; u < p->unit_count; u++) {
            double ns = tun_cell_at(&p->costs, k, 1, u)->ns;

            if (!(ns >= 0)) {
                return false;
            }
            ret_ns[k] += ns;
        }
    }
    return true;
}

/* Does EP @a rank before EP @b; @ns: whole network on one core, NULL: not known. */
static bool ranks_before(const struct tun_problem *p, const double *ns, size_t a, size_t b)
{
    const struct tun_ep *x = &p->eps[a], *y = &p->eps[b];

    if (ns && ns[a] != ns[b]) {
        return ns[a] < ns[b];
    }
    if (!ns && x->speed != y->speed) {
        return x->speed > y->speed;
    }
    if (x->bandwidth != y->bandwidth) {
        return x->bandwidth > y->bandwidth;
    }
    return x->cores != y->cores ? x->cores > y->cores : a < b;
}

void tun_rank_eps(const struct tun_problem *p, size_t ret[PL_EP_MAX])
{
    double ns[PL_EP_MAX];
    bool known = whole_network(p, ns);

    for (size_t k = 0; k < p->ep_count; k++) {
        size_t at = k;

        while (at > 0 && ranks_before(p, known ? ns : NULL, k, ret[at - 1])) {
            ret[at] = ret[at - 1];
            at--;
        }
        ret[at] = k;
    }
}

/* Largest remainder with at least one each: @cores [eps] in rank order, eps <= stages.
 * Starting from the quotas rounded down, single stages go where most is lacking and come from
 * where least is, until the sum is right. */
static void share_stages(const size_t *cores, size_t eps, size_t stages, size_t *ret_share)
{
    size_t all = 0, given = 0;

    for (size_t k = 0; k < eps; k++) {
        all += cores[k];
    }
    for (size_t k = 0; k < eps; k++) {
        ret_share[k] = base_max(stages * cores[k] / all, (size_t)1);
        given += ret_share[k];
    }
    while (given != stages) {
        size_t pick = SIZE_MAX;
        double most = 0;

        for (size_t k = 0; k < eps; k++) {
            double lack = (double)(stages * cores[k]) / (double)all - (double)ret_share[k];

            if (given > stages ? ret_share[k] == 1 : ret_share[k] == cores[k]) {
                continue;
            }
            /* Giving: the first of the most lacking. Taking: the last of the least lacking. */
            if (pick == SIZE_MAX || (given > stages ? lack <= most : lack > most)) {
                pick = k;
                most = lack;
            }
        }
        ret_share[pick] = given < stages ? ret_share[pick] + 1 : ret_share[pick] - 1;
        given = given < stages ? given + 1 : given - 1;
    }
}

int tun_slots(const struct tun_problem *p, size_t stages, struct tun_place *ret)
{
    size_t rank[PL_EP_MAX], cores[PL_EP_MAX], share[PL_EP_MAX], eps, s = 0;

    if (stages == 0 || stages > tun_core_count(p)) {
        return -EINVAL;
    }
    tun_rank_eps(p, rank);
    eps = base_min(stages, p->ep_count);
    for (size_t k = 0; k < eps; k++) {
        cores[k] = p->eps[rank[k]].cores;
    }
    share_stages(cores, eps, stages, share);
    for (size_t k = 0; k < eps; k++) {
        for (size_t i = 0; i < share[k]; i++) {
            size_t width = cores[k] / share[k] + (i < cores[k] % share[k]);

            ret[s++] = (struct tun_place){.ep = (uint16_t)rank[k], .width = (uint16_t)width};
        }
    }
    return 0;
}

size_t tun_places_max(const struct tun_problem *p)
{
    size_t most = base_min(tun_core_count(p), (size_t)PL_STAGE_MAX);

    return p->bounds.stages_max ? base_min(most, p->bounds.stages_max) : most;
}

double *tun_cut_weights(const struct tun_problem *p, bool alike)
{
    double *weight = calloc(p->unit_count, sizeof(*weight));

    for (size_t u = 0; weight && u < p->unit_count; u++) {
        weight[u] = alike ? 1 : p->units[u].weight;
    }
    return weight;
}

double tun_binomial(size_t n, size_t k)
{
    double c = 1;

    if (k > n) {
        return 0;
    }
    k = base_min(k, n - k);
    for (size_t i = 1; i <= k; i++) {
        /* Every partial product is a binomial: in whole numbers the division leaves nothing. */
        c = c < 0x1p53 ? (double)((unsigned __int128)c * (n - k + i) / i)
                       : c * ((double)(n - k + i) / (double)i);
    }
    return c;
}

double tun_cut_count(size_t layers, size_t min, size_t max)
{
    double sum = 0;

    for (size_t p = base_max(min, (size_t)1); p <= max && p <= layers; p++) {
        sum += tun_binomial(layers - 1, p - 1);
    }
    return sum;
}

/* ---- small changes ---- */

void tun_move_unit(struct tun_pipeline *p, size_t from, size_t to)
{
    p->layers[from]--;
    p->layers[to]++;
}

struct list {
    struct tun_move *moves;
    size_t count;
};

static void add(struct list *l, enum tun_move_what what, size_t stage, size_t other, size_t ep,
                size_t width)
{
    l->moves[l->count++] = (struct tun_move){
        .what = (uint8_t)what,
        .stage = (uint16_t)stage,
        .other = (uint16_t)other,
        .place = {.ep = (uint16_t)ep, .width = (uint16_t)width},
    };
}

static void add_neighbours(const struct tun_pipeline *c, struct list *l)
{
    for (size_t s = 0; s + 1 < c->stage_count; s++) {
        if (c->layers[s] > 1) {
            add(l, TUN_MOVE_BORDER, s, s + 1, 0, 0);
        }
        if (c->layers[s + 1] > 1) {
            add(l, TUN_MOVE_BORDER, s + 1, s, 0, 0);
        }
        add(l, TUN_MOVE_MERGE, s, s + 1, 0, 0);
        if (memcmp(&c->places[s], &c->places[s + 1], sizeof(c->places[s])) != 0) {
            add(l, TUN_MOVE_MERGE, s + 1, s, 0, 0);
        }
    }
}

static void add_swaps(const struct tun_pipeline *c, struct list *l)
{
    for (size_t a = 0; a < c->stage_count; a++) {
        for (size_t b = a + 1; b < c->stage_count; b++) {
            if (memcmp(&c->places[a], &c->places[b], sizeof(c->places[a])) != 0) {
                add(l, TUN_MOVE_SWAP, a, b, 0, 0);
            }
        }
    }
}

static void add_replacements(const struct tun_problem *p, const struct tun_pipeline *c, bool wide,
                             const size_t *left, struct list *l)
{
    for (size_t s = 0; s < c->stage_count; s++) {
        size_t own = c->places[s].ep, width = c->places[s].width;

        for (size_t k = 0; k < p->ep_count; k++) {
            if (k != own && left[k] > 0) {
                add(l, TUN_MOVE_REPLACE, s, s, k, wide ? base_min(width, left[k]) : 1);
            }
        }
        if (wide && left[own] > 0) {
            add(l, TUN_MOVE_REPLACE, s, s, own, width + 1);
        }
        if (wide && width > 1) {
            add(l, TUN_MOVE_REPLACE, s, s, own, width - 1);
        }
    }
}

static void add_splits(const struct tun_problem *p, const struct tun_pipeline *c,
                       const size_t *left, struct list *l)
{
    for (size_t s = 0; s < c->stage_count; s++) {
        for (size_t k = 0; k < p->ep_count && c->layers[s] > 1; k++) {
            if (left[k] == 0) {
                continue;
            }
            add(l, TUN_MOVE_SPLIT, s, s + 1, k, 1);
            if (k != c->places[s].ep || c->places[s].width != 1) {
                add(l, TUN_MOVE_SPLIT, s, s, k, 1);
            }
        }
    }
}

size_t tun_moves(const struct tun_problem *p, const struct tun_pipeline *from, bool wide,
                 struct tun_move ret[TUN_MOVE_MAX])
{
    struct list l = {.moves = ret};
    size_t left[PL_EP_MAX];

    for (size_t k = 0; k < p->ep_count; k++) {
        left[k] = p->eps[k].cores;
    }
    for (size_t s = 0; s < from->stage_count; s++) {
        left[from->places[s].ep] -= from->places[s].width;
    }
    add_neighbours(from, &l);
    add_swaps(from, &l);
    add_replacements(p, from, wide, left, &l);
    if (from->stage_count < tun_stages_max(p)) {
        add_splits(p, from, left, &l);
    }
    return l.count;
}

/* How many units of stage @stage stay before the cut that halves its weight best. */
static size_t half_of(const struct tun_problem *p, const struct tun_pipeline *c, size_t stage)
{
    size_t first = 0, best = 1;
    double all = 0, before = 0, best_off = INFINITY;

    for (size_t s = 0; s < stage; s++) {
        first += c->layers[s];
    }
    for (size_t u = 0; u < c->layers[stage]; u++) {
        all += p->units[first + u].weight;
    }
    for (size_t u = 1; u < c->layers[stage]; u++) {
        before += p->units[first + u - 1].weight;
        if (fabs(all - 2 * before) < best_off) {
            best_off = fabs(all - 2 * before);
            best = u;
        }
    }
    return best;
}

static void merge(const struct tun_move *m, struct tun_pipeline *c)
{
    size_t gone = m->other, rest = c->stage_count - gone - 1;

    c->layers[m->stage] = (uint16_t)(c->layers[m->stage] + c->layers[gone]);
    memmove(&c->layers[gone], &c->layers[gone + 1], rest * sizeof(*c->layers));
    memmove(&c->places[gone], &c->places[gone + 1], rest * sizeof(*c->places));
    c->stage_count--;
}

static void split(const struct tun_problem *p, const struct tun_move *m, struct tun_pipeline *c)
{
    size_t at = m->stage, rest = c->stage_count - at, half = half_of(p, c, at);

    memmove(&c->layers[at + 1], &c->layers[at], rest * sizeof(*c->layers));
    memmove(&c->places[at + 1], &c->places[at], rest * sizeof(*c->places));
    c->layers[at] = (uint16_t)half;
    c->layers[at + 1] = (uint16_t)(c->layers[at + 1] - half);
    c->places[m->other] = m->place;
    c->stage_count++;
}

void tun_move_apply(const struct tun_problem *p, const struct tun_pipeline *from,
                    const struct tun_move *m, struct tun_pipeline *ret)
{
    *ret = *from;
    switch (m->what) {
    case TUN_MOVE_BORDER:
        tun_move_unit(ret, m->stage, m->other);
        break;
    case TUN_MOVE_SWAP:
        ret->places[m->stage] = from->places[m->other];
        ret->places[m->other] = from->places[m->stage];
        break;
    case TUN_MOVE_REPLACE:
        ret->places[m->stage] = m->place;
        break;
    case TUN_MOVE_MERGE:
        merge(m, ret);
        break;
    default: /* TUN_MOVE_SPLIT */
        split(p, m, ret);
        break;
    }
}
