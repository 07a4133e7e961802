/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/boards/map.h"

#include "base/base.h"
#include "tuner/oneboard/solution.h"

enum { E_ATOMS = 5 }; /* more units than a pass can afford: join some */

static int kind_init(const struct tun_map *m, size_t board, size_t ep_count,
                     const struct tun_space_options *o, struct tun_kind *k)
{
    const struct tun_problem *p = m->p;
    size_t segments = m->n * (m->n + 1) / 2;
    int r = tun_problem_part(p, m->eps_of[board], ep_count, 0, m->n - 1, &k->p);

    if (r < 0) {
        return r;
    }
    k->p.bounds.one_ep_stages = p->bounds.one_ep_stages;
    r = tun_space_init(&k->p, o, &k->space);
    r = r == 0 ? tun_maker_init(&k->space, &k->maker) : r;
    k->slowest = malloc(segments * sizeof(*k->slowest));
    k->watts = malloc(segments * sizeof(*k->watts));
    for (size_t i = 0; k->slowest && i < segments; i++) {
        k->slowest[i] = -1;
    }
    return r < 0 ? r : k->slowest && k->watts ? 0 : -ENOMEM;
}

static bool same_kind(const struct tun_map *m, size_t a, size_t b, size_t ep_count)
{
    const struct tun_problem *p = m->p;

    if (m->kinds[m->kind_of[b]].p.ep_count != ep_count) {
        return false;
    }
    for (size_t i = 0; i < ep_count; i++) {
        size_t x = m->eps_of[a][i], y = m->eps_of[b][i];
        size_t cells = p->eps[x].cores * p->unit_count;
        const struct tun_cell *c = tun_cell_at(&p->costs, x, 1, 0);
        const struct tun_cell *d = tun_cell_at(&p->costs, y, 1, 0);

        if (p->eps[x].cores != p->eps[y].cores || p->eps[x].watts != p->eps[y].watts) {
            return false;
        }
        for (size_t u = 0; u < cells; u++) {
            if (c[u].ns != d[u].ns) {
                return false;
            }
        }
    }
    return true;
}

static int find_kinds(struct tun_map *m, const struct tun_space_options *o)
{
    for (size_t b = 0; b < m->p->boards.count; b++) {
        size_t eps = 0, like = m->p->boards.count;

        for (size_t k = 0; k < m->p->ep_count; k++) {
            if (m->p->eps[k].board == b && !o->without[k]) {
                m->eps_of[b][eps++] = (uint16_t)k;
            }
        }
        m->absent[b] = eps == 0;
        for (size_t a = 0; a < b && like > a; a++) {
            like = !m->absent[a] && same_kind(m, b, a, eps) ? a : like;
        }
        if (eps == 0) {
            continue;
        }
        if (like < b) {
            m->kind_of[b] = m->kind_of[like];
        } else {
            struct tun_space_options none = *o;
            int r;

            memset(none.without, 0, sizeof(none.without));
            m->kind_of[b] = m->kind_count++;
            r = kind_init(m, b, eps, &none, &m->kinds[m->kind_of[b]]);
            if (r < 0) {
                return r;
            }
            m->coarse |= m->kinds[m->kind_of[b]].space.coarse;
        }
    }
    return m->kind_count > 0 ? 0 : -EINVAL;
}

static bool same_link(const struct tun_link *a, const struct tun_link *b)
{
    return a->ns == b->ns && a->ns_per_byte == b->ns_per_byte;
}

