/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt.h - watches a serving plan and says when to decide, and what holds a decision back
 *
 *     tun_adapt_init(&a, &options);
 *     tun_adapt_serve(&a, &problem, &plan, kinds, now);        a plan serves, with its cost table
 *     every window:
 *         switch (tun_adapt_observe(&a, &window, &record)) {
 *         case TUN_ADAPT_DECIDE: tun_decide(&record, &decision);       any thread, milliseconds
 *             ...switch to decision.plan if decision.replan...
 *             tun_adapt_decided(&a, &record, &decision, switched, now); break;
 *         case TUN_ADAPT_BACK: ...switch to *tun_adapt_before(&a)...
 *             tun_adapt_went_back(&a, switched, now); break;
 *         }
 *
 * Every group of teams of the plan has a detector (tuner/detect.h) on log(measured / expected)
 * service time, expected at the present frequency. Asked for are decisions when: cores came or
 * went; a line asks; a frequency is another one (the median of three readings, by 3 %); a detector
 * is firm; a plan, settled, does otherwise than predicted by more than verify_margin (the plan of
 * before that returned: TUN_FREE). A team that
 * was starved in a window, or had no frame, gives no sample; nor do the first windows of a plan.
 *
 * Guards. Two changes are a cool-down apart, doubled for every A-B-A-B and
 * for every third change in a row whose cause is known from measurements alone, where changes
 * are less than TUN_CALM cool-downs apart, and for every plan that had to be taken back; halved for
 * each calm change. Until it is doubled twice (one plan that had to be taken back is no pattern), a
 * plan that gains gain_urgent does not wait for it. From then on what measurements alone say has to
 * stand for as long as the cool-down, without a break, to be decided on: what comes and goes more
 * often is lived with. A bucket of `hourly` changes refills over an hour. Neither holds back a plan
 * where the old one does not fit any more, or the button. After a change the first window is left
 * out, `settle` windows are measured, and the plan before returns if the bottleneck is worse than
 * predicted by more than verify_margin and worse than what the plan before would do. A level that
 * led to no change is the level from then on, but counts in the next decision: drifts add up.
 *
 * A kind that is contended and on which only light teams run looks free while it is not: a quota
 * lets a little work pass, and so does a scheduler. When such a team gets as fast as if the kind
 * were free, or is so from the start and probe_ns are over, that is tried as below.
 *
 * A kind whose costs were raised and on which nothing runs any more cannot be seen
 * to recover: after probe_ns it is taken to be free (TUN_EVENT_PROBE), twice as late each time. A
 * probe that fails leaves the factors as they were before it. The plan that served last while no
 * factor was above 1 by more than an error of the table (8 %) is the one to return to (home of the
 * record).
 *
 * beta of units is learned: when a kind's frequency changes by 10 % and its teams then differ by x
 * from what beta says, beta moves by half of x / log(khz_before / khz_now), within 0..1.
 *
 * Time comes in as an argument; it may jump. No thread, file or clock; one thread at a time.
 */
#pragma once

#include "tuner/decide.h"

#define TUN_CALM 8u

struct tun_adapt_options {
    struct tun_detect_options detect;
    double gain_min;      /* relative, of a new plan */
    double gain_urgent;   /* relative; a plan that gains as much does not wait; 0: every one does */
    uint64_t cooldown_ns; /* between changes */
    double hourly;        /* changes an hour at most, those of guards' exceptions included */
    double verify_margin; /* relative, measured against predicted */
    unsigned settle;      /* windows that say what a plan does, >= 1 */
    unsigned backoff_most; /* doublings of the cool-down at most */
    uint64_t probe_ns;     /* 0: never */
};
#define TUN_ADAPT_DEFAULTS                                                                         \
    ((struct tun_adapt_options){.detect = TUN_DETECT_DEFAULTS,                                     \
                                .gain_min = 0.03,                                                  \
                                .gain_urgent = 0.25,                                               \
                                .cooldown_ns = 5000000000ull,                                      \
                                .hourly = 30,                                                      \
                                .verify_margin = 0.1,                                              \
                                .settle = 8,                                                       \
                                .backoff_most = 6,                                                 \
                                .probe_ns = 5000000000ull})

