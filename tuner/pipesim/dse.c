/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/dse.h"

#include "tuner/pipesim/run.h"
#include "tuner/solve/solve.h"

#define SECONDS_PER_HOUR 3600.0

const char *const psim_experiment_names[PSIM_EXPERIMENTS] = {"1s-NE", "1s-SPE", "3s-2l-SPE"};
const char *const psim_figure_names[PSIM_FIGURES] = {"fps", "memory_mb", "energy_j", "volume"};

/* The best of each objective on a front of [count][3], as figures; 0 if it is empty. */
static void best_of(const double *front, size_t count, double ret[3])
{
    double least[3] = {INFINITY, INFINITY, INFINITY};

    for (size_t i = 0; i < 3 * count; i++) {
        least[i % 3] = base_min(least[i % 3], front[i]);
    }
    ret[PSIM_FPS] = count ? 1e9 / least[0] : 0;
    ret[PSIM_MEMORY_MB] = count ? least[1] / 1e6 : 0;
    ret[PSIM_ENERGY_J] = count ? least[2] / 1e9 : 0;
}

/* ---- what is searched, and the exact front ---- */

static int find_front(struct psim_dse *d, const bool *may_cut)
{
    int error = psim_split_front(&d->truth, may_cut, &d->front, &d->front_count);

    for (size_t i = 0; !error && i < 3 * d->front_count; i++) {
        d->limit[i % 3] = base_max(d->limit[i % 3], 2 * d->front[i]);
    }
    best_of(d->front, d->front_count, d->best);
    return error ? error : tun_hypervolume(d->front, d->front_count, d->limit, &d->front_volume);
}

/* The best throughput of all plans: copies and any order too. */
static int find_best(struct psim_dse *d)
{
    base_autofree struct tun_solution *best = calloc(1, sizeof(*best));
    int error;

    if (!best) {
        return -ENOMEM;
    }
    d->truth.bounds.slack = 0;
    error = tun_solve(&d->truth, best);
    d->best_ns = best->outcome.bottleneck_ns;
    return error;
}

/* With every node a unit, the front is that of cuts in front of nodes that compute: nothing is
 * gained between a convolution and its norm. */
static int find_fronts(struct psim_dse *d, const struct psim_network *net)
{
    base_autofree bool *may_cut = calloc(net->unit_count, sizeof(*may_cut));
    int error;

    for (size_t u = 0; may_cut && u < net->unit_count; u++) {
        may_cut[u] = !net->units[u].light;
    }
    error = may_cut ? find_front(d, may_cut) : -ENOMEM;
    return error ? error : find_best(d);
}

int psim_dse_init(const char *network, bool nodes, const char *platform,
                  char ret_error[PSIM_ERROR_MAX], struct psim_dse *ret)
{
    struct psim_dse d = {.hours = 70, .evaluation_s = 12, .sigma = 0.1, .early = PSIM_EARLY};
    struct pl_group teams[PL_EP_MAX] = {0};
    base_cleanup(psim_case_deinit) struct psim_case on = PSIM_CASE_NULL;
    int error = psim_case_init(network, nodes ? PSIM_NODES : PSIM_UNITS, platform, ret_error, &on);

    if (error) {
        return error;
    }
    if (on.platform.boards.count < 2) {
        snprintf(ret_error, PSIM_ERROR_MAX, "%.200s has one board; pipesim list names others",
                 platform);
        return -EINVAL;
    }
    on.truth.boards.comm = TUN_COMM_ADDED;
    for (size_t k = 0; k < on.truth.ep_count; k++) {
        teams[k] = (struct pl_group){(uint16_t)k, on.truth.eps[k].cores, 1};
    }
    error = psim_places(&on.truth, teams, on.truth.ep_count, &d.truth);
    error = error ? error : find_fronts(&d, &on.network);
    if (error) {
        snprintf(ret_error, PSIM_ERROR_MAX, "%.100s on %.100s: %s", network, platform,
                 error < 0 ? strerror(-error) : "it fits on no board");
        psim_dse_deinit(&d);
        return error < 0 ? error : -EINVAL;
    }
    *ret = d;
    return 0;
}

void psim_dse_deinit(struct psim_dse *d)
{
    tun_problem_deinit(&d->truth);
    free(d->front);
    *d = (struct psim_dse){0};
}

/* ---- one run ---- */

struct run {
    const struct psim_dse *d;
    struct tun_problem told; /* the model's costs, owned */
    enum tun_encoding encoding;
    uint16_t *places; /* [unit_count], owned */
    struct psim_trace trace;
    size_t front_room, sampled;
};

static void judge(const struct run *r, const struct tun_problem *p, const uint16_t *genes,
                  struct tun_fitness *ret)
{
    struct psim_mapped m;

    tun_encoding_decode(r->encoding, genes, p->unit_count, p->ep_count, r->places);
    psim_mapping(p, r->places, &m);
    *ret =
        (struct tun_fitness){.objective = {m.bottleneck_ns, m.most_memory_bytes, m.most_energy_nj}};
}

static void judge_by_model(void *context, const uint16_t *genes, struct tun_fitness *ret)
{
    struct run *r = context;

    judge(r, &r->told, genes, ret);
}

