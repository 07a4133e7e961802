/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of a table are taken as log ratios, measured against what the table said, and come in two
 * layers: one per (kind, unit), common to all widths (the unit is not what the table thinks), and
 * one per kind, common to all units (contention, frequency). What was not sampled is corrected by
 * the most specific layer that the samples reach.
 *
 * Two tiers of cells: believed (predicted, saved) and measured. Evidence against a cell of one tier
 * corrects cells of the same or the lower tier, never better ones; and measured cells only where
 * the disagreement is beyond what noise explains. Where measured cells of a kind prove wrong each
 * in its own way, the others of that kind count as believed (saved) from then on.
 */
#include "tuner/learn.h"

#include <math.h>

#include "base.h"

#define SIGMA_DEFAULT 0.05 /* of a sample that does not say */
#define SIGMA_NOISE 0.005  /* two means of one thing differ at least so much */
#define STALE 3.0          /* standard deviations that noise explains */
/* How far a kind is expected to be off as a whole, and single units of it: the scales against which
 * samples are weighed (standard deviations of log ratios, seen with contention and with tables that
 * were taken on an idle machine). */
#define PRIOR_KIND 0.2
#define PRIOR_UNIT 0.1
/* Share of a cell's doubt that stays when another width of the same unit has been measured. */
#define WIDTH_DOUBT 0.3

/* Amdahl's law for a unit of which nothing is known. */
#define PARALLEL 0.9
#define SIGMA_WIDTH 0.15  /* predicted from another width, no ratio learned */
#define SIGMA_KIND 0.3    /* from another kind, no ratio learned */
#define SIGMA_WEIGHT 0.5  /* from the weight alone */
#define SIGMA_RATIO 0.15  /* scatter expected of a learned ratio before many units confirm it */
#define LIKE_SIZE_COUNT 3 /* units of like size that are enough to ask no others */

static bool positive(double x)
{
    return isfinite(x) && x > 0;
}

static bool known(const struct tun_cell *c)
{
    return positive(c->ns);
}

static bool measured(const struct tun_cell *c)
{
    return known(c) && c->source == TUN_MEASURED;
}

static bool usable(const struct tun_problem *p, const struct tun_sample *s)
{
    return s->kind < p->kind_count && s->width >= 1 && s->width <= p->kinds[s->kind].cores &&
           s->unit < p->unit_count && positive(s->ns);
}

static double sigma_of(const struct tun_sample *s)
{
    return isfinite(s->sigma) && s->sigma >= 0 ? s->sigma : SIGMA_DEFAULT;
}

/* Log ratios of samples to the table, of one tier: count, mean and scatter (Welford), and the
 * scatter that both sides' own noise explains. */
struct evidence {
    double count, mean, m2, noise;
};

static void evidence_add(struct evidence *e, double log_ratio, double noise)
{
    double from_mean = log_ratio - e->mean;

    e->noise += noise;
    e->count++;
    e->mean += from_mean / e->count;
    e->m2 += from_mean * (log_ratio - e->mean);
}

/* Scatter of single units around the mean, as if one more had been seen that was off by
 * PRIOR_UNIT. */
static double evidence_variance(const struct evidence *e)
{
    return (e->m2 + PRIOR_UNIT * PRIOR_UNIT) / base_max(e->count, 1.0);
}

/* The kind's common log factor: its mean, shrunk towards 0 by how uncertain the mean is. */
static double evidence_factor(const struct evidence *e)
{
    double of_mean = evidence_variance(e) / base_max(e->count, 1.0);

    return e->mean * PRIOR_KIND * PRIOR_KIND / (PRIOR_KIND * PRIOR_KIND + of_mean);
}

/* Do the units disagree with the table each in its own way, more than noise explains. */
static bool contradicted(const struct evidence *e)
{
    return e->count > 2 && e->m2 / (e->count - 1) >
                               STALE * STALE * (e->noise / e->count + SIGMA_NOISE * SIGMA_NOISE);
}

/* Is a mean of @count log ratios with the scatter of noise alone not explained by noise? */
static bool beyond_noise(double mean, double count, double sigma)
{
    return fabs(mean) > STALE * hypot(sigma, SIGMA_NOISE) / sqrt(base_max(count, 1.0));
}

/* What a trial said about one cell. */
struct note {
    double ns, sigma;
    double log_ratio; /* to what the table had; valid if compared */
    double noise;     /* variance of log_ratio by both figures' sigma */
    bool sampled, compared, to_measured;
};

static size_t cell_index(const struct tun_problem *p, const struct tun_cell *c)
{
    return (size_t)(c - p->costs.cells);
}

