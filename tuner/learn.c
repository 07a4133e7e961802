/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table's errors are log ratios of measured to expected time, in two layers: one per (EP, unit),
 * common to all widths (the table is wrong about the unit), and one per EP, common to all units
 * (contention, frequency). The most specific layer that samples reach corrects the cells without a
 * sample.
 *
 * Two tiers of cells: believed (predicted, saved) and measured. Evidence against a cell of one tier
 * corrects cells of the same or the lower tier, never better ones; and measured cells only where
 * the disagreement is beyond what noise explains. Where measured cells of an EP prove wrong each
 * in its own way, the others of that EP count as believed (saved) from then on.
 */
#include "tuner/learn.h"

#include "base/base.h"
#include "tuner/memory.h"
#include "tuner/span.h"

#define SIGMA_DEFAULT 0.05 /* of a sample that does not say */
#define SIGMA_NOISE 0.005  /* two means of one thing differ at least so much */
#define STALE 3.0          /* standard deviations that noise explains */
/* How far an EP is expected to be off as a whole, and single units of it: the scales against which
 * samples are weighed (standard deviations of log ratios, seen with contention and with tables that
 * were taken on an idle machine). */
#define PRIOR_EP 0.2
#define PRIOR_UNIT 0.1
/* Share of a cell's sigma that stays once another width of the same unit has been measured. */
#define WIDTH_UNCERTAINTY 0.3

#define NEWEST 0.25     /* what a trial's gain counts against the one known */
#define SIGMA_OTHER 0.1 /* of a prediction made of another number of frames, at least */

static bool measured(const struct tun_cell *c)
{
    return tun_cell_known(c) && c->source == TUN_MEASURED;
}

static bool usable(const struct tun_problem *p, const struct tun_sample *s)
{
    return s->also[0].width == 0 && s->ep < p->ep_count && s->width >= 1 &&
           s->width <= p->eps[s->ep].cores && s->unit < p->unit_count && tun_positive(s->ns);
}

/* The team took several frames at once, so that the sample is not the time of one frame. */
static bool sample_shared(const struct tun_sample *s)
{
    return s->frames > 1.05;
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

/* The EP's common log factor: its mean, shrunk towards 0 by how uncertain the mean is. */
static double evidence_factor(const struct evidence *e)
{
    double of_mean = evidence_variance(e) / base_max(e->count, 1.0);

    return e->mean * PRIOR_EP * PRIOR_EP / (PRIOR_EP * PRIOR_EP + of_mean);
}

/* Do the units disagree with the table each by its own factor, more than noise explains. */
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

/* A sample replaces a believed figure. Two measurements that agree are averaged by their precision;
 * of two that disagree the newer one counts. */
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

        if (!usable(p, s) || sample_shared(s)) {
            continue;
        }
        c = tun_cell_at(&p->costs, s->ep, s->width, s->unit);
        if (notes && !notes[cell_index(p, c)].sampled) {
            notes[cell_index(p, c)] =
                (struct note){.ns = s->ns,
                              .sigma = sigma_of(s),
                              .log_ratio = tun_cell_known(c) ? log(s->ns / c->ns) : 0,
                              .noise = sigma_of(s) * sigma_of(s) + c->sigma * c->sigma,
                              .sampled = true,
                              .compared = tun_cell_known(c),
                              .to_measured = measured(c)};
        }
        take_sample(c, s->ns, sigma_of(s));
    }
}

/* Evidence of one EP (@unit SIZE_MAX) or of one unit of it, from all widths. */
static void gather(const struct tun_problem *p, const struct note *notes, size_t ep, size_t unit,
                   struct evidence *ret_all, struct evidence *ret_measured)
{
    size_t first = unit == SIZE_MAX ? 0 : unit, last = unit == SIZE_MAX ? p->unit_count - 1 : unit;

    *ret_all = *ret_measured = (struct evidence){0};
    for (size_t w = 1; w <= p->eps[ep].cores; w++) {
        for (size_t u = first; u <= last; u++) {
            const struct note *n = &notes[cell_index(p, tun_cell_at(&p->costs, ep, w, u))];

            if (n->compared) {
                evidence_add(ret_all, n->log_ratio, n->noise);
            }
            if (n->compared && n->to_measured) {
                evidence_add(ret_measured, n->log_ratio, n->noise);
            }
        }
    }
}

static void correct_measured(struct tun_cell *c, const struct evidence *ep,
                             const struct evidence *unit)
{
    double ep_sigma = sqrt(evidence_variance(ep));

    if (unit->count > 0 && beyond_noise(unit->mean, unit->count, c->sigma)) {
        c->ns *= exp(unit->mean);
    } else if (unit->count == 0 && ep->count > 0 && beyond_noise(ep->mean, ep->count, ep_sigma)) {
        c->ns *= exp(evidence_factor(ep));
        c->sigma = base_max(c->sigma, ep_sigma);
    }
}

