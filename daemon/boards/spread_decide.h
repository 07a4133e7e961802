/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_decide.h - when a model's route is sought again, and when it changes
 *
 * A board that comes back must stay for a while (dwell) before it is planned for, longer each time
 * it goes away again. The same holds for a board or link that piped-link says a route failed at,
 * although it is there. A board that is seen for the first time waits a moment for the others.
 *
 * A route is sought again at once when the present one is broken; else, when boards came or costs
 * or links changed, after a cool-down since the last change. Two corrections by what the boards
 * measured may follow a change soon. A new route must gain more than DMN_DECIDE_GAIN, and more than
 * DMN_DECIDE_MOVE_GAIN if boards must load other segments for it. If no board came or went, such a
 * gain must be found once more after DMN_DECIDE_SUSTAIN_NS: of many routes judged by noisy costs,
 * the best one looks better than it is.
 *
 * Pure: times are given. Threads: the loop thread.
 */
#pragma once

#include "daemon/boards/spread_hops.h"

#define DMN_DECIDE_GAIN 0.03
#define DMN_DECIDE_MOVE_GAIN 0.1 /* if boards must load other segments: that takes their time */
#define DMN_DECIDE_FIRST_NS UINT64_C(1000000000) /* a board that is new */
#define DMN_DECIDE_DWELL_NS UINT64_C(5000000000) /* one that is back; doubled for each loss */
#define DMN_DECIDE_DWELL_MOST_NS UINT64_C(300000000000)
#define DMN_DECIDE_MEMORY_NS UINT64_C(600000000000) /* losses and changes are counted for so long */
#define DMN_DECIDE_EVENT_NS UINT64_C(2000000000)    /* what is told twice within it is one loss */
#define DMN_DECIDE_COOLDOWN_NS UINT64_C(10000000000)
#define DMN_DECIDE_CORRECT_NS UINT64_C(2000000000) /* instead, for corrections */
#define DMN_DECIDE_CORRECTIONS 2u
#define DMN_DECIDE_SUSTAIN_NS UINT64_C(10000000000) /* a gain by costs or links must last so long */
#define DMN_DECIDE_PREPARE_NS UINT64_C(60000000000) /* a route that is prepared is left alone */
#define DMN_DECIDE_CHANGES 8u

#define DMN_SIGNS_MAX 1024u
#define DMN_SIGN_COSTS 0.1 /* relative changes that count */
#define DMN_SIGN_LINKS 0.25

/* Costs and links when a route was sought: rows of the head's table and of the past, and links of
 * the usable boards, for a message of the model's mean border. */
struct dmn_signs {
    size_t count;
    struct {
        uint64_t key;
        double value;
        bool link;
    } sign[DMN_SIGNS_MAX];
};

/* How often something was lost, and since when it is there. */
struct dmn_steady {
    bool there;
    unsigned losses;
    uint64_t since_ns, lost_ns;
};

struct dmn_decide {
    size_t board_count, gap_count;
    struct {
        char print[BRD_FINGERPRINT_BYTES];
        struct dmn_steady steady;
    } board[BRD_MAX];
    struct {
        struct dmn_spread_gap at;
        struct dmn_steady steady;
    } gap[DMN_SPREAD_GAPS];
    struct dmn_steady routes; /* failures that no board is to blame for */
    uint32_t blamed;          /* number of the route whose failure was taken in; 0: none */
    uint64_t change_ns[DMN_DECIDE_CHANGES]; /* the newest, newest first; 0: none */
    unsigned corrections;                   /* since a board came or went */
    uint64_t gain_ns;                       /* a gain that has to last was found then; 0: none */
    bool sought;                            /* .signs and .used are of the last search */
    bool used[BRD_MAX];                     /* by .board */
    struct dmn_signs signs;
};

/* The route that is wanted now; borrowed. */
struct dmn_present {
    const struct brd_hop *hop;
    size_t hop_count;                    /* 0: the head alone */
    const struct brd_route_state *state; /* of just this route; NULL: piped-link has not told */
};

enum dmn_due {
    DMN_DUE_NOT,
    DMN_DUE_BROKEN, /* the present route: now */
    DMN_DUE_BOARDS, /* others than when a route was sought last */
    DMN_DUE_LINKS,
    DMN_DUE_COSTS,
};

void dmn_decide_init(struct dmn_decide *d);
/** dmn_decide_away() - piped-link is away: no board can be used, and none is to blame. */
void dmn_decide_away(struct dmn_decide *d);
/** dmn_decide_see() - takes in who is there and what failed. */
void dmn_decide_see(struct dmn_decide *d, const struct brd_link_report_all *r,
                    const struct dmn_present *now, uint64_t now_ns);
/** dmn_decide_usable() - who may be planned for now. Return: how many boards. */
size_t dmn_decide_usable(const struct dmn_decide *d, const struct brd_link_report_all *r,
                         uint64_t now_ns, struct dmn_spread_may *ret);
/** dmn_decide_due() - is a route to be sought? @in: with what dmn_decide_usable() says. */
enum dmn_due dmn_decide_due(const struct dmn_decide *d, const struct dmn_spread_inputs *in,
                            const struct dmn_present *now, uint64_t now_ns);
/** dmn_decide_broken() - Return: the route sends frames to a board, or over a link, that is not
 * there, or piped-link says that it failed. */
bool dmn_decide_broken(const struct dmn_spread_inputs *in, const struct dmn_present *now);
/** dmn_decide_sought() - a route is being sought with these inputs. */
void dmn_decide_sought(struct dmn_decide *d, const struct dmn_spread_inputs *in);
/** dmn_decide_sustained() - a search because of @why found a gain, or none. @moves: as for
 * dmn_decide_worth(). Return: it has lasted long enough, or need not last. */
bool dmn_decide_sustained(struct dmn_decide *d, enum dmn_due why, bool gain, bool moves,
                          uint64_t now_ns);
/** dmn_decide_changed() - the wanted route changed. */
void dmn_decide_changed(struct dmn_decide *d, enum dmn_due why, uint64_t now_ns);

enum dmn_worth { DMN_KEEP, DMN_TAKE_ROUTE, DMN_TAKE_NONE };
/**
 * dmn_decide_worth() - which way to serve pays
 * @p: objective and bounds. @best: the new route. @present: the present one; not possible: broken,
 * or there is none. @alone: the head alone. @spread: there is a present route. @moves: boards must
 * load other segments than those of the present route.
 */
enum dmn_worth dmn_decide_worth(const struct tun_problem *p, const struct dmn_figures *best,
                                const struct dmn_figures *present, const struct dmn_figures *alone,
                                bool spread, bool moves);