static size_t row_count(const struct tun_costs *c)
{
    return c->first[c->kind_count - 1] + c->cores[c->kind_count - 1];
}

/* A sample replaces what was believed. Two measurements that agree are weighed by their precision;
 * of two that do not the newer one holds. */
static void take_sample(struct tun_cell *c, double ns, double sigma)
{
    double old_sigma = base_max(c->sigma, sigma / 4), weight;

    if (!measured(c) || old_sigma == 0 ||
        beyond_noise(log(ns / c->ns), 1, hypot(old_sigma, sigma))) {
        *c = (struct tun_cell){ns, sigma, TUN_MEASURED};
        return;
    }
    weight = old_sigma * old_sigma / (old_sigma * old_sigma + sigma * sigma);
    c->ns *= pow(ns / c->ns, weight);
    c->sigma = old_sigma * sigma / hypot(old_sigma, sigma);
}

/* @notes: [cells], or NULL. */
static void take_samples(struct tun_problem *p, const struct tun_trial *t, struct note *notes)
{
    for (size_t i = 0; i < t->sample_count; i++) {
        const struct tun_sample *s = &t->samples[i];
        struct tun_cell *c;

        if (!usable(p, s)) {
            continue;
        }
        c = tun_cell_at(&p->costs, s->kind, s->width, s->unit);
        if (notes && !notes[cell_index(p, c)].sampled) {
            notes[cell_index(p, c)] =
                (struct note){.ns = s->ns,
                              .sigma = sigma_of(s),
                              .log_ratio = known(c) ? log(s->ns / c->ns) : 0,
                              .noise = sigma_of(s) * sigma_of(s) + c->sigma * c->sigma,
                              .sampled = true,
                              .compared = known(c),
                              .to_measured = measured(c)};
        }
        take_sample(c, s->ns, sigma_of(s));
    }
}

/* Evidence of one kind (@unit SIZE_MAX) or of one unit of it, from all widths. */
static void gather(const struct tun_problem *p, const struct note *notes, size_t kind, size_t unit,
                   struct evidence *ret_all, struct evidence *ret_measured)
{
    size_t first = unit == SIZE_MAX ? 0 : unit, last = unit == SIZE_MAX ? p->unit_count - 1 : unit;

    *ret_all = *ret_measured = (struct evidence){0};
    for (size_t w = 1; w <= p->kinds[kind].cores; w++) {
        for (size_t u = first; u <= last; u++) {
            const struct note *n = &notes[cell_index(p, tun_cell_at(&p->costs, kind, w, u))];

            if (n->compared) {
                evidence_add(ret_all, n->log_ratio, n->noise);
            }
            if (n->compared && n->to_measured) {
                evidence_add(ret_measured, n->log_ratio, n->noise);
            }
        }
    }
}

static void correct_measured(struct tun_cell *c, const struct evidence *kind,
                             const struct evidence *unit)
{
    double kind_sigma = sqrt(evidence_variance(kind));

    if (unit->count > 0 && beyond_noise(unit->mean, unit->count, c->sigma)) {
        c->ns *= exp(unit->mean);
    } else if (unit->count == 0 && kind->count > 0 &&
               beyond_noise(kind->mean, kind->count, kind_sigma)) {
        c->ns *= exp(evidence_factor(kind));
        c->sigma = base_max(c->sigma, kind_sigma);
    }
}

static void correct_believed(struct tun_cell *c, const struct evidence *kind,
                             const struct evidence *unit)
{
    if (unit->count > 0) {
        c->ns *= exp(unit->mean);
        c->sigma = hypot(SIGMA_NOISE, WIDTH_DOUBT * c->sigma);
    } else if (kind->count > 0) {
        c->ns *= exp(evidence_factor(kind));
        if (kind->count > 2) { /* the table is as wrong here as it was there */
            c->sigma = base_max(c->sigma, sqrt(kind->m2 / (kind->count - 1)));
        }
    }
}

static void correct_kind(struct tun_problem *p, const struct note *notes, size_t kind)
{
    struct evidence all, of_measured;

    gather(p, notes, kind, SIZE_MAX, &all, &of_measured);
    for (size_t u = 0; u < p->unit_count; u++) {
        struct evidence unit_all, unit_measured;

        gather(p, notes, kind, u, &unit_all, &unit_measured);
        for (size_t w = 1; w <= p->kinds[kind].cores; w++) {
            struct tun_cell *c = tun_cell_at(&p->costs, kind, w, u);

            if (!known(c) || notes[cell_index(p, c)].sampled) {
                continue;
            }
            if (measured(c) && contradicted(&of_measured)) {
                c->source = TUN_SAVED;
            }
            if (measured(c)) {
                correct_measured(c, &of_measured, &unit_measured);
            } else {
                correct_believed(c, &all, &unit_all);
            }
        }
    }
}

