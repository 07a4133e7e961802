/* SPDX-License-Identifier: Apache-2.0 */
/* How a team takes turns with others on its cores. */
#include "pipeline/frame_pool.h"
#include "pipeline/team.h"

void pl_team_share_cores(struct pl_team *t)
{
    struct pl_client *client = t->common->options.client;

    for (size_t i = 0; i < t->width && client != NULL; i++) {
        client = client->seats != NULL && t->cpus[i] < PL_SEAT_MAX ? client : NULL;
    }
    t->sitter = (struct pl_sitter){.client = client, .cpus = t->cpus, .width = t->width};
}

/* The part of the team's unit @at that its longest piece takes, as far as it is known. */
static double piece_of(const struct pl_team *t, size_t at, size_t frames)
{
    double longest;

    if (!t->pieces || frames > 1) {
        return 1;
    }
    longest = atomic_load_explicit(&t->longest[at], memory_order_relaxed);
    return longest > 0 ? longest : 1.0 / t->pieces[at];
}

/* What is left of a run of @frames from the team's unit @at on. */
static struct pl_want want_of(const struct pl_team *t, const struct pl_frame *f, size_t at,
                              size_t frames)
{
    double ns = pl_clocks_service_ns(&t->clocks) * (double)frames, left = 0;
    uint64_t released = f->private->released_ns;

    for (size_t i = at; i < t->clocks.unit_count; i++) {
        left += t->shares[i];
    }
    return (struct pl_want){
        .due_ns =
            f->due_ns ? released + (uint64_t)((double)(f->due_ns - released) * t->due_part) : 0,
        .released_ns = released,
        .number = f->number,
        .left_ns = ns * left,
        .unit_ns = ns * t->shares[at] * piece_of(t, at, frames),
    };
}

/* Sits down, or gets up first for who goes before it. Return: false: the team has to end. */
static bool sit(struct pl_team *t, const struct pl_want *want)
{
    if (t->sitter.seated) {
        pl_members_rest(&t->members);
    }
    return pl_sit(&t->sitter, want);
}

bool pl_team_sit(struct pl_team *t, const struct pl_frame *f)
{
    struct pl_want want;

    if (!t->sitter.client || (t->sitter.seated && !pl_sit_asked(&t->sitter))) {
        return true;
    }
    want = want_of(t, f, 0, 1);
    return t->sitter.seated && !pl_sit_late(&t->sitter, &want) ? true : sit(t, &want);
}

/* Gets up for who goes before it, if somebody does, and sits down again. Return: for how many ticks
 * it stood, which are not its run's time; it may not sit, as it has to end. */
static uint64_t give_way(struct pl_team *t, const struct pl_want *want, size_t laps,
                         struct pl_clock_run *clock)
{
    uint64_t ns, ticks;

    if (!pl_sit_late(&t->sitter, want)) {
        return 0;
    }
    ns = base_now_ns();
    ticks = pl_ticks();
    if (!sit(t, want)) {
        return 0;
    }
    ticks = pl_ticks() - ticks;
    for (size_t i = 0; i < laps; i++) {
        t->clocks.laps[i] += ticks;
    }
    clock->start_ns += base_now_ns() - ns;
    return ticks;
}

bool pl_team_goes_on(struct pl_team *t, size_t at, size_t laps, struct pl_clock_run *clock)
{
    struct pl_want want;

    if (atomic_load_explicit(&t->common->abort, memory_order_relaxed)) {
        return false;
    }
    if (!t->sitter.client || !pl_sit_asked(&t->sitter)) {
        return true;
    }
    want = want_of(t, t->first, at, clock->computed);
    give_way(t, &want, laps, clock);
    return t->sitter.seated;
}

static void stand_back(struct pl_in_pieces *p)
{
    struct pl_team *t = p->team;
    struct pl_want want = want_of(t, t->first, p->at, 1);
    uint64_t took = p->piece_ticks - p->start_ticks - p->stood_ticks;

    want.left_ns = base_max(want.left_ns - (double)took * t->ns_per_tick, 0.0);
    p->stood_ticks += give_way(t, &want, p->laps, p->clock);
    p->piece_ticks = pl_ticks();
}

void pl_team_between(void *pieces)
{
    struct pl_in_pieces *p = pieces;
    const struct pl_sitter *sitter = &p->team->sitter;
    uint64_t now = pl_ticks();

    p->longest_ticks = base_max(p->longest_ticks, now - p->piece_ticks);
    p->piece_ticks = now;
    if (pl_sit_asked(sitter) && sitter->seated) {
        stand_back(p);
    }
}

bool pl_team_rise(struct pl_team *t)
{
    bool taken = t->sitter.client && t->sitter.seated && pl_rise(&t->sitter);

    if (taken) {
        pl_members_rest(&t->members);
    }
    return taken;
}