static bool exchangeable(const struct tun_map *m, size_t a, size_t b)
{
    const struct tun_boards *all = &m->p->boards;
    const struct tun_board *x = &all->boards[a], *y = &all->boards[b];

    if (m->absent[a] || m->absent[b] || m->kind_of[a] != m->kind_of[b] || a == all->head ||
        b == all->head || x->memory_bytes != y->memory_bytes ||
        x->energy_max_nj != y->energy_max_nj || x->frames_held != y->frames_held ||
        x->port_ns_per_byte != y->port_ns_per_byte || x->link_watts != y->link_watts ||
        !same_link(&all->links[a][b], &all->links[b][a])) {
        return false;
    }
    for (size_t c = 0; c < all->count; c++) {
        if (c != a && c != b &&
            (!same_link(&all->links[a][c], &all->links[b][c]) ||
             !same_link(&all->links[c][a], &all->links[c][b]))) {
            return false;
        }
    }
    return true;
}

static void find_classes(struct tun_map *m)
{
    for (size_t b = 0; b < m->p->boards.count; b++) {
        size_t like = b;

        for (size_t a = 0; a < b && like == b; a++) {
            bool all = exchangeable(m, a, b);

            for (size_t c = 0; c < b && all; c++) {
                all = m->class_of[c] != m->class_of[a] || exchangeable(m, c, b);
            }
            like = all ? a : like;
        }
        m->class_of[b] = like < b ? m->class_of[like] : m->class_count++;
    }
}

static int fill_memory(struct tun_map *m)
{
    m->weights = calloc(m->n + 1, sizeof(*m->weights));
    m->arena = malloc(m->n * (m->n + 1) / 2 * sizeof(*m->arena));
    if (!m->weights || !m->arena) {
        return -ENOMEM;
    }
    for (size_t from = 0; from < m->n; from++) {
        double arena = 0;

        m->weights[from + 1] = m->weights[from] + m->p->units[from].weight_bytes;
        for (size_t to = from + 1; to <= m->n; to++) {
            arena = base_max(arena, m->p->units[to - 1].arena_bytes);
            m->arena[tun_map_segment(m, from, to)] = arena;
        }
    }
    return 0;
}

double tun_map_memory(const struct tun_map *m, size_t board, size_t from, size_t to)
{
    double frames = m->p->boards.boards[board].frames_held;

    return m->weights[to] - m->weights[from] +
           (frames > 0 ? frames : 1) * (m->arena[tun_map_segment(m, from, to)] +
                                        tun_border_bytes(m->p, from) + tun_border_bytes(m->p, to));
}

/* Period of units from..to-1 as one stage on an option's cores. */
static double stage_ns(const struct tun_kind *k, size_t from, size_t to, const struct tun_option *o)
{
    const struct tun_space *s = &k->space;
    size_t segment = tun_segment(s, from, to), dims = s->dim_count - 1;
    double rate = 0;

    if (s->p->bounds.one_ep_stages) {
        for (size_t t = 0; t < s->team_len; t++) {
            size_t dim = (size_t)s->dim_of[s->team_ep[t]];

            if (o->row == (dim < dims ? s->team_steps[t] * s->row_stride[dim] : 0) &&
                o->last == (dim < dims ? 0 : s->team_steps[t])) {
                rate = base_max(rate, 1 / s->team_ns[segment * s->team_len + t]);
            }
        }
        return 1 / rate;
    }
    for (size_t d = 0; d <= dims; d++) {
        size_t steps = d < dims ? s->row_steps[o->row * dims + d] : o->last;

        rate += s->rate[segment * s->rate_len + s->rate_at[d] + steps];
    }
    return 1 / rate;
}