static void correct_believed(struct tun_cell *c, const struct evidence *ep,
                             const struct evidence *unit)
{
    if (unit->count > 0) {
        c->ns *= exp(unit->mean);
        c->sigma = hypot(SIGMA_NOISE, WIDTH_UNCERTAINTY * c->sigma);
    } else if (ep->count > 0) {
        c->ns *= exp(evidence_factor(ep));
        if (ep->count > 2) { /* the table is as wrong here as it was there */
            c->sigma = base_max(c->sigma, sqrt(ep->m2 / (ep->count - 1)));
        }
    }
}

static void correct_ep(struct tun_problem *p, const struct note *notes, size_t ep)
{
    struct evidence all, of_measured;

    gather(p, notes, ep, SIZE_MAX, &all, &of_measured);
    for (size_t u = 0; u < p->unit_count; u++) {
        struct evidence unit_all, unit_measured;

        gather(p, notes, ep, u, &unit_all, &unit_measured);
        for (size_t w = 1; w <= p->eps[ep].cores; w++) {
            struct tun_cell *c = tun_cell_at(&p->costs, ep, w, u);

            if (!tun_cell_known(c) || notes[cell_index(p, c)].sampled) {
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

/* What a team's stage should take by samples alone, and the variance of that. Return: all its units
 * were sampled. */
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

    for (size_t u = stage->first_unit; u <= stage->last_unit && table > 0 && tun_positive(ratio);
         u++) {
        struct tun_cell *c = tun_cell_at(&p->costs, g->ep, g->width, u);

        if (!measured(c)) {
            c->ns *= ratio;
        }
    }
}

static bool in_range(const struct tun_problem *p, const struct pl_stage_plan *stage,
                     const struct pl_group *g)
{
    return g->ep < p->ep_count && g->width >= 1 && g->width <= p->eps[g->ep].cores &&
           stage->first_unit <= stage->last_unit && stage->last_unit < p->unit_count;
}

/* The teams' hand-off cost: what is left of their time after their units, each team an observation
 * weighed by the noise of its samples, the present figure one of half its size and a hundredth of a
 * unit. */
static void learn_stages(struct tun_problem *p, const struct tun_trial *t, const struct note *notes)
{
    double mean = p->handoff_ns, spread = 0; /* its variance */

    for (size_t s = 0; s < t->plan.stage_count && s < PL_STAGE_MAX; s++) {
        const struct pl_stage_plan *stage = &t->plan.stages[s];

        for (size_t i = 0; i < stage->group_count && i < PL_GROUP_MAX; i++) {
            const struct pl_group *g = &stage->groups[i];
            double team_ns = t->measured.team_ns[s][i], sum, variance, prior, gain;

            /* several frames at once take less each than the table says of one */
            if (!in_range(p, stage, g) || !tun_positive(team_ns) || g->more > 0 ||
                pl_group_spans(g)) {
                continue;
            }
            if (!sampled_sum(p, notes, stage, g, &sum, &variance)) {
                scale_stage(p, stage, g, team_ns);
                continue;
            }
            prior = 0.5 * p->handoff_ns +
                    0.01 * sum / (double)(stage->last_unit - stage->first_unit + 1);
            spread = spread > 0 ? spread : prior * prior;
            if (stage->first_unit > 0) {
                sum += p->handoff_ns_per_byte * p->units[stage->first_unit].in_bytes;
            }
            gain = spread / (spread + (variance + 1e-6 * team_ns * team_ns));
            mean += gain * (team_ns - sum - mean);
            spread *= 1 - gain;
        }
    }
    p->handoff_ns = base_max(0.0, mean);
}

/* ---- several frames at once ----
 *
 * A sample of n frames at once is a frame's part, x, on an EP whose table has c for one frame and
 * gain f for n. Teams of the same shape also ran units that gain nothing: how much slower they are
 * than the table, r, is not the gain's (interference, a lower clock), and is taken out of x first.
 * - c is only predicted: then the prediction is wrong, and becomes x / f(n). It stays one.
 * - c is saved or measured: then the gain is wrong. With g = (1 - x / (r c)) / (1 - f(n)), what 2,
 *   4 and 8 frames save is multiplied by 1 + (g - 1) / 4, at least by half and at most by two:
 *   windows overlap, and each has its noise.
 */

static bool teaches_gain(const struct tun_problem *p, const struct tun_sample *s)
{
    return sample_shared(s) && isfinite(s->frames) && usable(p, s) &&
           tun_cell_known(tun_cell_at(&p->costs, s->ep, s->width, s->unit));
}

static bool trusted(const struct tun_cell *c)
{
    return c->source >= TUN_SAVED;
}

/* How much slower than the table the teams of the shape of @of are at units that gain nothing. */
static double common_ratio(const struct tun_problem *p, const struct tun_trial *t,
                           const struct tun_sample *of)
{
    double seen = 0, table = 0;

    for (size_t i = 0; i < t->sample_count; i++) {
        const struct tun_sample *s = &t->samples[i];
        const struct tun_cell *c;

        if (!teaches_gain(p, s) || s->ep != of->ep || s->width != of->width ||
            tun_at_once_gains(tun_at_once_at(p, s->ep, s->unit))) {
            continue;
        }
        c = tun_cell_at(&p->costs, s->ep, s->width, s->unit);
        if (trusted(c)) {
            seen += s->ns;
            table += c->ns;
        }
    }
    return table > 0 ? seen / table : 1;
}

static void correct_gain(struct tun_at_once *a, double frames, double seen)
{
    double known = tun_at_once_factor(a, frames);
    double by = 1 + NEWEST * ((1 - seen) / (1 - known) - 1);

    by = base_max(0.5, base_min(2.0, by));
    for (size_t i = 0; i < TUN_AT_ONCE; i++) {
        a->factor[i] = 1 - by * (1 - (a->factor[i] > 0 ? a->factor[i] : 1));
    }
    a->measured = true;
    tun_at_once_settle(a);
}

static void learn_at_once(struct tun_problem *p, const struct tun_trial *t)
{
    for (size_t i = 0; i < t->sample_count; i++) {
        const struct tun_sample *s = &t->samples[i];
        const struct tun_at_once *a;
        struct tun_cell *c;

        if (!teaches_gain(p, s)) {
            continue;
        }
        a = tun_at_once_at(p, s->ep, s->unit);
        c = tun_cell_at(&p->costs, s->ep, s->width, s->unit);
        if (!trusted(c)) {
            c->ns = s->ns / tun_at_once_factor(a, s->frames);
            c->sigma = base_max(s->sigma, SIGMA_OTHER);
            c->source = TUN_PREDICTED;
        } else if (tun_at_once_gains(a)) {
            correct_gain(&p->at_once[s->ep * p->unit_count + s->unit], s->frames,
                         s->ns / (c->ns * common_ratio(p, t, s)));
        }
    }
}

/* ---- teams that share memory ---- */

/* By how much longer memory takes for the team of a sample; 1: the plan has no such team. */
static double stretch_of(const struct pl_plan *plan, const struct tun_slowed *slowed,
                         const struct tun_sample *s)
{
    for (size_t i = 0; i < plan->stage_count; i++) {
        const struct pl_stage_plan *stage = &plan->stages[i];

        for (size_t g = 0; g < stage->group_count; g++) {
            if (s->unit >= stage->first_unit && s->unit <= stage->last_unit &&
                s->ep == stage->groups[g].ep && s->width == stage->groups[g].width) {
                return slowed->stretch[i][g];
            }
        }
    }
    return 1;
}

/* What the trial would have measured if each team had the memory to itself: t of
 *     t' = t + m (s - 1),    m = min(t, bytes / demand)
 * @samples: room for those of @t. */
static struct tun_trial alone(const struct tun_problem *p, const struct tun_trial *t,
                              const struct tun_slowed *slowed, struct tun_sample *samples)
{
    struct tun_trial ret = *t;

    for (size_t i = 0; i < t->sample_count; i++) {
        struct tun_sample *s = &samples[i];

        *s = t->samples[i];
        if (usable(p, s)) {
            s->ns = tun_memory_alone_ns(p, s->ep, s->width, s->unit, s->ns,
                                        stretch_of(&t->plan, slowed, s));
        }
    }
    for (size_t s = 0; s < t->plan.stage_count; s++) {
        for (size_t g = 0; g < t->plan.stages[s].group_count; g++) {
            ret.measured.team_ns[s][g] /= slowed->by[s][g];
        }
    }
    ret.samples = samples;
    return ret;
}

static void learn(struct tun_problem *p, const struct tun_trial *t)
{
    base_autofree struct note *notes = NULL;

    learn_at_once(p, t);
    for (size_t i = 0; i < t->sample_count; i++) {
        const struct tun_sample *s = &t->samples[i];
        struct pl_group team = {.ep = s->ep, .width = s->width, .count = 1};

        memcpy(team.also, s->also, sizeof(team.also));
        if (pl_group_spans(&team) && !sample_shared(s)) {
            tun_span_learn(p, &team, s->unit, s->ns);
        }
    }
    notes = calloc(tun_cell_count(&p->costs), sizeof(*notes));
    take_samples(p, t, notes);
    if (!notes) { /* without memory the samples alone are learned */
        return;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        correct_ep(p, notes, k);
    }
    learn_stages(p, t, notes);
}

void tun_learn(struct tun_problem *p, const struct tun_trial *t)
{
    base_autofree struct tun_sample *samples = NULL;
    base_autofree struct tun_trial *freed = NULL;
    struct tun_slowed slowed;

    if (t->failed) {
        return;
    }
    if (tun_memory_slowed(p, &t->plan, &slowed)) {
        samples = calloc(base_max(t->sample_count, (size_t)1), sizeof(*samples));
        freed = malloc(sizeof(*freed));
    }
    if (samples && freed) {
        *freed = alone(p, t, &slowed, samples);
        t = freed;
    }
    learn(p, t);
}
