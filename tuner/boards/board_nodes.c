/* SPDX-License-Identifier: Apache-2.0 */
/* Which boards may follow which: nodes and edges of a map. */
#include "tuner/boards/map.h"

#include "base/base.h"

/* Edges have their target's key until all nodes are sorted. */
struct maker {
    struct tun_map *m;
    uint8_t *made; /* [MADE_BYTES], a bit of each key */
    size_t node_room, edge_room;
    uint8_t present;
    bool few;  /* only all boards that are left may share a stage */
    bool none; /* no boards may */
    size_t edges_max;
};
#define MADE_BYTES ((size_t)1 << 21)

#define EDGES_MAX 30000u
#define EDGES_PERIOD_MAX 200000u /* without a bound on latency, which makes passes slow */

static uint32_t key_of(struct tun_node n)
{
    return (uint32_t)n.used << 16 | (uint32_t)n.last << 8 | n.promise;
}

/* Makes the node unless there is one. Return: 0 or -ENOMEM. */
static int make_node(struct maker *k, struct tun_node n)
{
    struct tun_map *m = k->m;
    uint32_t key = key_of(n);

    if (k->made[key / 8] >> key % 8 & 1) {
        return 0;
    }
    if (!base_room(&m->nodes, sizeof(*m->nodes), m->node_count, &k->node_room)) {
        return -ENOMEM;
    }
    k->made[key / 8] |= (uint8_t)(1u << key % 8);
    m->nodes[m->node_count++] = n;
    return 0;
}

static int add_edge(struct maker *k, struct tun_edge e)
{
    struct tun_map *m = k->m;

    if (!base_room(&m->edges, sizeof(*m->edges), m->edge_count, &k->edge_room)) {
        return -ENOMEM;
    }
    m->edges[m->edge_count++] = e;
    return 0;
}

uint32_t tun_nodes_present(const struct tun_map *m)
{
    uint32_t present = 0;

    for (size_t b = 0; b < m->p->boards.count; b++) {
        present |= (uint32_t)!m->absent[b] << b;
    }
    return present;
}

uint32_t tun_nodes_canonical(const struct tun_map *m, uint32_t set)
{
    size_t count[TUN_BOARD_MAX] = {0};
    uint32_t ret = 0;

    for (size_t b = 0; b < m->p->boards.count; b++) {
        count[m->class_of[b]] += set >> b & 1;
    }
    for (size_t b = 0; b < m->p->boards.count; b++) {
        if (!m->absent[b] && count[m->class_of[b]] > 0) {
            count[m->class_of[b]]--;
            ret |= UINT32_C(1) << b;
        }
    }
    return ret;
}

bool tun_nodes_in_order(const struct tun_map *m, uint32_t free_boards, uint32_t set)
{
    uint32_t skipped = 0; /* classes */

    for (size_t b = 0; b < m->p->boards.count; b++) {
        if (set >> b & 1) {
            if (skipped >> m->class_of[b] & 1) {
                return false;
            }
        } else if (free_boards >> b & 1) {
            skipped |= UINT32_C(1) << m->class_of[b];
        }
    }
    return true;
}

static bool may_follow(const struct tun_map *m, uint32_t promise, uint32_t set)
{
    return m->promise_all || promise == TUN_PROMISE_ANY
               ? promise == TUN_PROMISE_ANY || promise == set
               : (promise == TUN_PROMISE_SHARED ? !tun_single(set) : promise == set);
}

/* May boards share a stage, when so many are left? */
static bool may_share(const struct maker *k, uint32_t left, uint32_t set)
{
    return tun_single(set) || (!k->none && (!k->few || set == left));
}

/* Can sharing be of use? Where latency alone counts, one of the boards is no worse than all. */
static bool alone(const struct tun_problem *p)
{
    bool latency = p->objective == TUN_LATENCY && p->bounds.period_max_ns <= 0 &&
                   p->bounds.latency_max_ns <= 0;

    for (size_t b = 0; b < p->boards.count; b++) {
        latency &= p->boards.boards[b].energy_max_nj <= 0;
    }
    return latency || p->bounds.one_ep_stages;
}