/* F of tuner/oneboard/oneboard.h for every segment, by first stages. */
static int fill_least(struct tun_map *m, struct tun_kind *k)
{
    struct tun_space *s = &k->space;
    size_t n = m->n, states = s->state_count, len = s->row_len;
    double *f = malloc((n + 1) * (n + 1) * states * sizeof(*f)); /* [from][to][cores] */

    k->least_ns = malloc(n * (n + 1) / 2 * sizeof(*k->least_ns));
    if (!f || !k->least_ns) {
        free(f);
        return -ENOMEM;
    }
    for (size_t i = 0; i < (n + 1) * (n + 1) * states; i++) {
        f[i] = INFINITY;
    }
    for (size_t from = n + 1; from-- > 0;) {
        memset(f + (from * (n + 1) + from) * states, 0, states * sizeof(*f));
        for (size_t to = from + 1; to <= n; to++) {
            /* Any need: all options of which none is better in both cores and period. */
            for (size_t state = 1; state < states; state++) {
                struct tun_option o = {.row = (uint16_t)(state / len),
                                       .last = (uint16_t)(state % len),
                                       .slowest_ns = INFINITY};
                double ns = stage_ns(k, from, to, &o);

                if (!isfinite(ns)) {
                    continue;
                }
                for (size_t end = to; end <= n; end++) {
                    double *y = f + (from * (n + 1) + end) * states;
                    const double *x = f + (to * (n + 1) + end) * states;

                    for (size_t row = 0; row + o.row < s->row_count; row++) {
                        if (!s->row_fits[o.row * s->row_count + row]) {
                            continue;
                        }
                        for (size_t l = 0; l + o.last < len; l++) {
                            size_t left = row * len + l;
                            double worst = base_max(ns, x[left]);

                            y[left + state] = base_min(y[left + state], worst);
                        }
                    }
                }
            }
        }
        for (size_t to = from + 1; to <= n; to++) {
            double least = INFINITY;

            for (size_t i = 0; i < states; i++) {
                least = base_min(least, f[(from * (n + 1) + to) * states + i]);
            }
            k->least_ns[tun_map_segment(m, from, to)] = least;
        }
    }
    free(f);
    return 0;
}

int tun_full_teams(const struct tun_kind *k, size_t from, size_t to, struct pl_stage_plan *ret)
{
    const struct tun_space *s = &k->space;
    const double *team_ns = s->team_ns + tun_segment(s, from, to) * s->team_len;
    double need = tun_full_rate(k, from, to) * (1 - 1e-12), low = 0;
    base_autofree struct tun_path *path = malloc(sizeof(*path));
    base_autofree struct pl_plan *plan = malloc(sizeof(*plan));
    int r;

    if (!path || !plan) {
        return -ENOMEM;
    }
    path->count = 1;
    path->stages[0] = (struct tun_path_stage){
        from,
        to,
        {.row = (uint16_t)(s->row_count - 1), .last = s->cap[s->dim_count - 1], .slowest_ns = 0}};
    do {
        double next = INFINITY;

        for (size_t t = 0; t < s->team_len; t++) {
            next = team_ns[t] > low ? base_min(next, team_ns[t]) : next;
        }
        low = path->stages[0].option.slowest_ns = next;
    } while (isfinite(low) && 1 / tun_option_ns(s, from, to, &path->stages[0].option) < need);
    r = tun_path_plan(s, path, plan);
    if (r == 0) {
        *ret = plan->stages[0];
    }
    return r;
}

static void map_deinit(struct tun_map *m)
{
    for (size_t k = 0; k < m->kind_count; k++) {
        tun_problem_deinit(&m->kinds[k].p);
        tun_space_deinit(&m->kinds[k].space);
        tun_maker_deinit(&m->kinds[k].maker);
        free(m->kinds[k].slowest);
        free(m->kinds[k].watts);
        free(m->kinds[k].least_ns);
    }
    free(m->weights);
    free(m->arena);
    free(m->nodes);
    free(m->edges);
    *m = (struct tun_map){0};
}

/* All but nodes and edges. @link_energy: as tun_joined_init(). Return: 0; E_ATOMS with
 * *ret_atoms: more units than a pass can afford; -EINVAL; -ENOMEM. */
