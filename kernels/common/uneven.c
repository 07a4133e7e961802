/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/uneven.h"

#include <math.h>

#define PARTS_EACH 4u /* of a member, at least */
#define KEPT 0.875    /* of what was learned before */
#define IDLE_GAIN 1.02
#define SHORT_NS 250e3  /* a run that takes less is taken at once: to divide it costs more */
#define ALONE_GAIN 0.95 /* of the time together: alone is clearly faster */
#define PAUSE_LEAST 16u
#define PAUSE_MOST 1024u
#define EQUAL 1.15     /* equal parts that take at most so much longer than the best division */
#define LATE_DONE 0.25 /* parts of a member that came too late for its run */
#define SINGLY 4u      /* the last 1 / SINGLY of a run, at least one part, is taken part by part */

/* Neighbouring parts. */
struct run {
    size_t begin, end;
};

/* The parts that the calling thread has to run now; parts 0: it is in no team of unequal cores. */
static _Thread_local struct {
    size_t part, end, parts;
    bool taken; /* by krn_uneven_take() */
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

/* Shares of the work per ns; relative speeds if no member was measured. */
static void speeds_of(const struct krn_uneven *u, double *ret)
{
    double measured = 0, hinted = 0;

    for (size_t m = 0; m < u->members; m++) {
        const struct krn_speed *s = &u->speeds[m];

        if (s->ns > 0) {
            measured += s->done / s->ns;
            hinted += s->hint;
        }
    }
    for (size_t m = 0; m < u->members; m++) {
        const struct krn_speed *s = &u->speeds[m];

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

size_t krn_uneven_width(const struct krn_uneven *u)
{
    double speed[KRN_UNEVEN_MAX], sum = 0, least = INFINITY;

    speeds_of(u, speed);
    for (size_t m = 0; m < u->members; m++) {
        sum += speed[m];
        least = base_min(least, speed[m]);
    }
    return sum <= EQUAL * least * (double)u->members ? u->members : krn_uneven_parts(u->members);
}

bool krn_uneven_alone(const struct krn_uneven *u)
{
    return u->alone != (u->left == 0 && u->pause > 0);
}

void krn_uneven_took(struct krn_uneven *u, double ns)
{
    bool alone = krn_uneven_alone(u), before = u->alone;
    double *known = &u->ns[alone];

    *known = *known > 0 ? *known + (ns - *known) / 4 : ns;
    if (u->pause == 0 || u->left == 0) {
        u->alone = u->ns[1] > 0 && u->ns[1] < ALONE_GAIN * u->ns[0];
        u->pause = u->pause == 0 || u->alone != before
                       ? PAUSE_LEAST
                       : base_min(2 * u->pause, (uint32_t)PAUSE_MOST);
        u->left = u->pause;
    }
    u->left--;
}

static uint64_t range_of(size_t begin, size_t end)
{
    return (uint64_t)begin << 32 | end;
}

void krn_uneven_begin(struct krn_uneven *team, size_t parts, void (*fn)(void *arg, size_t part),
                      void *arg, struct krn_uneven_job *ret)
{
    size_t ends[KRN_UNEVEN_MAX], begin = 0;

    ret->team = team;
    ret->fn = fn;
    ret->arg = arg;
    ret->parts = parts;
    speeds_of(team, ret->speed);
    divide(ret->speed, team->members, parts, ends);
    for (size_t m = 0; m < team->members; m++) {
        atomic_store_explicit(&ret->runs[m].left, range_of(begin, ends[m]), memory_order_relaxed);
        ret->runs[m].given = ends[m] > begin;
        ret->runs[m].done = 0;
        ret->runs[m].ns = 0;
        begin = ends[m];
    }
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

/* What a member takes of its run first. */
static size_t first_of(const struct krn_uneven_job *j, size_t i)
{
    size_t n = left_of(atomic_load_explicit(&j->runs[i].left, memory_order_relaxed));

    if (n < 2 || (double)n < j->speed[i] * (double)j->parts * SHORT_NS) {
        return n;
    }
    return n - base_max(n / SINGLY, (size_t)1);
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

static void run_parts(const struct krn_uneven_job *j, struct run r)
{
    while (r.begin < r.end) {
        now.part = r.begin;
        now.end = r.end;
        now.parts = j->parts;
        now.taken = false;
        j->fn(j->arg, r.begin);
        r.begin = now.taken ? r.end : r.begin + 1;
    }
    now.parts = 0;
}

void krn_uneven_member(void *job, size_t i)
{
    struct krn_uneven_job *j = job;
    /* the pool gives what a thread did not come to take to another one */
    struct krn_uneven_run *by = &j->runs[self > 0 && self <= j->team->members ? self - 1 : i];
    uint64_t start = base_now_ns(), before = by->ns;
    struct run r;

    for (size_t most = first_of(j, i); take_own(&j->runs[i], most, &r) || take_other(j, i, &r);
         most = 1) {
        run_parts(j, r);
        by->done += r.end - r.begin;
        by->ns = before + base_now_ns() - start;
    }
}

void krn_uneven_end(struct krn_uneven_job *j)
{
    uint64_t longest = 1;

    for (size_t m = 0; m < j->team->members; m++) {
        longest = base_max(longest, j->runs[m].ns);
    }
    for (size_t m = 0; m < j->team->members; m++) {
        const struct krn_uneven_run *r = &j->runs[m];
        struct krn_speed *s = &j->team->speeds[m];

        if (!r->given) {
            s->hint *= IDLE_GAIN;
            s->done *= IDLE_GAIN;
        } else {
            s->done =
                KEPT * s->done + (r->done > 0 ? (double)r->done : LATE_DONE) / (double)j->parts;
            s->ns = KEPT * s->ns + (double)(r->done > 0 ? base_max(r->ns, 1u) : longest);
        }
    }
}
