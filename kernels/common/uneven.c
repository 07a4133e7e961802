/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/uneven.h"

#include <math.h>

#define PARTS_EACH 8u /* of a member, at least */
#define KEPT 0.875    /* of what was learned before */
#define HELD 2.0      /* times as long as expected: more is a core that was taken away */
#define IDLE_GAIN 1.02
#define SHORT_NS 250e3 /* a run that takes less is taken at once: to divide it costs more */
#define SOON_NS 2e3    /* nothing is learned from what takes less */
#define GAIN 0.95      /* of the present way's time: another one is faster */
#define PAUSE_LEAST 8u
#define PAUSE_MOST 512u
#define EQUAL 1.15     /* equal parts that take at most so much longer than the best division */
#define LATE_DONE 0.25 /* parts of a member that came too late for its run */
#define KEPT_BACK 4u   /* so much of a run that is not short is not taken at once */

/* Neighbouring parts. */
struct run {
    size_t begin, end;
};

/* The parts that the calling thread has to run now; parts 0: it is in no team of unequal cores. */
static _Thread_local struct {
    size_t part, end, parts, members;
    double share; /* of the work that these parts are */
    bool taken;   /* by krn_uneven_take() */
} now;

static _Thread_local size_t self; /* which member the thread is, from 1 on; 0: unknown */

void krn_uneven_self(size_t i)
{
    self = i + 1;
}

static _Thread_local struct krn_uneven *of_leader;

void krn_parallel_uneven(struct krn_uneven *team)
{
    of_leader = team;
}

struct krn_uneven *krn_uneven_team(void)
{
    return of_leader;
}

void krn_uneven_is(double share)
{
    now.share = share;
}

size_t krn_uneven_take(size_t part, size_t parts)
{
    if (now.parts != parts || now.part != part) {
        return 0;
    }
    now.taken = true;
    return now.end;
}

size_t krn_uneven_parts(size_t members)
{
    size_t parts = 2;

    while (parts < PARTS_EACH * members) {
        parts *= 2;
    }
    return parts;
}

size_t krn_uneven_members(size_t width)
{
    if (now.parts == width && now.members > 0) {
        return now.members;
    }
    return of_leader && width > 1 ? of_leader->members : width;
}

/* Shares of the work per ns; relative speeds if no member was measured. */
static void speeds_of(const struct krn_speed *speeds, size_t members, double *ret)
{
    double measured = 0, hinted = 0;

    for (size_t m = 0; m < members; m++) {
        const struct krn_speed *s = &speeds[m];

        if (s->ns > 0) {
            measured += s->done / s->ns;
            hinted += s->hint;
        }
    }
    for (size_t m = 0; m < members; m++) {
        const struct krn_speed *s = &speeds[m];

        ret[m] = s->ns > 0 ? s->done / s->ns : s->hint * (hinted > 0 ? measured / hinted : 1);
    }
}

/* No member's whole part of the parts by speed is above its part of the best division; those left
 * over go where they end first. */
static void divide(const double *speed, size_t members, size_t parts, size_t *ret)
{
    size_t given = 0;
    double all = 0;

    for (size_t m = 0; m < members; m++) {
        all += speed[m];
    }
    for (size_t m = 0; m < members; m++) {
        ret[m] = (size_t)((double)parts * speed[m] / all);
        given += ret[m];
    }
    for (; given < parts; given++) {
        size_t to = 0;

        for (size_t m = 1; m < members; m++) {
            if ((double)(ret[m] + 1) * speed[to] < (double)(ret[to] + 1) * speed[m]) {
                to = m;
            }
        }
        ret[to]++;
    }
    for (size_t m = 1; m < members; m++) {
        ret[m] += ret[m - 1];
    }
}

static struct krn_speed *speeds_in(const struct krn_uneven *u, size_t way, size_t call)
{
    return u->speeds + (way * KRN_UNEVEN_CALLS + call) * u->members;
}