static int map_init(const struct tun_problem *p, const struct tun_space_options *o,
                    bool link_energy, struct tun_map *ret, size_t *ret_atoms)
{
    struct tun_map m = {.p = p, .n = p->unit_count};
    bool added = p->boards.comm == TUN_COMM_ADDED;
    int r = find_kinds(&m, o);

    for (size_t b = 0; b < p->boards.count; b++) {
        m.promise_all |= link_energy && p->boards.boards[b].link_watts > 0;
    }
    m.promise_all |= added;
    for (size_t k = 0; r == 0 && k < m.kind_count; k++) {
        if (m.kinds[k].space.atom_count < m.n) {
            *ret_atoms = m.kinds[k].space.atom_count;
            map_deinit(&m);
            return E_ATOMS;
        }
    }
    find_classes(&m);
    r = r == 0 ? fill_memory(&m) : r;
    for (size_t k = 0; r == 0 && added && k < m.kind_count; k++) {
        r = fill_least(&m, &m.kinds[k]);
    }
    if (r < 0) {
        map_deinit(&m);
        return r;
    }
    *ret = m;
    /* The spaces point to their problems. */
    for (size_t k = 0; k < ret->kind_count; k++) {
        ret->kinds[k].space.p = &ret->kinds[k].p;
    }
    return 0;
}

/* ---- neighbouring units joined ---- */

static int join(const struct tun_problem *p, const size_t *first, size_t count,
                struct tun_problem *ret)
{
    struct tun_problem j;
    int r = tun_problem_init(&j, count, p->eps, p->ep_count);

    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < count; i++) {
        j.units[i] = p->units[first[i]];
        for (size_t u = first[i] + 1; u < first[i + 1]; u++) {
            j.units[i].weight_bytes += p->units[u].weight_bytes;
            j.units[i].arena_bytes = base_max(j.units[i].arena_bytes, p->units[u].arena_bytes);
        }
        for (size_t k = 0; k < p->ep_count; k++) {
            for (size_t w = 1; w <= p->eps[k].cores; w++) {
                struct tun_cell *to = tun_cell_at(&j.costs, k, w, i);

                to->ns = 0;
                to->source = TUN_MEASURED;
                for (size_t u = first[i]; u < first[i + 1]; u++) {
                    to->ns += tun_cell_at(&p->costs, k, w, u)->ns;
                }
            }
        }
    }
    j.handoff_ns = p->handoff_ns;
    j.handoff_ns_per_byte = p->handoff_ns_per_byte;
    j.objective = p->objective;
    j.bounds = p->bounds;
    j.boards = p->boards;
    *ret = j;
    return 0;
}

int tun_joined_init(const struct tun_problem *p, const struct tun_space_options *o,
                    bool link_energy, struct tun_joined *ret, struct tun_map *ret_map)
{
    size_t max = p->unit_count, count;
    int r;

    memset(ret_map, 0, sizeof(*ret_map));
    do {
        *ret = (struct tun_joined){.coarse = max < p->unit_count};
        ret->first = calloc(p->unit_count + 1, sizeof(*ret->first));
        if (!ret->first) {
            return -ENOMEM;
        }
        count = tun_cut(p, max, ret->first);
        r = join(p, ret->first, count, &ret->p);
        r = r == 0 ? map_init(&ret->p, o, link_energy, ret_map, &max) : r;
        if (r == 0) {
            r = tun_nodes_make(ret_map);
        } else {
            memset(ret_map, 0, sizeof(*ret_map));
        }
        if (r != 0) {
            tun_joined_deinit(ret, ret_map);
        }
    } while (r == E_ATOMS);
    return r;
}

void tun_joined_deinit(struct tun_joined *j, struct tun_map *m)
{
    map_deinit(m);
    tun_problem_deinit(&j->p);
    free(j->first);
    *j = (struct tun_joined){0};
}

void tun_joined_back(const struct tun_joined *j, struct pl_plan *plan)
{
    for (size_t s = 0; s < plan->stage_count; s++) {
        plan->stages[s].first_unit = j->first[plan->stages[s].first_unit];
        plan->stages[s].last_unit = (uint16_t)(j->first[plan->stages[s].last_unit + 1] - 1);
    }
}
