/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_table.h"

#include "base/base.h"
#include "daemon/boards/route_fill.h"
#include "model/segment/segment.h"
#include "tuner/eval_boards.h"

#define HERE "here"
#define FASTER_MOST 8.0 /* by frequency, one board than another */

/* ---- units ---- */

/* Bytes in the arena that some op of the unit needs. */
static double arena_of(const struct mdl_model *m, const struct mdl_unit *unit)
{
    double bytes = 0;

    for (size_t i = 0; i < m->storage_count; i++) {
        const struct mdl_storage *s = &m->storages[i];

        if (s->home == MDL_HOME_ARENA && s->first_op <= unit->last_op &&
            s->last_op >= unit->first_op) {
            bytes += (double)s->bytes;
        }
    }
    return base_min(bytes, (double)m->arena_bytes);
}

/* Some primitives read the file's weights as they are. */
static double weights_of(const struct krn_net *net, const struct mdl_unit *unit)
{
    size_t packed = net ? krn_net_ops_need_bytes(net, unit->first_op, unit->last_op) : 0;

    return (double)base_max(packed, unit->weight_bytes);
}

int dmn_spread_units(const struct mdl_model *m, const struct krn_net *net, struct tun_problem *p)
{
    if (p->unit_count != m->unit_count) {
        return -EINVAL;
    }
    for (size_t u = 0; u <= m->unit_count; u++) {
        base_cleanup(mdl_border_deinit) struct mdl_border border = {0};
        int error = mdl_border(m, u, &border);

        if (error) {
            return error;
        }
        if (u == 0) {
            p->boards.input_bytes = (double)border.bytes;
        } else if (u == m->unit_count) {
            p->boards.output_bytes = (double)border.bytes;
        } else {
            p->units[u].in_bytes = (double)border.bytes;
        }
        if (u < m->unit_count) {
            p->units[u].weight_bytes = weights_of(net, &m->units[u]);
            p->units[u].arena_bytes = arena_of(m, &m->units[u]);
        }
    }
    return 0;
}

/* ---- boards and links ---- */

struct maker {
    const struct dmn_spread_inputs *in;
    struct dmn_spread_table *t;
    size_t board_count, ep_count, core_count;
    const struct brd_state *state[TUN_BOARD_MAX];
    struct tun_board board[TUN_BOARD_MAX];
    struct tun_ep ep[PL_EP_MAX];
    struct dmn_spread_ep more[PL_EP_MAX];
};

const struct brd_way *dmn_way_find(const struct brd_state *from, const char *print)
{
    for (size_t i = 0; i < from->way_count; i++) {
        if (strcmp(from->way[i].print, print) == 0) {
            return &from->way[i];
        }
    }
    return NULL;
}

bool dmn_spread_is_gap(const struct dmn_spread_gap *g, const char *a, const char *b)
{
    return (strcmp(g->a, a) == 0 && strcmp(g->b, b) == 0) ||
           (strcmp(g->a, b) == 0 && strcmp(g->b, a) == 0);
}

/* A link works in both directions or not at all: answers and errors go back where frames came
 * from. @head: one of the two is the head, which knows of the other that it is there. */
static bool linked(const struct dmn_spread_inputs *in, const struct brd_state *a,
                   const struct brd_state *b, bool head)
{
    const struct brd_way *there = dmn_way_find(a, b->print), *back = dmn_way_find(b, a->print);

    for (size_t i = 0; in->may && i < in->may->gap_count; i++) {
        if (dmn_spread_is_gap(&in->may->gaps[i], a->print, b->print)) {
            return false;
        }
    }
    return (there || back || head) && (!there || there->up) && (!back || back->up);
}

bool dmn_spread_linked(const struct dmn_spread_inputs *in, const char *a, const char *b)
{
    const struct brd_state *x = dmn_board_find(in->report, a), *y = dmn_board_find(in->report, b);

    return x && y && (x == y || linked(in, x, y, x == &in->report->self || y == &in->report->self));
}

static struct tun_link link_of(struct maker *k, size_t from, size_t to)
{
    const struct brd_state *a = k->state[from], *b = k->state[to];
    const struct brd_way *there = dmn_way_find(a, b->print), *back = dmn_way_find(b, a->print);

    if (from == to) {
        return (struct tun_link){0, 0};
    }
    if (!linked(k->in, a, b, from == 0 || to == 0)) {
        return (struct tun_link){DMN_LINK_GAP_NS, DMN_LINK_GAP_NS_PER_BYTE};
    }
    if (there && there->measured) {
        return (struct tun_link){there->ns, there->ns_per_byte};
    }
    if (back && back->measured) {
        return (struct tun_link){back->ns, back->ns_per_byte};
    }
    k->t->guessed_links++;
    return (struct tun_link){DMN_LINK_GUESS_NS, DMN_LINK_GUESS_NS_PER_BYTE};
}

