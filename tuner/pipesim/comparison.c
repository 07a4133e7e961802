/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/comparison.h"

#include "tuner/solve/bound.h"

#define NEAR 1.5 /* Pipe-search, table 4: the first of its three ranges */

void psim_table_init(struct psim_table *t, const char *const *algorithms, size_t count)
{
    *t = (struct psim_table){.algorithm_count = base_min(count, (size_t)PSIM_ALGORITHMS_MAX)};
    memcpy(t->algorithms, algorithms, t->algorithm_count * sizeof(*algorithms));
}

void psim_table_deinit(struct psim_table *t)
{
    free(t->rows);
    *t = (struct psim_table){0};
}

/* One independent worker on every core: what a frame may take in the worst case. */
static double workers_latency_ns(const struct tun_problem *p)
{
    double worst = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        worst = base_max(worst, tun_team_ns(p, 0, p->unit_count - 1, k, 1));
    }
    return worst;
}

static void score(const struct psim_run *r, double workers_ns, struct psim_score *ret)
{
    double spent_ns = 0, near = 0;

    *ret = (struct psim_score){.ratio = r->bottleneck_ns / r->optimum_ns,
                               .latency_ratio = r->latency_ns / workers_ns,
                               .trials = (double)r->count,
                               .space = r->space,
                               .tuning_s = r->tuning_s,
                               .own_s = r->own_s};
    for (size_t i = 0; i < r->count; i++) {
        spent_ns += r->log[i].spent_ns;
        if (i == r->result) {
            ret->converge_s = r->own_s + spent_ns / 1e9;
        }
        near += r->log[i].measured.bottleneck_ns <= NEAR * r->optimum_ns;
    }
    ret->near = r->count ? near / (double)r->count : 0;
}

int psim_table_add(struct psim_table *t, const struct psim_network *network,
                   const struct psim_platform *platform, const struct tun_options *options,
                   char ret_error[PSIM_ERROR_MAX])
{
    struct tun_problem truth;
    struct psim_row *row;
    int error;

    if (t->row_count == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        struct psim_row *rows = realloc(t->rows, room * sizeof(*rows));

        if (!rows) {
            return -ENOMEM;
        }
        t->rows = rows;
        t->room = room;
    }
    error = psim_problem(network, platform, &truth);
    if (error) {
        snprintf(ret_error, PSIM_ERROR_MAX, "%s on %s: %s", network->name, platform->name,
                 strerror(-error));
        return error;
    }
    row = &t->rows[t->row_count];
    *row = (struct psim_row){.bound_ns = tun_bound_ns(&truth)};
    snprintf(row->network, sizeof(row->network), "%s", network->name);
    snprintf(row->platform, sizeof(row->platform), "%s", platform->name);
    for (size_t a = 0; a < t->algorithm_count && !error; a++) {
        struct psim_machine machine = psim_machine(&truth, options->seed);
        struct psim_run run;

        error = psim_run(t->algorithms[a], &truth, options, &machine, ret_error, &run);
        if (error == -EINVAL || error == -E2BIG) {
            row->scores[a].skipped = true;
            error = 0;
        } else if (!error) {
            row->optimum_ns = run.optimum_ns;
            score(&run, workers_latency_ns(&truth), &row->scores[a]);
            psim_run_deinit(&run);
        }
    }
    t->row_count += error == 0;
    tun_problem_deinit(&truth);
    return error;
}

size_t psim_table_column(const struct psim_table *t, const char *algorithm)
{
    for (size_t a = 0; a < t->algorithm_count; a++) {
        if (strcmp(t->algorithms[a], algorithm) == 0) {
            return a;
        }
    }
    return SIZE_MAX;
}

void psim_table_summary(const struct psim_table *t, size_t column, struct psim_summary *ret)
{
    struct psim_summary s = {0};
    double n;

    for (size_t r = 0; r < t->row_count; r++) {
        const struct psim_score *x = &t->rows[r].scores[column];

        if (x->skipped) {
            continue;
        }
        s.rows++;
        s.ratio += log(x->ratio);
        s.ratio_worst = base_max(s.ratio_worst, x->ratio);
        s.trials += x->trials;
        s.tuning_s += log(x->tuning_s);
        s.converge_s += log(x->converge_s);
        s.near += x->near;
        s.optimal += x->ratio <= 1.01;
    }
    n = base_max((double)s.rows, 1.0);
    s.ratio = exp(s.ratio / n);
    s.tuning_s = exp(s.tuning_s / n);
    s.converge_s = exp(s.converge_s / n);
    s.trials /= n;
    s.near /= n;
    s.optimal /= n;
    *ret = s;
}

void psim_table_print(const struct psim_table *t, FILE *to)
{
    fprintf(to, "%-23s %5s %7s %7s %8s %8s %9s %9s %6s\n", "algorithm", "rows", "ratio", "worst",
            "optimal", "trials", "tuning s", "found s", "near");
    for (size_t a = 0; a < t->algorithm_count; a++) {
        struct psim_summary s;

        psim_table_summary(t, a, &s);
        if (s.rows == 0) {
            fprintf(to, "%-23s %5d\n", t->algorithms[a], 0);
            continue;
        }
        fprintf(to, "%-23s %5zu %7.3f %7.2f %7.0f%% %8.1f %9.3g %9.3g %5.0f%%\n", t->algorithms[a],
                s.rows, s.ratio, s.ratio_worst, 100 * s.optimal, s.trials, s.tuning_s, s.converge_s,
                100 * s.near);
    }
}

void psim_table_print_rows(const struct psim_table *t, FILE *to)
{
    fprintf(to, "| network | machine | optimum ms | of bound |");
    for (size_t a = 0; a < t->algorithm_count; a++) {
        fprintf(to, " %s |", t->algorithms[a]);
    }
    fprintf(to, "\n| --- | --- | ---: | ---: |");
    for (size_t a = 0; a < t->algorithm_count; a++) {
        fprintf(to, " ---: |");
    }
    fprintf(to, "\n");
    for (size_t r = 0; r < t->row_count; r++) {
        const struct psim_row *row = &t->rows[r];

        fprintf(to, "| %s | %s | %.4g | %.3f |", row->network, row->platform, row->optimum_ns / 1e6,
                row->optimum_ns / row->bound_ns);
        for (size_t a = 0; a < t->algorithm_count; a++) {
            const struct psim_score *x = &row->scores[a];

            if (x->skipped) {
                fprintf(to, " - |");
            } else {
                fprintf(to, " %.3f (%.0f; %.3g s;", x->ratio, x->trials, x->tuning_s);
                if (x->space > 0) {
                    fprintf(to, " %.2g;", x->trials / x->space);
                }
                fprintf(to, " %.0f %%) |", 100 * x->near);
            }
        }
        fprintf(to, "\n");
    }
}
