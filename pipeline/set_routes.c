/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a set: how their rings connect the teams, and which route gets a frame. */
#include <math.h>

#include "pipeline/dispatch.h"
#include "pipeline/stage_set.h"

/* Frames that may wait for a team of a first stage, besides those it holds and the extra ones for
 * its speed; at least as many as any team takes at once. Enough to last until the loop's next turn;
 * few enough that a late frame can still go to another team, and the caller can still drop a frame
 * that need not run. */
#define WAITING_PER_TEAM 2u

/* By how many frames a route may fall behind its part, or be ahead of it, before that is forgotten:
 * one that had no room does not get all frames later. */
#define CREDIT_MAX 4.0

static size_t teams_of(const struct pl_set *s, size_t stage)
{
    return s->stage_first[stage + 1] - s->stage_first[stage];
}

void pl_routes_count(struct pl_set *s)
{
    size_t before = 0;

    for (size_t i = 0; i < s->plan.stage_count; i++) {
        const struct pl_stage_plan *stage = &s->plan.stages[i];
        size_t teams = pl_stage_teams(stage);

        s->stage_first[i] = s->team_count;
        if (stage->first_unit == 0) {
            s->ring_count += before;
            s->routes[s->route_count++] =
                (struct pl_route){.stage = i, .part = pl_route_part(&s->plan, i)};
        }
        s->team_count += teams;
        s->ring_count += teams * (stage->first_unit == 0 ? 1 : before);
        before = teams;
        for (size_t g = 0; g < stage->group_count; g++) {
            struct pl_route *r = &s->routes[s->route_count - 1];

            r->batch_most = base_max(r->batch_most, pl_group_batch(&stage->groups[g]));
        }
    }
    s->stage_first[s->plan.stage_count] = s->team_count;
    s->ring_count += before;
}

/* Where the next ring is, and the next pointer to one. */
struct place {
    struct pl_ring *ring;
    struct pl_ring **pointer;
};

/* Those between two stages as a matrix [producer][consumer]. A producer's outputs are a row, which
 * is contiguous; a consumer's inputs are a column and get pointers of their own. */
static void connect_stages(struct pl_set *s, size_t stage, struct place *at)
{
    struct pl_team *from = &s->teams[s->stage_first[stage]];
    struct pl_team *to = &s->teams[s->stage_first[stage + 1]];
    size_t from_count = teams_of(s, stage), to_count = teams_of(s, stage + 1);

    for (size_t i = 0; i < from_count; i++) {
        from[i].outputs = at->pointer;
        from[i].output_count = to_count;
        from[i].next = to;
        from[i].next_count = to_count;
        for (size_t j = 0; j < to_count; j++) {
            *at->pointer++ = at->ring + i * to_count + j;
        }
    }
    for (size_t j = 0; j < to_count; j++) {
        to[j].inputs = at->pointer;
        to[j].input_count = from_count;
        for (size_t i = 0; i < from_count; i++) {
            *at->pointer++ = at->ring + i * to_count + j;
        }
    }
    at->ring += from_count * to_count;
}

static void connect_route(struct pl_set *s, struct pl_route *r, struct place *at)
{
    size_t end = pl_route_end(&s->plan, r->stage), last = end - 1;

    r->teams = &s->teams[s->stage_first[r->stage]];
    r->entry_count = teams_of(s, r->stage);
    r->entries = at->pointer;
    for (size_t i = 0; i < r->entry_count; i++) {
        *at->pointer++ = at->ring++;
        r->teams[i].inputs = &r->entries[i];
        r->teams[i].input_count = 1;
    }
    for (size_t stage = r->stage; stage < last; stage++) {
        connect_stages(s, stage, at);
    }
    r->exits = at->pointer;
    r->exit_count = teams_of(s, last);
    for (size_t i = 0; i < r->exit_count; i++) {
        struct pl_team *t = &s->teams[s->stage_first[last] + i];

        t->outputs = at->pointer;
        t->output_count = 1;
        *at->pointer++ = at->ring++;
    }
}

void pl_routes_connect(struct pl_set *s)
{
    struct place at = {s->rings, s->ring_pointers};

    for (size_t i = 0; i < s->route_count; i++) {
        connect_route(s, &s->routes[i], &at);
    }
}

/* Return: how many teams the stage has. */
static size_t see_stage(const struct pl_set *s, size_t stage, uint64_t now_ns,
                        struct pl_dispatch_view *ret)
{
    size_t count = teams_of(s, stage);

