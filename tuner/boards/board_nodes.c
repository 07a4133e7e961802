/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/boards/board_nodes.h"

#include "base/base.h"

/* Nodes are found by key; edges are kept with their target's key until all nodes are sorted. */
struct maker {
    struct tun_map *m;
    uint32_t *hash; /* index + 1, owned */
    size_t hash_size, node_room, edge_room;
    uint8_t present;
    bool few;  /* only all boards that are left may share a stage */
    bool none; /* no boards may */
    size_t edges_max;
};

#define EDGES_MAX 30000u
#define EDGES_PERIOD_MAX 200000u /* without a bound on latency, which makes passes slow */

static uint32_t *slot(struct maker *k, struct tun_node n)
{
    uint32_t key = (uint32_t)n.used << 16 | (uint32_t)n.last << 8 | n.promise;
    size_t at = key * UINT32_C(2654435761) % k->hash_size;

    while (k->hash[at]) {
        const struct tun_node *o = &k->m->nodes[k->hash[at] - 1];

        if (o->used == n.used && o->last == n.last && o->promise == n.promise) {
            break;
        }
        at = (at + 1) % k->hash_size;
    }
    return &k->hash[at];
}

static int rehash(struct maker *k)
{
    free(k->hash);
    k->hash_size = 2 * k->hash_size + 1021;
    k->hash = calloc(k->hash_size, sizeof(*k->hash));
    for (size_t i = 0; k->hash && i < k->m->node_count; i++) {
        *slot(k, k->m->nodes[i]) = (uint32_t)i + 1;
    }
    return k->hash ? 0 : -ENOMEM;
}

/* Return: 0 or -ENOMEM. */
static int node_of(struct maker *k, struct tun_node n, uint32_t *ret)
{
    struct tun_map *m = k->m;
    uint32_t *at;

    if (2 * m->node_count >= k->hash_size && rehash(k) < 0) {
        return -ENOMEM;
    }
    at = slot(k, n);
    if (!*at) {
        if (!base_room(&m->nodes, sizeof(*m->nodes), m->node_count, &k->node_room)) {
            return -ENOMEM;
        }
        m->nodes[m->node_count] = n;
        *at = (uint32_t)++m->node_count;
    }
    *ret = *at - 1;
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
        r = node_of(k, to, &e.to);
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
        e = (struct tun_edge){.set = (uint8_t)set, .next = to.promise};
        r = node_of(k, to, &e.to);
        r = r == 0 ? add_edge(k, e) : r;
    }
    return r;
}

static int by_used(const void *a, const void *b)
{
    const struct tun_node *x = a, *y = b;
    int more = __builtin_popcount(x->used) - __builtin_popcount(y->used);
    uint32_t kx = (uint32_t)x->used << 16 | (uint32_t)x->last << 8 | x->promise;
    uint32_t ky = (uint32_t)y->used << 16 | (uint32_t)y->last << 8 | y->promise;

    return more ? more : (kx > ky) - (kx < ky);
}

/* Sorted nodes; the edges still name them by their places before that. */
static int sort(struct maker *k)
{
    struct tun_map *m = k->m;
    struct tun_node *before = malloc(m->node_count * sizeof(*before));

    if (!before) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->node_count; i++) {
        before[i] = m->nodes[i];
    }
    qsort(m->nodes, m->node_count, sizeof(*m->nodes), by_used);
    for (size_t i = 0; i < k->hash_size; i++) {
        k->hash[i] = 0;
    }
    for (size_t i = 0; i < m->node_count; i++) {
        *slot(k, m->nodes[i]) = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < m->edge_count; i++) {
        if (m->edges[i].to != TUN_NO_NODE) {
            m->edges[i].to = *slot(k, before[m->edges[i].to]) - 1;
        }
    }
    free(before);
    return 0;
}

static int make(struct maker *k)
{
    struct tun_map *m = k->m;
    uint32_t start;
    int r = node_of(k, (struct tun_node){0}, &start);

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
    struct maker k = {.m = m, .present = (uint8_t)tun_nodes_present(m), .none = alone(m->p)};
    int r = rehash(&k);

    k.edges_max = m->p->bounds.latency_max_ns > 0 ? EDGES_MAX : EDGES_PERIOD_MAX;
    r = r == 0 ? make(&k) : r;
    if (r == 0 && m->edge_count >= k.edges_max) {
        m->node_count = m->edge_count = 0;
        m->coarse = k.few = true;
        r = rehash(&k);
        r = r == 0 ? make(&k) : r;
    }
    r = r == 0 ? sort(&k) : r;
    free(k.hash);
    return r;
}