/* A kind of core as the governor reports it. */
struct tun_kind_seen {
    uint16_t cores;        /* there and allowed */
    uint64_t governor;     /* tun_name_id() of its name, 0: unknown */
    double khz, limit_khz; /* current and scaling_max_freq, 0: unknown */
    double hardware_khz;   /* cpuinfo_max_freq, 0: unknown */
    bool thermal;          /* a cooling state or thermal pressure stands */
    uint64_t throttles;    /* a counter that only grows, 0: unknown */
};

struct tun_team_seen { /* one group of teams in one window; means over its frames */
    uint16_t stage, group;
    uint64_t frames;
    double service_ns;
    double cpu_ns; /* of the leader; < 0: unknown */
    double busy;   /* share of the window in which its teams held frames, 0..1; 0: unknown */
    bool starved;  /* it waited for input for more than half of the window */
};

struct tun_seen_window {
    uint64_t start_ns, now_ns;
    const struct tun_kind_seen *kinds; /* [kind_count of the problem] */
    const struct tun_team_seen *teams; /* [team_count], any order; missing ones gave no sample */
    size_t team_count;
    unsigned events;            /* TUN_EVENT_* but PROBE, since the last window */
    double throttled, pressure; /* as in struct tun_record */
};

struct tun_adapt; /* opaque */

/** tun_adapt_new() - @o: NULL: defaults. Return: 0, -EINVAL (options), -ENOMEM. */
int tun_adapt_new(const struct tun_adapt_options *o, struct tun_adapt **ret);
struct tun_adapt *tun_adapt_free(struct tun_adapt *a);

/**
 * tun_adapt_serve() - a plan from outside serves: at the start, after a request or a search
 * @p: copied; every cost known, for the frequencies in @kinds and nothing else running. Factors and
 * levels begin anew, the guards and learned betas (of an equal number of units) stay.
 * Return: 0, -EINVAL, -ENOMEM (then nothing is watched).
 */
int tun_adapt_serve(struct tun_adapt *a, const struct tun_problem *p, const struct pl_plan *plan,
                    const struct tun_kind_seen *kinds, uint64_t now_ns);

enum tun_adapt_asks { TUN_ADAPT_NOTHING, TUN_ADAPT_DECIDE, TUN_ADAPT_BACK };
/**
 * tun_adapt_observe() - one window
 * @ret: set with TUN_ADAPT_DECIDE, owned by the caller (tun_record_deinit); until
 * tun_adapt_decided() nothing else is asked. Return: enum tun_adapt_asks, or -ENOMEM (ask again in
 * the next window). Does not solve: microseconds.
 */
int tun_adapt_observe(struct tun_adapt *a, const struct tun_seen_window *w, struct tun_record *ret);

/** tun_adapt_decided() - @d: of @r; NULL: it failed. @switched: decision.plan serves now. Return: 0
 * or -ENOMEM (then nothing is watched until tun_adapt_serve()). */
int tun_adapt_decided(struct tun_adapt *a, const struct tun_record *r, const struct tun_decision *d,
                      bool switched, uint64_t now_ns);

/** tun_adapt_before() - the plan to return to after TUN_ADAPT_BACK; borrowed. */
const struct pl_plan *tun_adapt_before(const struct tun_adapt *a);
/** tun_adapt_went_back() - as tun_adapt_decided(). */
int tun_adapt_went_back(struct tun_adapt *a, bool switched, uint64_t now_ns);

/* What can be told about one group of teams. */
struct tun_watch_view {
    uint16_t stage, group;
    double expected_ns, level, sigma;
    enum tun_change change;
    bool firm, settled;
    uint64_t since_ns; /* of a change */
};
/** tun_adapt_watch() - @index: 0..; Return: false past the last one. */
bool tun_adapt_watch(const struct tun_adapt *a, size_t index, struct tun_watch_view *ret);
/** tun_adapt_cooldown_ns() - the present one, back-off included. */
uint64_t tun_adapt_cooldown_ns(const struct tun_adapt *a);
/** tun_adapt_beta() - what was learned of a unit; TUN_BETA_UNKNOWN where there is none. */
double tun_adapt_beta(const struct tun_adapt *a, size_t unit);

/** tun_name_id() - FNV-1a of a name, never 0 but for "". */
uint64_t tun_name_id(const char *name);
/** tun_state_id() - names a state of the machine that plans are kept for: governor, cores, limit
 * (else current frequency) in steps of 5 % of each kind, and the cgroup's quota in steps of 0.1
 * cores (@quota_cores 0: none). Never 0. */
uint64_t tun_state_id(const struct tun_kind_seen *kinds, size_t kind_count, double quota_cores);
