/* SPDX-License-Identifier: Apache-2.0 */
/* What the units of a model took on every board, and the cost table that follows. */
#include "daemon/boards/spread_table.h"

#include "base/base.h"
#include "tuner/learn.h"

#define PARALLEL 0.9         /* Amdahl's law, for more cores than the head's EP has */
#define SIGMA_TOLD 0.05      /* of a time that the board measured */
#define SIGMA_UNKNOWN 0.3    /* of the head's time for another board's EP */
#define SIGMA_LIKE_EP 0.15   /* of it, corrected by other widths of that EP */
#define SIGMA_LIKE_BOARD 0.2 /* or by other EPs of that board */

void dmn_past_deinit(struct dmn_spread_past *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->row[i].ns);
    }
    free(p->row);
    *p = DMN_SPREAD_PAST_NULL;
}

int dmn_past_copy(const struct dmn_spread_past *from, struct dmn_spread_past *ret)
{
    struct dmn_spread_past copy = {.unit_count = from->unit_count, .room = from->count + 1};
    size_t bytes = from->unit_count * sizeof(double);

    copy.row = calloc(from->count + 1, sizeof(*copy.row));
    for (size_t i = 0; copy.row && i < from->count; i++) {
        copy.row[i] = from->row[i];
        copy.row[i].ns = malloc(bytes);
        copy.count++;
        if (!copy.row[i].ns) {
            dmn_past_deinit(&copy);
            return -ENOMEM;
        }
        memcpy(copy.row[i].ns, from->row[i].ns, bytes);
    }
    if (!copy.row) {
        return -ENOMEM;
    }
    *ret = copy;
    return 0;
}

const struct dmn_past_row *dmn_past_find(const struct dmn_spread_past *p, const char *print,
                                         const char *ep, size_t width)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct dmn_past_row *r = &p->row[i];

        if (r->width == width && strcmp(r->print, print) == 0 && strcmp(r->ep, ep) == 0) {
            return r;
        }
    }
    return NULL;
}

/* Return: the row, a new one if there is none yet; NULL: the table is full, or there is no
 * memory. */
static struct dmn_past_row *row_of(struct dmn_spread_past *p, const char *print, const char *ep,
                                   uint32_t width)
{
    const struct dmn_past_row *found = dmn_past_find(p, print, ep, width);
    struct dmn_past_row *row;

    if (found) {
        return p->row + (found - p->row);
    }
    if (p->count == DMN_PAST_ROWS_MAX || !base_room(&p->row, sizeof(*row), p->count, &p->room)) {
        return NULL;
    }
    row = &p->row[p->count];
    *row = (struct dmn_past_row){.width = width, .ns = malloc(p->unit_count * sizeof(*row->ns))};
    if (!row->ns) {
        return NULL;
    }
    snprintf(row->print, sizeof(row->print), "%s", print);
    snprintf(row->ep, sizeof(row->ep), "%s", ep);
    for (size_t u = 0; u < p->unit_count; u++) {
        row->ns[u] = -1;
    }
    p->count++;
    return row;
}

static void learn_costs(struct dmn_spread_past *p, const struct brd_state *s,
                        const struct brd_costs *c, uint64_t now_ns)
{
    for (size_t i = 0; i < c->row_count; i++) {
        const struct brd_cost_row *from = &c->row[i];
        struct dmn_past_row *to =
            from->ep < s->ep_count ? row_of(p, s->print, s->ep[from->ep].name, from->width) : NULL;

        if (!to) {
            continue;
        }
        to->at_ns = now_ns;
        for (size_t u = 0; u < c->unit_count; u++) {
            if (isfinite(from->ns[u]) && from->ns[u] > 0) {
                to->ns[c->first_unit + u] = from->ns[u];
            }
        }
    }
}

static void learn_state(struct dmn_spread_past *p, const char *content, const struct brd_state *s,
                        uint64_t now_ns)
{
    for (size_t i = 0; i < s->costs_count; i++) {
        const struct brd_costs *c = &s->costs[i];

        if (strcmp(c->content, content) == 0 && c->first_unit < p->unit_count &&
            c->unit_count <= p->unit_count - c->first_unit) {
            learn_costs(p, s, c, now_ns);
        }
    }
}

static void forget(struct dmn_spread_past *p, uint64_t now_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->count; i++) {
        if (now_ns > p->row[i].at_ns && now_ns - p->row[i].at_ns > DMN_PAST_KEEP_NS) {
            free(p->row[i].ns);
        } else {
            p->row[kept++] = p->row[i];
        }
    }
    p->count = kept;
}

void dmn_past_learn(struct dmn_spread_past *p, const char *content,
                    const struct brd_link_report_all *r, uint64_t now_ns)
{
    learn_state(p, content, &r->self, now_ns);
    for (size_t i = 0; i < r->board_count; i++) {
        if (r->board[i].up && r->board[i].known) {
            learn_state(p, content, &r->board[i], now_ns);
        }
    }
    forget(p, now_ns);
}