void krn_uneven_first(struct krn_uneven *u)
{
    double speed[KRN_UNEVEN_MAX], sum = 0, least = INFINITY;

    speeds_of(u->speeds, u->members, speed);
    for (size_t m = 0; m < u->members; m++) {
        sum += speed[m];
        least = base_min(least, speed[m]);
    }
    u->way = sum <= EQUAL * least * (double)u->members ? KRN_UNEVEN_EVEN : KRN_UNEVEN_FINE;
    u->tried = u->way;
    u->left = u->pause = PAUSE_LEAST;
}

size_t krn_uneven_width(const struct krn_uneven *u)
{
    size_t parts = krn_uneven_parts(u->members);

    return (size_t[]){parts, parts / 2, u->members, 1}[u->tried];
}

/* Speeds that were learned in the present way are better than none. */
static void begin_trial(struct krn_uneven *u)
{
    u->left = KRN_UNEVEN_TRIAL;
    if (u->tried >= KRN_UNEVEN_SPEEDS || u->way >= KRN_UNEVEN_SPEEDS) {
        return;
    }
    for (size_t i = 0; i < KRN_UNEVEN_CALLS * u->members; i++) {
        if (speeds_in(u, u->tried, 0)[i].ns <= 0) {
            speeds_in(u, u->tried, 0)[i] = speeds_in(u, u->way, 0)[i];
        }
    }
}

void krn_uneven_took(struct krn_uneven *u, double ns)
{
    double *known = &u->ns[u->tried];
    uint8_t last = u->next;

    u->calls = 0;
    if (u->tried != u->way && u->left == KRN_UNEVEN_TRIAL) {
        *known = 0; /* caches and speeds are another way's */
    } else {
        *known = *known > 0 ? *known + (base_min(ns, 2 * *known) - *known) / 4 : ns;
    }
    if (--u->left > 0) {
        return;
    }
    if (u->tried != u->way) {
        if (u->ns[u->tried] < GAIN * u->ns[u->way]) {
            u->way = u->tried;
            u->pause = base_max(u->pause / 2, (uint32_t)PAUSE_LEAST);
        }
        u->tried = u->way;
        u->left = u->pause;
        return;
    }
    do {
        u->next = (u->next + 1) % KRN_UNEVEN_WAYS;
    } while (u->next == u->way);
    if (u->next <= last) {
        u->pause = base_min(4 * u->pause, (uint32_t)PAUSE_MOST);
    }
    u->tried = u->next;
    begin_trial(u);
}

static uint64_t range_of(size_t begin, size_t end)
{
    return (uint64_t)begin << 32 | end;
}

bool krn_uneven_begin(struct krn_uneven *team, size_t parts, void (*fn)(void *arg, size_t part),
                      void *arg, struct krn_uneven_job *ret)
{
    size_t ends[KRN_UNEVEN_MAX], begin = 0;

    ret->team = team;
    ret->speeds =
        speeds_in(team, team->tried, base_min(team->calls++, (uint32_t)KRN_UNEVEN_CALLS - 1));
    ret->fn = fn;
    ret->arg = arg;
    ret->parts = parts;
    speeds_of(ret->speeds, team->members, ret->speed);
    divide(ret->speed, team->members, parts, ends);
    for (size_t m = 0; m < team->members; m++) {
        atomic_store_explicit(&ret->runs[m].left, range_of(begin, ends[m]), memory_order_relaxed);
        ret->runs[m].given = ends[m] > begin;
        ret->runs[m].done = 0;
        ret->runs[m].share = 0;
        ret->runs[m].ns = 0;
        begin = ends[m];
    }
    ret->start_ns = base_now_ns();
    return ends[0] < parts;
}

/* Takes parts from a member's run, @most of them. The pool's end orders what the members write; the
 * exchange only says who has which part. Return: there were some. */
static bool take_own(struct krn_uneven_run *r, size_t most, struct run *ret)
{
    uint64_t left = atomic_load_explicit(&r->left, memory_order_relaxed);
    size_t begin, end, count;

    do {
        begin = (size_t)(left >> 32);
        end = (size_t)(uint32_t)left;
        if (begin >= end) {
            return false;
        }
        count = base_min(end - begin, most);
    } while (!atomic_compare_exchange_weak_explicit(&r->left, &left, range_of(begin + count, end),
                                                    memory_order_relaxed, memory_order_relaxed));
    *ret = (struct run){begin, begin + count};
    return true;
}

