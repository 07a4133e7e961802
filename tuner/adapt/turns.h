/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/turns.h - which of two plans is better: they serve in turns until the answer is sure,
 * and the one that lost is remembered
 *
 * The plan that served so far, the incumbent A, and another one, B, serve windows in the order
 *     A B  B A  A B  B A ...
 * Each pair of neighbouring windows gives x = log(time per frame of A / of B): above 0, B is
 * faster. What changes slowly hits both windows of a pair; a trend cancels out over two pairs. From
 * five pairs on, the one farthest from the median is left out: a burst of another program hit it.
 *
 * With n pairs, mean m and S = sum (x - m)^2 + (n - 1) floor^2, the interval m -+ h,
 *     h^2 = (n + c) b S / (n (n - (n + c) b)),   b = 1 - (alpha^2 c / (n + c))^(1/n),
 * holds the true mean for every n at once with probability 1 - alpha, whatever the spread: the
 * t-test's confidence sequence with a mixture over effect sizes of variance 1/c (Wang and Ramdas,
 * Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance, 2024,
 * theorem 4.9; h is infinite where the root is not real). So it may be looked at after every pair.
 *
 * - better: the interval of `alpha` is above 0, and the turns have gone on for time_least_ns, so
 *   that what made B better lasts;
 * - ended: what made B better is over: A serves a window in less than 1/1.3 of the time per frame
 *   of the fastest of at least two before, or of before_ns, unless A is to return, or is still
 *   slower than B by more than that (than challenger_ns before the first pair); or B was slower by
 *   5 % in the last two pairs, and faster before;
 * - worse: the interval of `alpha_worse`, narrower as a refusal needs no proof, is below the gain
 *   that is asked for; or from pairs_least pairs on m + 1.28 sqrt(S / ((n - 1) n)) is, so that
 *   plans which are as good as each other do not go on for long; or B was slower by 5 % in the last
 *   two pairs, and not faster before;
 * - undecided: neither, after pairs_most pairs, or after time_most_ns and pairs_least pairs. Then B
 *   is better all the same where it was 1.3 times as fast and the interval of `alpha_worse` is
 *   above 0: a slow A leaves no time for more.
 *
 * The caller keeps the incumbent unless B is better.
 *
 * Where the reason of the serving plan is gone, and the plan from before is to return (`returns`),
 * the serving one has to prove that it is better: it is B, and unless it is, the verdict is that
 * the challenger, which is A, is better. What is asked and told is of incumbent and challenger.
 *
 * Pure; one thread at a time; no allocation.
 */
#pragma once

#include "tuner/problem.h"

#define TUN_TURNS_MAX 32u /* pairs */

struct tun_turns_options {
    double alpha, alpha_worse;        /* 0 < alpha <= alpha_worse < 1 */
    double gain;                      /* relative, >= 0 */
    double floor;                     /* least spread of x, > 0 */
    double c;                         /* > 0 */
    unsigned pairs_least, pairs_most; /* 2 <= least <= most <= TUN_TURNS_MAX */
    uint64_t time_least_ns, time_most_ns;
    bool returns;         /* the challenger is the plan from before; false as a rule */
    double before_ns;     /* time per frame of the incumbent just before the turns; 0: unknown */
    double challenger_ns; /* what is expected of the challenger; 0: unknown */
};
#define TUN_TURNS_DEFAULTS                                                                         \
    ((struct tun_turns_options){.alpha = 0.05,                                                     \
                                .alpha_worse = 0.2,                                                \
                                .gain = 0.03,                                                      \
                                .floor = 0.01,                                                     \
                                .c = 0.01,                                                         \
                                .pairs_least = 4,                                                  \
                                .pairs_most = 24,                                                  \
                                .time_least_ns = 1000000000ull,                                    \
                                .time_most_ns = 6000000000ull})

enum tun_verdict {
    TUN_TURNS_OPEN,
    TUN_TURNS_BETTER,
    TUN_TURNS_WORSE,
    TUN_TURNS_ENDED,
    TUN_TURNS_UNDECIDED
};

struct tun_turns {
    struct tun_turns_options options;
    double pairs[TUN_TURNS_MAX]; /* x */
    size_t count;
    double first_ns;  /* time per frame in the first window of the open pair; 0: none yet */
    size_t windows;   /* of A */
    double least_ns;  /* of these */
    double sum_ns[2]; /* of the windows of A and of B, for what is reported */
    uint64_t began_ns, now_ns;
    enum tun_verdict verdict;
};

/** tun_turns_begin() - @o: within the ranges above; checked. @now_ns: on any clock. Return: 0 or
 * -EINVAL. */
int tun_turns_begin(struct tun_turns *t, const struct tun_turns_options *o, uint64_t now_ns);

/** tun_turns_challenger() - Return: the next window is the challenger's. */
bool tun_turns_challenger(const struct tun_turns *t);

/** tun_turns_add() - a window of the plan that was due. @ns: time per frame; not above 0, or not
 * finite: nothing could be measured, and the pair begins anew. Return: the verdict. */
enum tun_verdict tun_turns_add(struct tun_turns *t, double ns, uint64_t now_ns);

/* What the turns show, for people. */
struct tun_turns_shown {
    size_t pairs;
    double ratio;     /* frames a second of the challenger over those of the incumbent */
    double low, high; /* the interval of alpha; 0 and INFINITY: nothing is known yet */
    double incumbent_ns, challenger_ns; /* mean time per frame; 0: none */
};
void tun_turns_show(const struct tun_turns *t, struct tun_turns_shown *ret);

/* By enum tun_verdict: "open", "better", "worse", "ended", "undecided". */
extern const char *const tun_verdict_names[];

/* ---- plans that were not better than another one, and the machine of that moment ----
 *
 * A plan that lost the turns is not tried again instead of the same plan
 * until the machine differs clearly. The machine is one figure for each EP: the mean over units of
 * the log of what a unit costs on one core, by the table corrected for frequencies and slowdowns. A
 * difference of TUN_LOST_CLEAR in one of them, or another set of EPs or cores, is clear.
 * Zeroed: nothing has lost. */

#define TUN_LOST_MAX 8u          /* the oldest is forgotten first */
#define TUN_LOST_CLEAR 0.1397619 /* log(1.15) */

struct tun_lost {
    size_t at, count;
    struct tun_lost_pair {
        struct pl_plan kept, lost;
        size_t ep_count;
        uint16_t cores[PL_EP_MAX];
        double level[PL_EP_MAX];
    } pairs[TUN_LOST_MAX];
};

/** tun_cost_level() - Return: the figure of an EP: the mean over units of the log of their cost. */
double tun_cost_level(const struct tun_problem *p, size_t ep);
/** tun_lost_add() - @lost was not better than @kept. @now: the corrected problem; plans are of its
 * EPs. */
void tun_lost_add(struct tun_lost *l, const struct tun_problem *now, const struct pl_plan *kept,
                  const struct pl_plan *lost);
/** tun_lost_has() - Return: @challenger lost against @incumbent on a machine like @now. */
bool tun_lost_has(const struct tun_lost *l, const struct tun_problem *now,
                  const struct pl_plan *incumbent, const struct pl_plan *challenger);