/* Takes a point into the front that was found. Return: 0 or -ENOMEM. */
static int keep(struct run *r, const double *point)
{
    struct psim_trace *t = &r->trace;
    size_t kept = 0;

    for (size_t i = 0; i < t->front_count; i++) {
        const double *other = t->front + i * 3;

        if (other[0] <= point[0] && other[1] <= point[1] && other[2] <= point[2]) {
            return 0;
        }
    }
    for (size_t i = 0; i < t->front_count; i++) {
        const double *other = t->front + i * 3;

        if (!(point[0] <= other[0] && point[1] <= other[1] && point[2] <= other[2])) {
            memmove(t->front + kept++ * 3, other, 3 * sizeof(*other));
        }
    }
    t->front_count = kept;
    if (!base_room(&t->front, 3 * sizeof(*t->front), kept, &r->front_room)) {
        return -ENOMEM;
    }
    memcpy(t->front + t->front_count++ * 3, point, 3 * sizeof(*point));
    return 0;
}

/* Fills the samples up to a time. */
static int sample(struct run *r, double hour)
{
    struct psim_trace *t = &r->trace;
    double best[3], volume = 0;
    size_t end = base_min(psim_trace_at(r->d, hour) + 1, (size_t)PSIM_SAMPLES);
    int error;

    if (r->sampled >= end) {
        return 0;
    }
    best_of(t->front, t->front_count, best);
    error = tun_hypervolume(t->front, t->front_count, r->d->limit, &volume);
    for (; !error && r->sampled < end; r->sampled++) {
        for (size_t k = 0; k < base_array_count(best); k++) {
            t->found[k][r->sampled] = best[k];
        }
        t->found[PSIM_VOLUME][r->sampled] = volume / r->d->front_volume;
    }
    return error;
}

static int drive(struct run *r, struct tun_staged *s, struct tun_random *random)
{
    double hour = 0;
    const struct tun_individual *all;
    const uint16_t *genes;
    size_t count;
    int result = 0;

    while (!result && (result = tun_staged_ask(s, random, &genes)) == 0) {
        struct tun_fitness fitness;

        judge(r, &r->d->truth, genes, &fitness);
        result = sample(r, hour);
        hour += r->d->evaluation_s / SECONDS_PER_HOUR;
        result = result ? result : keep(r, fitness.objective);
        r->trace.evaluations++;
        tun_staged_tell(s, &fitness, false, false);
    }
    tun_staged_seeds(s, &r->trace.begun_with);
    all = tun_staged_parents(s, &count);
    for (size_t i = 0; i < count; i++) {
        r->trace.ended_with += all[i].rank == 0;
    }
    return result == TUN_STAGED_DONE ? sample(r, 2 * r->d->hours) : result;
}

int psim_dse_run(const struct psim_dse *d, enum psim_experiment e, uint64_t seed,
                 struct psim_trace *ret)
{
    struct run r = {.d = d, .encoding = e == PSIM_1S_NE ? TUN_ENCODING_NE : TUN_ENCODING_SPE};
    struct tun_random random = {seed};
    const struct tun_staged_options options = {
        .encoding = r.encoding,
        .units = d->truth.unit_count,
        .places = d->truth.ep_count,
        .stages = e == PSIM_3S_2L_SPE ? 0 : 1,
        .objective_count = 3,
        .questions_max = (size_t)(d->hours * SECONDS_PER_HOUR / d->evaluation_s),
        .early = d->early,
        .model = e == PSIM_3S_2L_SPE ? judge_by_model : NULL,
        .model_generations = PSIM_MODEL_GENERATIONS,
        .context = &r};
    struct tun_staged *s = NULL;
    int error = tun_problem_copy(&d->truth, &r.told);

    r.places = calloc(d->truth.unit_count, sizeof(*r.places));
    if (!error) {
        psim_err(&r.told, d->sigma, &random);
        error = r.places ? tun_staged_new(&options, &s) : -ENOMEM;
    }
    error = error ? error : drive(&r, s, &random);
    tun_staged_free(s);
    tun_problem_deinit(&r.told);
    free(r.places);
    if (error) {
        psim_trace_deinit(&r.trace);
        return error;
    }
    *ret = r.trace;
    return 0;
}

void psim_trace_deinit(struct psim_trace *t)
{
    free(t->front);
    *t = (struct psim_trace){0};
}

size_t psim_trace_at(const struct psim_dse *d, double hour)
{
    double at = hour / d->hours * (PSIM_SAMPLES - 1);

    return at < PSIM_SAMPLES - 1 ? (size_t)(at + 1e-9) : PSIM_SAMPLES - 1;
}

struct psim_spread psim_spread(const struct psim_dse *d, const struct psim_trace *traces,
                               size_t count, enum psim_figure figure, double hour)
{
    struct psim_spread s = {INFINITY, 0, -INFINITY};
    size_t at = psim_trace_at(d, hour);

    for (size_t i = 0; i < count; i++) {
        double v = traces[i].found[figure][at];

        s.least = base_min(s.least, v);
        s.most = base_max(s.most, v);
        s.mean += v / (double)count;
    }
    return s;
}