/* Edges of a node by one set of boards. */
static int edges_by(struct maker *k, uint32_t used, uint32_t set)
{
    struct tun_map *m = k->m;
    uint32_t left = k->present & ~(used | set);
    bool blind = tun_single(set) && !m->promise_all, shared = false;
    struct tun_edge e = {.set = (uint8_t)set, .to = TUN_NO_NODE, .may_end = true};
    struct tun_node to = {.used = (uint8_t)(used | set), .last = (uint8_t)set};
    int r = 0;

    if (blind && left) {
        r = make_node(k, to);
        e.to = key_of(to);
    }
    r = r == 0 ? add_edge(k, e) : r;
    for (uint32_t next = left; r == 0 && !blind && next; next = (next - 1) & left) {
        bool many = !tun_single(next);

        if (!tun_nodes_in_order(m, left, next) || !may_share(k, left, next) ||
            (many && !m->promise_all && shared)) {
            continue;
        }
        to.promise = (uint8_t)(many && !m->promise_all ? TUN_PROMISE_SHARED : next);
        shared |= many;
        e = (struct tun_edge){.set = (uint8_t)set, .next = to.promise, .to = key_of(to)};
        r = make_node(k, to);
        r = r == 0 ? add_edge(k, e) : r;
    }
    return r;
}

static int by_used(const void *a, const void *b)
{
    const struct tun_node *x = a, *y = b;
    int more = __builtin_popcount(x->used) - __builtin_popcount(y->used);
    uint32_t kx = key_of(*x), ky = key_of(*y);

    return more ? more : (kx > ky) - (kx < ky);
}

/* Sorts the nodes, and names them by their places. */
static void sort(struct tun_map *m)
{
    qsort(m->nodes, m->node_count, sizeof(*m->nodes), by_used);
    for (size_t i = 0; i < m->edge_count; i++) {
        uint32_t key = m->edges[i].to;
        struct tun_node n = {
            .used = (uint8_t)(key >> 16), .last = (uint8_t)(key >> 8), .promise = (uint8_t)key};

        if (key != TUN_NO_NODE) {
            const struct tun_node *to =
                bsearch(&n, m->nodes, m->node_count, sizeof(*m->nodes), by_used);

            m->edges[i].to = (uint32_t)(to - m->nodes);
        }
    }
}

static int make(struct maker *k)
{
    struct tun_map *m = k->m;
    int r = make_node(k, (struct tun_node){0});

    for (size_t i = 0; r == 0 && i < m->node_count && (k->few || m->edge_count < k->edges_max);
         i++) {
        uint32_t used = m->nodes[i].used, promise = m->nodes[i].promise;
        uint32_t left = k->present & ~used;

        m->nodes[i].first_edge = (uint32_t)m->edge_count;
        for (uint32_t set = left; r == 0 && set; set = (set - 1) & left) {
            if (tun_nodes_in_order(m, left, set) && may_follow(m, promise, set) &&
                may_share(k, left, set)) {
                r = edges_by(k, used, set);
            }
        }
        m->nodes[i].edge_count = (uint32_t)(m->edge_count - m->nodes[i].first_edge);
    }
    return r;
}

int tun_nodes_make(struct tun_map *m)
{
    base_autofree uint8_t *made = calloc(MADE_BYTES, 1);
    struct maker k = {.m = m,
                      .made = made,
                      .present = (uint8_t)tun_nodes_present(m),
                      .none = alone(m->p),
                      .edges_max = m->p->bounds.latency_max_ns > 0 ? EDGES_MAX : EDGES_PERIOD_MAX};
    int r = made ? make(&k) : -ENOMEM;

    if (r == 0 && m->edge_count >= k.edges_max) {
        m->node_count = m->edge_count = 0;
        m->coarse = k.few = true;
        memset(made, 0, MADE_BYTES);
        r = make(&k);
    }
    if (r == 0) {
        sort(m);
    }
    return r;
}