    for (size_t i = 0; i < count; i++) {
        pl_team_view(&s->teams[s->stage_first[stage] + i], now_ns, &ret[i]);
    }
    return count;
}

static size_t stage_shares(const struct pl_set *s, size_t stage, uint64_t now_ns)
{
    struct pl_dispatch_view views[PL_TEAM_MAX];

    return pl_dispatch_shares(views, see_stage(s, stage, now_ns, views));
}

static bool has_room(const struct pl_set *s, const struct pl_route *r, uint64_t now_ns)
{
    size_t pending = 0, held = 0, waiting = 0;

    for (size_t i = 0; i < r->entry_count; i++) {
        size_t batch = r->teams[i].batch;

        pending += atomic_load_explicit(&r->teams[i].pending, memory_order_acquire);
        held += batch;
        waiting += base_max(batch, (size_t)WAITING_PER_TEAM);
    }
    /* The caller looks again when frames leave the pipeline, which a batch does together. */
    waiting = base_max(waiting, r->batch_most);
    return pending < held + waiting || pending < stage_shares(s, r->stage, now_ns) + waiting;
}

struct pl_route *pl_set_room(struct pl_set *s, uint64_t now_ns)
{
    struct pl_route *best = NULL;

    for (size_t i = 0; i < s->route_count; i++) {
        struct pl_route *r = &s->routes[i];

        if ((!best || r->credit + r->part > best->credit + best->part) && has_room(s, r, now_ns)) {
            best = r;
        }
    }
    return best;
}

void pl_set_admit(struct pl_set *s, struct pl_route *to, struct pl_frame *f, uint64_t now_ns)
{
    for (size_t i = 0; i < s->route_count; i++) {
        struct pl_route *r = &s->routes[i];

        r->credit += r->part - (r == to);
        r->credit = base_min(base_max(r->credit, -CREDIT_MAX), CREDIT_MAX);
    }
    pl_team_give(to->teams, to->entries, to->entry_count, f, now_ns);
}

struct pl_frame *pl_set_finished(struct pl_set *s)
{
    for (size_t i = 0; i < s->route_count; i++) {
        const struct pl_route *r = &s->routes[i];

        for (size_t k = 0; k < r->exit_count; k++) {
            struct pl_frame *f = pl_ring_pop(r->exits[k]);

            if (f != NULL) {
                return f;
            }
        }
    }
    return NULL;
}

void pl_set_close(struct pl_set *s)
{
    for (size_t i = 0; i < s->route_count; i++) {
        const struct pl_route *r = &s->routes[i];

        for (size_t k = 0; k < r->entry_count; k++) {
            pl_ring_close(r->entries[k]);
            pl_wake_signal(&r->teams[k].wake);
        }
    }
}

size_t pl_set_depth(const struct pl_set *s)
{
    /* while a team computes several frames, the next ones gather */
    size_t depth = s->plan.stage_count + pl_plan_batched(&s->plan);
    bool shared = s->route_count > 1;

    for (size_t i = 0; i < s->plan.stage_count; i++) {
        depth += stage_shares(s, i, 0);
        shared |= teams_of(s, i) > 1;
    }
    return depth + shared;
}

/* While a frame is on the slowest way through the longest route, for L, the others pass as many as
 * their slowest stage can in that time, and all of these wait for it. */
size_t pl_set_frames(const struct pl_set *s)
{
    struct pl_dispatch_view views[PL_TEAM_MAX];
    double longest_ns = 0, frames = 2 + (double)s->team_count;

    for (size_t r = 0; r < s->route_count; r++) {
        size_t first = s->routes[r].stage;
        double ns = 0;

        for (size_t i = first; i < pl_route_end(&s->plan, first); i++) {
            ns += pl_dispatch_slowest_ns(views, see_stage(s, i, 0, views));
        }
        longest_ns = base_max(longest_ns, ns);
    }
    for (size_t r = 0; r < s->route_count; r++) {
        size_t first = s->routes[r].stage;
        double least = INFINITY;

        for (size_t i = first; i < pl_route_end(&s->plan, first); i++) {
            size_t count = see_stage(s, i, 0, views);

            least = base_min(least, pl_dispatch_passed(views, count, longest_ns));
        }
        frames += least;
    }
    return (size_t)base_min(frames, (double)UINT16_MAX);
}
