/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts unknown cells by the learned ratio to another row, else by Amdahl's law, else by
 * weights. */
#include "tuner/learn.h"

#include "base/base.h"

/* Amdahl's law for a unit of which nothing is known. */
#define PARALLEL 0.9
#define SIGMA_WIDTH 0.15  /* predicted from another width, no ratio learned */
#define SIGMA_EP 0.3      /* from another EP, no ratio learned */
#define SIGMA_WEIGHT 0.5  /* from the weight alone */
#define SIGMA_RATIO 0.15  /* scatter expected of a learned ratio before many units confirm it */
#define LIKE_SIZE_COUNT 3 /* units of like size that are enough to ask no others */

#define BINS 64

/* Log ratios between two rows, by the size of the unit on the row that is known (powers of two). */
struct ratios {
    double count[BINS], sum[BINS], squares[BINS];
    double all_count, all_sum, all_squares;
};

struct row {
    size_t ep, width;
    struct tun_cell *cells; /* [unit_count] */
};

static struct row row_at(const struct tun_problem *p, size_t ep, size_t width)
{
    return (struct row){ep, width, tun_cell_at(&p->costs, ep, width, 0)};
}

static size_t bin_of(double ns)
{
    return (size_t)base_min(base_max(ilogb(ns), 0), BINS - 1);
}

static void ratios_learn(struct ratios *r, const struct row *to, const struct row *from,
                         size_t units)
{
    *r = (struct ratios){0};
    for (size_t u = 0; u < units; u++) {
        if (tun_cell_known(&to->cells[u]) && tun_cell_known(&from->cells[u])) {
            double ratio = log(to->cells[u].ns / from->cells[u].ns);
            size_t bin = bin_of(from->cells[u].ns);

            r->count[bin]++;
            r->sum[bin] += ratio;
            r->squares[bin] += ratio * ratio;
            r->all_count++;
            r->all_sum += ratio;
            r->all_squares += ratio * ratio;
        }
    }
}

/* The ratio for a unit of @ns. Return: from how many units; 0: nothing learned. */
static double ratios_ask(const struct ratios *r, double ns, double *ret_log, double *ret_sigma)
{
    double count = 0, sum = 0, squares = 0, variance;
    size_t bin = bin_of(ns);

    for (size_t b = bin ? bin - 1 : 0; b <= bin + 1 && b < BINS; b++) {
        count += r->count[b];
        sum += r->sum[b];
        squares += r->squares[b];
    }
    if (count < LIKE_SIZE_COUNT) {
        count = r->all_count;
        sum = r->all_sum;
        squares = r->all_squares;
    }
    if (count == 0) {
        return 0;
    }
    *ret_log = sum / count;
    variance = base_max(0.0, squares - sum * sum / count) + SIGMA_RATIO * SIGMA_RATIO;
    *ret_sigma = sqrt(variance / count * (1 + 1 / count));
    return count;
}

/* Time of a unit of weight 1 on a row, but for a common factor. */
static double relative_ns(const struct tun_problem *p, const struct row *r)
{
    double speed = tun_positive(p->eps[r->ep].speed) ? p->eps[r->ep].speed : 1;

    return (1 - PARALLEL + PARALLEL / (double)r->width) / speed;
}

/* A cell that waits for its prediction: unknown, the best one so far kept as a negative time, so
 * that no prediction is made from another prediction of the same call. */
static void propose(struct tun_cell *c, double ns, double sigma)
{
    if (tun_positive(ns) && sigma < c->sigma) {
        c->ns = -ns;
        c->sigma = sigma;
    }
}