/* The highest frequency of the board's fastest EP; 0: unknown. */
static double top_khz(const struct brd_state *s)
{
    double khz = 0, speed = 0;

    for (size_t i = 0; i < s->ep_count; i++) {
        if (s->ep[i].speed > speed) {
            speed = s->ep[i].speed;
            khz = s->ep[i].max_khz;
        }
    }
    return khz;
}

/* How much faster than the head's fastest EP that of @s is, as far as frequencies tell. */
static double faster(const struct brd_state *self, const struct brd_state *s)
{
    double ours = top_khz(self), theirs = top_khz(s);

    return ours > 0 && theirs > 0 ? base_min(base_max(theirs / ours, 1 / FASTER_MOST), FASTER_MOST)
                                  : 1;
}

/* The head's EP that is most like one of another board. */
static size_t most_like(const struct maker *k, const struct brd_ep *ep)
{
    const struct tun_problem *here = k->in->here;
    double best = INFINITY;
    size_t like = 0;

    for (size_t i = 0; i < here->ep_count; i++) {
        double far = fabs(log(ep->speed / here->eps[i].speed));

        far += here->eps[i].cores < ep->cores ? 0.01 : 0;
        if (far < best) {
            best = far;
            like = i;
        }
    }
    return like;
}

static bool name_taken(const struct maker *k, const char *name)
{
    for (size_t b = 0; b < k->board_count; b++) {
        if (strcmp(k->board[b].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void add_here(struct maker *k)
{
    const struct tun_problem *here = k->in->here;
    const struct brd_state *self = &k->in->report->self;

    for (size_t i = 0; i < here->ep_count; i++) {
        k->ep[i] = here->eps[i];
        k->ep[i].board = 0;
        k->ep[i].gbytes = k->ep[i].gbytes_max =
            0; /* competition is of one board (tuner/memory.h) */
        k->more[i] = (struct dmn_spread_ep){here->eps[i].name, self->print, i, 1};
        k->core_count += here->eps[i].cores;
    }
    k->ep_count = here->ep_count;
    k->state[0] = self;
    k->board[0] = (struct tun_board){.name = HERE, .memory_bytes = self->memory_bytes};
    k->board_count = 1;
}

static void add_eps(struct maker *k, size_t board)
{
    const struct brd_state *s = k->state[board];
    double ratio = faster(k->state[0], s);

    for (size_t i = 0; i < s->ep_count; i++) {
        const struct brd_ep *from = &s->ep[i];
        size_t like = most_like(k, from);
        const struct tun_ep *ours = &k->in->here->eps[like];
        struct tun_ep *to = &k->ep[k->ep_count];
        char name[PL_BOARD_NAME_MAX];

        memcpy(name, k->board[board].name, sizeof(name));
        *to = (struct tun_ep){.cores = (uint16_t)from->cores,
                              .speed = from->speed * ratio,
                              .bandwidth = ours->bandwidth,
                              .watts = from->watts > 0 ? from->watts : ours->watts,
                              .board = (uint16_t)board};
        snprintf(to->name, sizeof(to->name), "%s:%s", name, from->name);
        k->more[k->ep_count++] =
            (struct dmn_spread_ep){from->name, s->print, like, ours->speed / to->speed};
        k->core_count += from->cores;
    }
}

static void add_board(struct maker *k, const struct brd_state *s)
{
    struct tun_board *b = &k->board[k->board_count];
    size_t cores = k->core_count;

    for (size_t i = 0; i < s->ep_count; i++) {
        cores += s->ep[i].cores;
    }
    if (k->board_count == TUN_BOARD_MAX || k->ep_count + s->ep_count > PL_EP_MAX ||
        cores > PL_CPU_MAX) {
        k->t->left_out++;
        return;
    }
    *b = (struct tun_board){.memory_bytes = s->memory_bytes};
    snprintf(b->name, sizeof(b->name), "%.*s", (int)sizeof(b->name) - 1, s->name);
    if (!b->name[0] || name_taken(k, b->name)) {
        snprintf(b->name, sizeof(b->name), "%s", s->print);
    }
    k->state[k->board_count] = s;
    add_eps(k, k->board_count++);
}

/* Frames in flight, as a pipeline's pool has them (pl_options.frames). */
static void set_held(struct maker *k)
{
    for (size_t b = 0; b < k->board_count; b++) {
        k->board[b].frames_held = 2;
    }
    for (size_t i = 0; i < k->ep_count; i++) {
        k->board[k->ep[i].board].frames_held += 2 * k->ep[i].cores;
    }
}

/* Speeds are relative to the fastest EP of all boards. */
static void scale_speeds(struct maker *k)
{
    double most = 0;

    for (size_t i = 0; i < k->ep_count; i++) {
        most = base_max(most, k->ep[i].speed);
    }
    for (size_t i = 0; i < k->ep_count; i++) {
        k->ep[i].speed /= most;
    }
}

static void choose_boards(struct maker *k)
{
    const struct brd_link_report_all *r = k->in->report;

    add_here(k);
    for (size_t i = 0; i < r->board_count; i++) {
        const struct brd_state *s = &r->board[i];

        if (s->up && s->known && s->ep_count > 0 && (!k->in->may || k->in->may->usable[i]) &&
            linked(k->in, &r->self, s, true)) {
            add_board(k, s);
        }
    }
    set_held(k);
    scale_speeds(k);
}

static int fill_problem(struct maker *k)
{
    const struct tun_problem *here = k->in->here;
    struct tun_problem *p = &k->t->p;
    int error = tun_problem_init(p, here->unit_count, k->ep, k->ep_count);

    if (error) {
        return error;
    }
    memcpy(p->units, here->units, here->unit_count * sizeof(*p->units));
    p->handoff_ns = here->handoff_ns;
    p->handoff_ns_per_byte = here->handoff_ns_per_byte;
    p->objective = here->objective;
    p->bounds = here->bounds;
    p->bounds.stages_max = 0;
    p->boards = (struct tun_boards){.count = k->board_count,
                                    .input_bytes = here->boards.input_bytes,
                                    .output_bytes = here->boards.output_bytes};
    for (size_t a = 0; a < k->board_count; a++) {
        p->boards.boards[a] = k->board[a];
        memcpy(k->t->print[a], k->state[a]->print, sizeof(k->t->print[a]));
        for (size_t b = 0; b < k->board_count; b++) {
            p->boards.links[a][b] = link_of(k, a, b);
        }
    }
    dmn_spread_costs(p, here, k->in->past, k->more);
    return 0;
}

int dmn_spread_table_init(const struct dmn_spread_inputs *in, struct dmn_spread_table *ret)
{
    base_autofree struct maker *k = calloc(1, sizeof(*k));
    char error[TUN_ERROR_MAX];
    int r = k ? tun_problem_check(in->here, error) : -ENOMEM;

    *ret = DMN_SPREAD_TABLE_NULL;
    if (!r) {
        k->in = in;
        k->t = ret;
        choose_boards(k);
        r = fill_problem(k);
    }
    if (r) {
        dmn_spread_table_deinit(ret);
    }
    return r;
}

void dmn_spread_table_deinit(struct dmn_spread_table *t)
{
    tun_problem_deinit(&t->p);
    *t = DMN_SPREAD_TABLE_NULL;
}

size_t dmn_spread_board(const struct dmn_spread_table *t, const char *print)
{
    size_t b = 0;

    while (b < t->p.boards.count && strcmp(t->print[b], print) != 0) {
        b++;
    }
    return b;
}

int dmn_spread_part(const struct tun_problem *p, size_t board, size_t first, size_t last,
                    struct tun_problem *ret, uint16_t ret_eps[PL_EP_MAX])
{
    size_t count = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        if (p->eps[k].board == board) {
            ret_eps[count++] = (uint16_t)k;
        }
    }
    return tun_problem_part(p, ret_eps, count, first, last, ret);
}

int dmn_spread_alone(const struct dmn_spread_table *t, struct tun_problem *ret)
{
    uint16_t eps[PL_EP_MAX];
    int error = dmn_spread_part(&t->p, 0, 0, t->p.unit_count - 1, ret, eps);

    if (!error) {
        ret->objective = t->p.objective;
        ret->bounds = t->p.bounds;
    }
    return error;
}

bool dmn_spread_any_gap(const struct tun_problem *p, uint32_t from, uint32_t to)
{
    for (size_t a = 0; a < p->boards.count; a++) {
        for (size_t b = 0; b < p->boards.count; b++) {
            if (a != b && from >> a & 1 && to >> b & 1 &&
                p->boards.links[a][b].ns >= DMN_LINK_GAP_NS) {
                return true;
            }
        }
    }
    return false;
}

bool dmn_spread_crosses_gap(const struct tun_problem *p, const struct pl_plan *plan)
{
    uint32_t head = UINT32_C(1) << p->boards.head, before = head;

    for (size_t s = 0; s < plan->stage_count; s++) {
        uint32_t mask = tun_board_mask(p, &plan->stages[s]);

        if (dmn_spread_any_gap(p, before, mask)) {
            return true;
        }
        before = mask;
    }
    return dmn_spread_any_gap(p, before, head);
}
