/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/dse.h - the three experiments of the hierarchical DSE, with simulated time
 *
 * 1s-NE and 1s-SPE judge every mapping on the boards; 3s-2l-SPE judges by a model first. A mapping
 * takes `evaluation_s` on the boards and nothing in the model. On the boards a mapping has the
 * figures of psim_mapping(); the model has a table of costs that is wrong by `sigma` for every unit
 * and EP.
 *
 * A place is an EP with all its cores. Objectives: time a frame, largest memory and largest energy
 * of a board. The hypervolume is measured within `limit`, twice the worst that the exact front has
 * in each of them.
 */
#pragma once

#include <stdio.h>

#include "tuner/pipesim/described.h"
#include "tuner/search/staged.h"

/* ---- what any mapping of units onto EPs should do, plan or not (mapping.c) ----
 *
 * The hierarchical DSE lets every layer run anywhere (its section 3.1), so that a place may be
 * left and come back to; a plan cannot say that. The formulas are those of tuner/eval_boards.h
 * with communication added: with a run the consecutive units of one EP, all its cores a team, and
 * a segment the consecutive runs of one board,
 *
 *     an EP's time     sum over its runs of T (tuner/eval.h)
 *     a board's time   its busiest EP's + for each of its segments h(in) + h(out)
 *     throughput       1 / the longest of these
 *     memory           sum over the board's segments of tun_segment_memory()
 *     energy           its EPs' times x cores x watts + link_watts x (h(in) + h(out))
 *
 * A mapping that is a plan has the figures of tun_eval(); a unit test compares them.
 */

struct psim_mapped {
    double bottleneck_ns, most_memory_bytes, most_energy_nj;
};

/** psim_places() - teams as places: EPs of one core that is as fast, and takes as much, as all of
 * the team's. @teams: [@count]. Return: 0; -EINVAL, more than PL_EP_MAX; -ENOMEM. */
int psim_places(const struct tun_problem *p, const struct pl_group *teams, size_t count,
                struct tun_problem *ret);

/** psim_mapping() - @places: [unit_count], the EP of each unit. @p: every cost known. Pure. */
void psim_mapping(const struct tun_problem *p, const uint16_t *places, struct psim_mapped *ret);

/**
 * psim_split_front() - the front of (time, largest memory, largest energy of a board) of all
 * mappings that SPE can say, by psim_mapping()'s formulas
 *
 * A program over boards in their order: labels of the first i units on the first b boards, merged
 * by the componentwise maximum; a label that another is no worse than in all three is dropped.
 * @p: all links equal; EPs in the order of their boards, one or two a board.
 * @may_cut: [unit_count], units that a place may begin with; NULL: any.
 * @ret: [*ret_count][3], owned by the caller. Return: 0, -EINVAL, -ENOMEM.
 */
int psim_split_front(const struct tun_problem *p, const bool *may_cut, double **ret,
                     size_t *ret_count);

/* ---- the experiments ---- */

enum psim_experiment { PSIM_1S_NE, PSIM_1S_SPE, PSIM_3S_2L_SPE, PSIM_EXPERIMENTS };
extern const char *const psim_experiment_names[PSIM_EXPERIMENTS];

/* What the paper does not say of 3s-2l-SPE: how long its stages are, and how many generations level
 * 1 has. With a fifth of the time for all stages but the last, and level 1 until it gains nothing
 * more, its claim of 40 hours holds (bench/results/searches.md). */
#define PSIM_EARLY 0.2
#define PSIM_MODEL_GENERATIONS 3000u

#define PSIM_SAMPLES 141u /* of a run, from 0 to its end */

struct psim_dse {
    struct tun_problem truth; /* owned */
    double hours, evaluation_s, sigma;
    double early;  /* 3s-2l-SPE: share of the hours before its last stage; 0: a third each */
    double *front; /* [front_count][3], the exact one of split points, owned */
    size_t front_count;
    double best[3]; /* of the exact front: most frames/s, least MB, least J */
    double front_volume, limit[3];
    double best_ns; /* bottleneck of the best of all plans, as tun_solve() finds it */
};

/** psim_dse_init() - @network, @platform: names; @nodes: every node is a unit (psim_network_nodes).
 * Return: 0 or -errno with @ret_error. */
int psim_dse_init(const char *network, bool nodes, const char *platform,
                  char ret_error[PSIM_ERROR_MAX], struct psim_dse *ret);
void psim_dse_deinit(struct psim_dse *d);

/* The figures of a mapping, and the share of the exact front's hypervolume. */
enum psim_figure { PSIM_FPS, PSIM_MEMORY_MB, PSIM_ENERGY_J, PSIM_VOLUME, PSIM_FIGURES };
extern const char *const psim_figure_names[PSIM_FIGURES]; /* "fps", ... */

/* What one run had found at each sample, the best of each figure; 0 until there is something. */
struct psim_trace {
    double found[PSIM_FIGURES][PSIM_SAMPLES];
    size_t evaluations;
    size_t begun_with, ended_with; /* the last stage: seeds, and mappings on its front at the end */
    double *front;                 /* [front_count][3]: the best of all, owned */
    size_t front_count;
};
int psim_dse_run(const struct psim_dse *d, enum psim_experiment e, uint64_t seed,
                 struct psim_trace *ret);
void psim_trace_deinit(struct psim_trace *t);

/** psim_trace_at() - the sample at an hour. */
size_t psim_trace_at(const struct psim_dse *d, double hour);

/* Of a figure at an hour, over the runs of several seeds. */
struct psim_spread {
    double least, mean, most;
};
struct psim_spread psim_spread(const struct psim_dse *d, const struct psim_trace *traces,
                               size_t count, enum psim_figure figure, double hour);
