/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/search/moves.h"

#include "base/base.h"

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