/* What a team's stage should take by samples alone, and the variance of that. Return: were all its
 * units sampled. */
static bool sampled_sum(const struct tun_problem *p, const struct note *notes,
                        const struct pl_stage_plan *stage, const struct pl_group *g, double *ret_ns,
                        double *ret_variance)
{
    *ret_ns = *ret_variance = 0;
    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        const struct note *n = &notes[cell_index(p, tun_cell_at(&p->costs, g->ep, g->width, u))];

        if (!n->sampled) {
            return false;
        }
        *ret_ns += n->ns;
        *ret_variance += n->sigma * n->sigma * n->ns * n->ns;
    }
    return true;
}

/* A team whose units were not timed one by one: its believed cells share the disagreement. */
static void scale_stage(struct tun_problem *p, const struct pl_stage_plan *stage,
                        const struct pl_group *g, double team_ns)
{
    double border =
        stage->first_unit ? p->handoff_ns_per_byte * p->units[stage->first_unit].in_bytes : 0;
    double table = tun_team_ns(p, stage->first_unit, stage->last_unit, g->ep, g->width);
    double ratio = (team_ns - p->handoff_ns - border) / (table - p->handoff_ns - border);

    for (size_t u = stage->first_unit; u <= stage->last_unit && table > 0 && positive(ratio); u++) {
        struct tun_cell *c = tun_cell_at(&p->costs, g->ep, g->width, u);

        if (!measured(c)) {
            c->ns *= ratio;
        }
    }
}

/* The teams' hand-off cost: what is left of their time after their units, each team an observation
 * weighed by the noise of its samples, the present figure one of half its size and a hundredth of a
 * unit. */
struct handoff {
    double mean, variance;
};

static void handoff_observe(struct handoff *h, double ns, double variance)
{
    double gain = h->variance / (h->variance + variance);

    h->mean += gain * (ns - h->mean);
    h->variance *= 1 - gain;
}

static bool in_range(const struct tun_problem *p, const struct pl_stage_plan *stage,
                     const struct pl_group *g)
{
    return g->ep < p->kind_count && g->width >= 1 && g->width <= p->kinds[g->ep].cores &&
           stage->first_unit <= stage->last_unit && stage->last_unit < p->unit_count;
}

static void learn_stages(struct tun_problem *p, const struct tun_trial *t, const struct note *notes)
{
    struct handoff h = {p->handoff_ns, 0};

    for (size_t s = 0; s < t->plan.stage_count && s < PL_STAGE_MAX; s++) {
        const struct pl_stage_plan *stage = &t->plan.stages[s];

        for (size_t i = 0; i < stage->group_count && i < PL_GROUP_MAX; i++) {
            const struct pl_group *g = &stage->groups[i];
            double team_ns = t->measured.team_ns[s][i], sum, variance, prior;

            if (!in_range(p, stage, g) || !positive(team_ns)) {
                continue;
            }
            if (!sampled_sum(p, notes, stage, g, &sum, &variance)) {
                scale_stage(p, stage, g, team_ns);
                continue;
            }
            prior = 0.5 * p->handoff_ns +
                    0.01 * sum / (double)(stage->last_unit - stage->first_unit + 1);
            h.variance = h.variance > 0 ? h.variance : prior * prior;
            if (stage->first_unit > 0) {
                sum += p->handoff_ns_per_byte * p->units[stage->first_unit].in_bytes;
            }
            handoff_observe(&h, team_ns - sum, variance + 1e-6 * team_ns * team_ns);
        }
    }
    p->handoff_ns = base_max(0.0, h.mean);
}

void tun_learn(struct tun_problem *p, const struct tun_trial *t)
{
    base_autofree struct note *notes = NULL;

    if (t->failed) {
        return;
    }
    notes = calloc(row_count(&p->costs) * p->unit_count, sizeof(*notes));
    take_samples(p, t, notes);
    if (!notes) { /* without memory the samples alone are learned */
        return;
    }
    for (size_t k = 0; k < p->kind_count; k++) {
        correct_kind(p, notes, k);
    }
    learn_stages(p, t, notes);
}

#define BINS 64

/* Log ratios between two rows, by the size of the unit on the row that is known (powers of two). */
struct ratios {
    double count[BINS], sum[BINS], squares[BINS];
    double all_count, all_sum, all_squares;
};

struct row {
    size_t kind, width;
    struct tun_cell *cells; /* [unit_count] */
};