/* Predicts the open cells of a row by what the units take on another. */
static void fill_from_row(struct tun_problem *p, const struct row *to, const struct row *from)
{
    double guess = log(relative_ns(p, to) / relative_ns(p, from)), guess_sigma = SIGMA_EP;
    struct ratios ratios;

    if (to->ep == from->ep) {
        guess_sigma = SIGMA_WIDTH * fabs(log2((double)to->width / (double)from->width));
    } else if (to->width != from->width) {
        guess_sigma = hypot(SIGMA_EP, SIGMA_WIDTH);
    }
    ratios_learn(&ratios, to, from, p->unit_count);
    for (size_t u = 0; u < p->unit_count; u++) {
        double ratio, sigma;

        if (tun_cell_known(&to->cells[u]) || !tun_cell_known(&from->cells[u])) {
            continue;
        }
        if (ratios_ask(&ratios, from->cells[u].ns, &ratio, &sigma) == 0) {
            ratio = guess;
            sigma = guess_sigma;
        }
        propose(&to->cells[u], from->cells[u].ns * exp(ratio),
                hypot(sigma, base_max(0.0, from->cells[u].sigma)));
    }
}

/* ns per weight of the known cells of a row, or of all rows (@only NULL) relative to the EPs'
 * speeds: mean of logs. Return: how many cells. */
static size_t weight_scale(const struct tun_problem *p, const struct row *only, double *ret_log)
{
    double sum = 0;
    size_t count = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            struct row r = row_at(p, k, w);

            for (size_t u = 0; u < p->unit_count && (!only || only->cells == r.cells); u++) {
                if (tun_cell_known(&r.cells[u]) && tun_positive(p->units[u].weight)) {
                    sum += log(r.cells[u].ns / p->units[u].weight / relative_ns(p, &r));
                    count++;
                }
            }
        }
    }
    *ret_log = count ? sum / (double)count : 0;
    return count;
}

/* Without any measurement a unit of mean weight takes a millisecond on the fastest core. */
static double scale_of_nothing(const struct tun_problem *p)
{
    double sum = 0;

    for (size_t u = 0; u < p->unit_count; u++) {
        sum += tun_positive(p->units[u].weight) ? p->units[u].weight : 1;
    }
    return log(1e6 * (double)p->unit_count / sum);
}

static void fill_from_weights(struct tun_problem *p, const struct row *to, double any_log)
{
    double of_row;

    if (weight_scale(p, to, &of_row) == 0) {
        of_row = any_log;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        double weight = tun_positive(p->units[u].weight) ? p->units[u].weight : 1;

        if (!tun_cell_known(&to->cells[u]) && to->cells[u].sigma == INFINITY) {
            propose(&to->cells[u], weight * exp(of_row) * relative_ns(p, to), SIGMA_WEIGHT);
        }
    }
}

static size_t open_cells(struct tun_problem *p)
{
    size_t cells = tun_cell_count(&p->costs), open = 0;

    for (size_t i = 0; i < cells; i++) {
        if (!tun_cell_known(&p->costs.cells[i])) {
            p->costs.cells[i] = (struct tun_cell){-1, INFINITY, TUN_UNKNOWN};
            open++;
        }
    }
    return open;
}

static void close_cells(struct tun_problem *p)
{
    size_t cells = tun_cell_count(&p->costs);

    for (size_t i = 0; i < cells; i++) {
        struct tun_cell *c = &p->costs.cells[i];

        if (!tun_cell_known(c)) {
            *c = (struct tun_cell){-c->ns, c->sigma, TUN_PREDICTED};
        }
    }
}

static bool has_open(const struct tun_problem *p, const struct row *r)
{
    for (size_t u = 0; u < p->unit_count; u++) {
        if (!tun_cell_known(&r->cells[u])) {
            return true;
        }
    }
    return false;
}

size_t tun_fill(struct tun_problem *p)
{
    size_t open = open_cells(p);
    double any_log;

    if (open == 0) {
        return 0;
    }
    if (weight_scale(p, NULL, &any_log) == 0) {
        any_log = scale_of_nothing(p);
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            struct row to = row_at(p, k, w);

            if (!has_open(p, &to)) {
                continue;
            }
            for (size_t i = 0; i < p->ep_count; i++) {
                for (size_t j = 1; j <= p->eps[i].cores; j++) {
                    struct row from = row_at(p, i, j);

                    fill_from_row(p, &to, &from);
                }
            }
            fill_from_weights(p, &to, any_log);
        }
    }
    close_cells(p);
    return open;
}
