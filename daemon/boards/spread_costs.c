/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_costs.h"

#include "base/base.h"
#include "tuner/fill.h"

#define PARALLEL 0.9         /* Amdahl's law, for more cores than the head's EP has */
#define SIGMA_TOLD 0.05      /* of a time that the board measured */
#define SIGMA_UNKNOWN 0.3    /* of the head's time for another board's EP */
#define SIGMA_LIKE_EP 0.15   /* of it, corrected by other widths of that EP */
#define SIGMA_LIKE_BOARD 0.2 /* or by other EPs of that board */

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
 * table is complete, and only corrected: correct_here(). */
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
 * than those that do, and routes would swing. */
static void correct_here(struct filler *f, size_t ep, size_t width)
{
    const struct dmn_past_row *row = past_of(f, ep, width);
    double sigma, ratio = slower(f, ep, &sigma);

    for (size_t u = 0; u < f->p->unit_count; u++) {
        if (!row || !(row->ns[u] > 0)) {
            tun_cell_at(&f->p->costs, ep, width, u)->ns *= ratio;
        }
    }
}

static void correct_row(struct filler *f, size_t ep, size_t width)
{
    double sigma, ratio = slower(f, ep, &sigma);

    for (size_t u = 0; u < f->p->unit_count; u++) {
        struct tun_cell *c = tun_cell_at(&f->p->costs, ep, width, u);

        c->ns *= ratio;
        c->sigma = base_min(c->sigma, sigma);
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
            correct_here(&f, k, w);
        }
    }
    tun_fill(p);
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores && p->eps[k].board > 0; w++) {
            if (!past_of(&f, k, w)) {
                correct_row(&f, k, w);
            }
        }
    }
}