/* ---- the cost table ---- */

struct filler {
    struct tun_problem *p;
    const struct tun_problem *here;
    const struct dmn_spread_past *past;
    const struct dmn_spread_ep *eps;
    /* sums over what is measured and was expected: of each EP and of its board */
    double ep_ns[PL_EP_MAX], ep_expected_ns[PL_EP_MAX];
    double board_ns[TUN_BOARD_MAX], board_expected_ns[TUN_BOARD_MAX];
};

static const struct dmn_past_row *past_of(const struct filler *f, size_t ep, size_t width)
{
    return dmn_past_find(f->past, f->eps[ep].print, f->eps[ep].name, width);
}

/* What a unit takes, for all that is known without the board's own word. */
static struct tun_cell expected(const struct filler *f, size_t ep, size_t width, size_t u)
{
    const struct dmn_spread_ep *e = &f->eps[ep];
    size_t most = f->here->eps[e->like].cores, w = base_min(width, most);
    struct tun_cell c = *tun_cell_at(&f->here->costs, e->like, w, u);

    if (f->p->eps[ep].board == 0) {
        return c;
    }
    c.ns *= e->scale;
    if (width > most) {
        c.ns *= (1 - PARALLEL + PARALLEL / (double)width) / (1 - PARALLEL + PARALLEL / (double)w);
    }
    c.sigma = hypot(SIGMA_UNKNOWN, base_max(c.sigma, 0.0));
    c.source = TUN_PREDICTED;
    return c;
}

/* Takes what the board told of a row; what it did not tell is left to tun_fill(). The head's own
 * table is complete, and only corrected: correct(). */
static void take_told(struct filler *f, size_t ep, size_t width, const struct dmn_past_row *row)
{
    size_t board = f->p->eps[ep].board;

    for (size_t u = 0; u < f->p->unit_count; u++) {
        struct tun_cell *c = tun_cell_at(&f->p->costs, ep, width, u);

        if (row && row->ns[u] > 0) {
            double ns = expected(f, ep, width, u).ns;

            f->ep_ns[ep] += row->ns[u];
            f->ep_expected_ns[ep] += ns;
            f->board_ns[board] += row->ns[u];
            f->board_expected_ns[board] += ns;
            *c = (struct tun_cell){row->ns[u], SIGMA_TOLD, TUN_MEASURED};
        } else if (row && board > 0) {
            *c = (struct tun_cell){-1, 0, TUN_UNKNOWN};
        } else {
            *c = expected(f, ep, width, u);
        }
    }
}

/* Return: by how much an EP was slower than expected, as far as it or its board told. What is
 * expected of a board that told nothing is of the head's table, and as wrong as that proved here.
 */
static double slower(const struct filler *f, size_t ep, double *ret_sigma)
{
    size_t board = f->p->eps[ep].board;

    if (f->ep_ns[ep] > 0) {
        *ret_sigma = SIGMA_LIKE_EP;
        return f->ep_ns[ep] / f->ep_expected_ns[ep];
    }
    if (f->board_ns[board] > 0) {
        *ret_sigma = SIGMA_LIKE_BOARD;
        return f->board_ns[board] / f->board_expected_ns[board];
    }
    *ret_sigma = SIGMA_UNKNOWN;
    return f->board_ns[0] > 0 ? f->board_ns[0] / f->board_expected_ns[0] : 1;
}

/* What the head's segments took counts for its other units, too: under a quota, or beside other
 * programs, all are slower than the table says. Else those that do not run now would seem faster
 * than those that do, and routes would swing. Of other boards only rows of which nothing was told
 * are corrected: tun_fill() has filled the others. */
static void correct(struct filler *f, size_t ep, size_t width)
{
    const struct dmn_past_row *row = past_of(f, ep, width);
    bool here = f->p->eps[ep].board == 0;
    double sigma, ratio = slower(f, ep, &sigma);

    for (size_t u = 0; u < f->p->unit_count && (here || !row); u++) {
        struct tun_cell *c = tun_cell_at(&f->p->costs, ep, width, u);

        if (!row || !(row->ns[u] > 0)) {
            c->ns *= ratio;
            c->sigma = here ? c->sigma : base_min(c->sigma, sigma);
        }
    }
}

void dmn_spread_costs(struct tun_problem *p, const struct tun_problem *here,
                      const struct dmn_spread_past *past, const struct dmn_spread_ep *eps)
{
    struct filler f = {.p = p, .here = here, .past = past, .eps = eps};

    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            take_told(&f, k, w, past_of(&f, k, w));
        }
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores && p->eps[k].board == 0; w++) {
            correct(&f, k, w);
        }
    }
    tun_fill(p);
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores && p->eps[k].board > 0; w++) {
            correct(&f, k, w);
        }
    }
}