static struct row row_at(const struct tun_problem *p, size_t kind, size_t width)
{
    return (struct row){kind, width, tun_cell_at(&p->costs, kind, width, 0)};
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
        if (known(&to->cells[u]) && known(&from->cells[u])) {
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

static double amdahl(size_t width)
{
    return 1 - PARALLEL + PARALLEL / (double)width;
}

static double speed_of(const struct tun_problem *p, size_t kind)
{
    return positive(p->kinds[kind].speed) ? p->kinds[kind].speed : 1;
}

/* Time of a unit of weight 1 on a row, but for a common factor. */
static double relative_ns(const struct tun_problem *p, const struct row *r)
{
    return amdahl(r->width) / speed_of(p, r->kind);
}

/* A cell that waits for its prediction: unknown, the best one so far kept as a negative time, so
 * that no prediction is made from another prediction of the same call. */
static void propose(struct tun_cell *c, double ns, double sigma)
{
    if (positive(ns) && sigma < c->sigma) {
        c->ns = -ns;
        c->sigma = sigma;
    }
}

/* Predicts the open cells of a row by what the units take on another. */
static void fill_from_row(struct tun_problem *p, const struct row *to, const struct row *from)
{
    double guess = log(relative_ns(p, to) / relative_ns(p, from)), guess_sigma = SIGMA_KIND;
    struct ratios ratios;

    if (to->kind == from->kind) {
        guess_sigma = SIGMA_WIDTH * fabs(log2((double)to->width / (double)from->width));
    } else if (to->width != from->width) {
        guess_sigma = hypot(SIGMA_KIND, SIGMA_WIDTH);
    }
    ratios_learn(&ratios, to, from, p->unit_count);
    for (size_t u = 0; u < p->unit_count; u++) {
        double ratio, sigma;

        if (known(&to->cells[u]) || !known(&from->cells[u])) {
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

/* ns per weight of the known cells of a row, or of all rows (@only NULL) relative to the kinds'
 * speeds: mean of logs. Return: how many cells. */
static size_t weight_scale(const struct tun_problem *p, const struct row *only, double *ret_log)
{
    double sum = 0;
    size_t count = 0;

    for (size_t k = 0; k < p->kind_count; k++) {
        for (size_t w = 1; w <= p->kinds[k].cores; w++) {
            struct row r = row_at(p, k, w);

            for (size_t u = 0; u < p->unit_count && (!only || only->cells == r.cells); u++) {
                if (known(&r.cells[u]) && positive(p->units[u].weight)) {
                    sum += log(r.cells[u].ns / p->units[u].weight / relative_ns(p, &r));
                    count++;
                }
            }
        }
    }
    *ret_log = count ? sum / (double)count : 0;
    return count;
}

/* With nothing measured at all: a unit of mean weight takes a millisecond on the fastest core. */
static double scale_of_nothing(const struct tun_problem *p)
{
    double sum = 0;

    for (size_t u = 0; u < p->unit_count; u++) {
        sum += positive(p->units[u].weight) ? p->units[u].weight : 1;
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
        double weight = positive(p->units[u].weight) ? p->units[u].weight : 1;

        if (!known(&to->cells[u]) && to->cells[u].sigma == INFINITY) {
            propose(&to->cells[u], weight * exp(of_row) * relative_ns(p, to), SIGMA_WEIGHT);
        }
    }
}

static size_t open_cells(struct tun_problem *p)
{
    size_t cells = row_count(&p->costs) * p->unit_count, open = 0;

    for (size_t i = 0; i < cells; i++) {
        if (!known(&p->costs.cells[i])) {
            p->costs.cells[i] = (struct tun_cell){-1, INFINITY, TUN_UNKNOWN};
            open++;
        }
    }
    return open;
}

static void close_cells(struct tun_problem *p)
{
    size_t cells = row_count(&p->costs) * p->unit_count;

    for (size_t i = 0; i < cells; i++) {
        struct tun_cell *c = &p->costs.cells[i];

        if (!known(c)) {
            *c = (struct tun_cell){-c->ns, c->sigma, TUN_PREDICTED};
        }
    }
}

static bool has_open(const struct tun_problem *p, const struct row *r)
{
    for (size_t u = 0; u < p->unit_count; u++) {
        if (!known(&r->cells[u])) {
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
    for (size_t k = 0; k < p->kind_count; k++) {
        for (size_t w = 1; w <= p->kinds[k].cores; w++) {
            struct row to = row_at(p, k, w);

            if (!has_open(p, &to)) {
                continue;
            }
            for (size_t i = 0; i < p->kind_count; i++) {
                for (size_t j = 1; j <= p->kinds[i].cores; j++) {
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