static size_t left_of(uint64_t left)
{
    size_t begin = (size_t)(left >> 32), end = (size_t)(uint32_t)left;

    return begin < end ? end - begin : 0;
}

/* What a member takes of its run: most of one that is not short, then half of what is left. */
static size_t next_of(const struct krn_uneven_job *j, size_t i, bool first)
{
    size_t n = left_of(atomic_load_explicit(&j->runs[i].left, memory_order_relaxed));

    if (!first || n < 2) {
        return base_max(n / 2, (size_t)1);
    }
    if ((double)n < j->speed[i] * (double)j->parts * SHORT_NS) {
        return n;
    }
    return n - base_max(n / KEPT_BACK, (size_t)1);
}

/* Takes the last part of the run that will end last without help, if member @i is done with it
 * before. Return: there was such a one. */
static bool take_other(struct krn_uneven_job *j, size_t i, struct run *ret)
{
    for (;;) {
        double longest = 1 / j->speed[i];
        struct krn_uneven_run *of = NULL;
        uint64_t left = 0;

        for (size_t m = 0; m < j->team->members; m++) {
            uint64_t its = atomic_load_explicit(&j->runs[m].left, memory_order_relaxed);
            double until = (double)left_of(its) / j->speed[m];

            if (m != i && until > longest) {
                longest = until;
                left = its;
                of = &j->runs[m];
            }
        }
        if (!of) {
            return false;
        }
        if (atomic_compare_exchange_strong_explicit(&of->left, &left, left - 1,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            size_t part = (size_t)(uint32_t)left - 1;

            *ret = (struct run){part, part + 1};
            return true;
        }
    }
}

/* Return: the share of the work that they were. */
static double run_parts(const struct krn_uneven_job *j, struct run r)
{
    double share = 0;

    while (r.begin < r.end) {
        size_t end;

        now.part = r.begin;
        now.end = r.end;
        now.parts = j->parts;
        now.members = j->team->members;
        now.taken = false;
        now.share = -1;
        j->fn(j->arg, r.begin);
        end = now.taken ? r.end : r.begin + 1;
        share += now.share >= 0 ? now.share : (double)(end - r.begin) / (double)j->parts;
        r.begin = end;
    }
    now.parts = 0;
    return share;
}

void krn_uneven_member(void *job, size_t i)
{
    struct krn_uneven_job *j = job;
    /* the pool gives what a thread did not come to take to another one */
    size_t me = self > 0 && self <= j->team->members ? self - 1 : i;
    struct krn_uneven_run *by = &j->runs[me];
    struct run r;

    for (bool first = true; take_own(by, next_of(j, me, first), &r) || take_other(j, me, &r) ||
                            take_own(&j->runs[i], 1, &r);
         first = false) {
        by->share += run_parts(j, r);
        by->done += r.end - r.begin;
        by->ns = base_now_ns() - j->start_ns;
    }
}

void krn_uneven_end(struct krn_uneven_job *j)
{
    uint64_t longest = 1;

    for (size_t m = 0; m < j->team->members; m++) {
        longest = base_max(longest, j->runs[m].ns);
    }
    for (size_t m = 0; m < j->team->members && longest > SOON_NS; m++) {
        const struct krn_uneven_run *r = &j->runs[m];
        struct krn_speed *s = &j->speeds[m];

        double share = r->done > 0 ? r->share : LATE_DONE / (double)j->parts;
        double ns = (double)(r->done > 0 ? base_max(r->ns, 1u) : longest);

        if (!r->given || share <= 0) {
            s->hint *= IDLE_GAIN;
            s->done *= IDLE_GAIN;
            continue;
        }
        if (s->ns > 0) {
            ns = base_min(ns, HELD * share * s->ns / s->done);
        }
        s->done = KEPT * s->done + share;
        s->ns = KEPT * s->ns + ns;
    }
}
