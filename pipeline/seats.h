/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/seats.h - the cores of a machine, on which teams of all models take turns
 *
 * A *seat* is a core; every model is a *client*. A team sits down on all of its cores at once
 * before it computes, and gets up when no frame waits for it. Between two units it gets up for
 * another one that goes before it, and sits down again after that. So at most one team computes on
 * a core, and nobody waits for more than one unit of whoever goes after him.
 *
 * Of those who wait for a core, the first is whose model has the highest class; in a class, whose
 * frame is due first, and frames that are due before all others; of frames that are not, whose fair
 * tag is lowest; of equal tags, the oldest frame. The tag is the virtual time of that core in which
 * the frame would end, or its next 20 ms, if its model m went on now:
 *
 *     tag = v_m + min(left, 20 ms) / weight_m,    v_m += time / weight_m while a team of m sits
 *
 * with left what the frame still takes. A team that begins to wait on a core is there at most 20 ms
 * behind the lowest v of the others, as who paused has little to catch up (start-time fair
 * queueing: P. Goyal, H. Vin, H. Cheng, IEEE/ACM Trans. Networking 5, 1997; the order is that of
 * weighted fair queueing: A. Demers, S. Keshav, S. Shenker, SIGCOMM 1989). So models that wait
 * share each core by weight, and one that asks for little is served soon.
 *
 * If a model's claim has a period, its frames are released so far apart on average, but as soon as
 * they come as long as they are at most a second ahead of that, since frames often come in groups
 * (the generic cell rate algorithm, ITU-T I.371), and at most a period for each frame in flight
 * later than they come. Before its release a frame is computed only if nobody else wants the core.
 *
 * Nobody starves: who waits while a higher class wants his core, or without a deadline while models
 * with one do, for longer than 1 / floor times his next unit, runs one unit before all others, and
 * so does the next one as long after that. They so take at most the floor of a core, and one unit.
 *
 * One lock guards everything; a team takes it when it sits down, gets up, or was asked to look. One
 * model alone under load never takes it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/base.h"

#define PL_SEAT_MAX 256u /* kernel CPU numbers below it */
#define PL_CLASS_MAX 7u
#define PL_EARLY_NS BASE_NS_PER_S /* that frames may come sooner than the period says */
#define PL_WEIGHT_MIN 0.001
#define PL_WEIGHT_MAX 1000.0

/* What a model is to have of the seats. */
struct pl_claim {
    unsigned class;       /* 0 .. PL_CLASS_MAX, a higher one goes first */
    double weight;        /* of those in a class; > 0 */
    double max_share;     /* of all cores' time, at most; 0 < x <= 1 */
    uint64_t deadline_ns; /* of each frame, from its release; 0: none */
    uint64_t period_ns;   /* frames are released at least so far apart, if there is a deadline */
};
#define PL_CLAIM_NULL ((struct pl_claim){.weight = 1, .max_share = 1})

struct pl_seats;

/* A model. */
struct pl_client {
    struct pl_seats *seats; /* borrowed; NULL: none, teams then compute when they like */
    struct pl_claim claim;  /* guarded by the seats' lock */
    double v[PL_SEAT_MAX];  /* as above, ns, by core; guarded */
    size_t active;          /* its teams that sit or wait; guarded */
    uint64_t paid_ns;       /* until then it has used its max_share; guarded */
    uint64_t next_ns; /* loop's own: when its next frame would come, a period after the last */
};

/* What a team wants to compute. */
struct pl_want {
    uint64_t due_ns;      /* 0: never */
    uint64_t number;      /* of the frame */
    uint64_t released_ns; /* 0: at once */
    double left_ns;       /* time that it still takes, as expected; 0: unknown */
    double unit_ns;       /* of its next unit, or piece of one, as expected; 0: unknown */
};

/* A team. Writers: the team, and whoever holds the seats' lock. */
struct pl_sitter {
    /* set before its thread starts, then constant */
    struct pl_client *client; /* borrowed; NULL: no seats */
    const uint16_t *cpus;     /* borrowed; [width] */
    size_t width;
    /* guarded by the lock */
    struct pl_want want;
    uint64_t since_ns;     /* it waits since then, or it sits and v has been charged until then */
    unsigned class, level; /* level: of starving */
    bool seated, waits;    /* the team may read them without the lock while it does not wait */
    unsigned walk;         /* of pl_seats, the last one that looked at it */
    TAILQ_ENTRY(pl_sitter) next;  /* of those that sit, or of those that wait */
    struct pl_sitter *next_woken; /* until it is woken */
    bool leaves;

    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic bool asked; /* writers: under the lock */
    _Atomic uint64_t waited_ns; /* for seats, so far. Writer: the team; relaxed */
    _Atomic uint32_t asleep;    /* futex word. Writers: the team sets it, who wakes it clears it */
};

/** pl_seats_new() - @cores: of the machine, that clients may use. @floor: of a core's time for
 * classes that would starve; 0: none. Return: owned, pl_seats_free(); NULL: out of memory. Threads:
 * any one. */
struct pl_seats *pl_seats_new(size_t cores, double floor);
/** pl_seats_free() - nobody sits or waits. Accepts NULL. Return: NULL. */
struct pl_seats *pl_seats_free(struct pl_seats *s);

/** pl_client_init() - @c: until pl_seats_free() or its teams have ended. @seats: NULL: none.
 * Threads: the loop, as below. */
void pl_client_init(struct pl_client *c, struct pl_seats *seats);
/** pl_client_claim() - from now on. */
void pl_client_claim(struct pl_client *c, const struct pl_claim *claim);
/** pl_client_release() - a frame that came at @came_ns is let in. @in_flight: of its model, before
 * it. Return: when it is released, as above; the claim's deadline counts from then. So whoever
 * sends too many is late himself, and makes nobody late. */
uint64_t pl_client_release(struct pl_client *c, uint64_t came_ns, uint64_t now_ns,
                           size_t in_flight);

/** pl_sit() - sits down on all of its cores, when it is the team's turn; one that sits gets up
 * first for who goes before it. Threads: the team's leader, as below. Return: false: it has to end
 * (pl_sit_cancel()), and does not sit. */
bool pl_sit(struct pl_sitter *s, const struct pl_want *want);
/** pl_sit_asked() - Return: somebody waits for one of its cores. Threads: the leader of a team that
 * sits, between two units. */
static inline bool pl_sit_asked(const struct pl_sitter *s)
{
    return atomic_load_explicit(&s->asked, memory_order_relaxed);
}
/** pl_sit_late() - Return: another team goes before this one, which sits: it is to pl_sit() again.
 */
bool pl_sit_late(struct pl_sitter *s, const struct pl_want *want);
/** pl_rise() - gets up, if it sits. Return: another one wants one of its cores. */
bool pl_rise(struct pl_sitter *s);
/** pl_sit_cancel() - no wait for a seat begins or lasts any more. Threads: the loop. */
void pl_sit_cancel(struct pl_sitter *s);
/** pl_sit_others() - Return: how many teams sit or wait on one of its cores, the most crowded one.
 * @with_it: it does itself, and does not count. Threads: any; what it says is old at once. */
uint32_t pl_sit_others(const struct pl_sitter *s, bool with_it);
/** pl_sit_waits() - Return: it waits for a seat. Threads: any. */
static inline bool pl_sit_waits(const struct pl_sitter *s)
{
    return atomic_load_explicit(&s->asleep, memory_order_relaxed) != 0;
}
