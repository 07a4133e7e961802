/* SPDX-License-Identifier: Apache-2.0 */
/* What teams record, and that rings come and go with teams, under load. */
#include <string.h>

#include "pipeline/trace.h"
#include "tests/harness.h"
#include "tests/unit/pipeline/rig.h"

#define UNITS 6u
#define RING (1u << 18)
#define MANY ((size_t)1 << 30)
#define FRAMES 600u

struct seen {
    uint64_t records, first, last;
    unsigned char stages[2][4 * FRAMES]; /* [stage][admission number]: how often */
    uint64_t end_ns[2][4 * FRAMES];
};

static void see_record(struct seen *s, const struct pl_trace_team *team, const uint32_t *w,
                       uint64_t *last_end)
{
    uint64_t number = trace_u64(w + TRACE_TEAM_NUMBER), given = trace_u64(w + TRACE_TEAM_GIVEN);
    uint64_t start = trace_u64(w + TRACE_TEAM_START), end = trace_u64(w + TRACE_TEAM_END);
    bool taken = (w[TRACE_TEAM_FLAGS] & TRACE_TEAM_TAKEN) != 0;
    uint32_t units = team->last_unit - team->first_unit + 1u;
    uint64_t sum = 0;

    T_EQ(trace_kind_of(w[0]), TRACE_TEAM);
    T_EQ(trace_words_of(w[0]), TRACE_TEAM_UNITS + units * (taken ? 2 : 1));
    for (uint32_t i = TRACE_TEAM_UNITS; i < TRACE_TEAM_UNITS + units; i++) {
        sum += w[i];
        T_TRUE(!taken || w[units + i] <= w[i] + 1); /* both are rounded */
    }
    T_EQ(w[TRACE_TEAM_STATUS], PL_FRAME_OK);
    T_LE(given, start);
    T_EQ(sum, end - start);
    T_LE(*last_end, start);
    *last_end = end;
    T_LT(number, 4 * FRAMES);
    if (number < 4 * FRAMES) {
        s->stages[team->stage][number]++;
        s->end_ns[team->stage][number] = end;
        if (team->stage == 1) {
            T_LE(s->end_ns[0][number], start);
        }
    }
    s->records++;
}

/* The rings of the first stage first, so that a frame's times can be compared. */
static void read_all(struct pl_trace *t, struct seen *s)
{
    static uint32_t words[RING / 4];

    for (unsigned stage = 0; stage < 2; stage++) {
        for (struct pl_trace_entry *e = t->entries; e != NULL; e = e->next) {
            size_t got = e->team.stage == stage ? pl_trace_read(&e->ring, words, RING / 4) : 0;
            uint64_t last = 0;

            e->announced = true;
            for (size_t at = 0; at < got; at += trace_words_of(words[at])) {
                see_record(s, &e->team, words + at, &last);
            }
        }
    }
}

static size_t entries(const struct pl_trace *t)
{
    size_t n = 0;

    for (const struct pl_trace_entry *e = t->entries; e != NULL; e = e->next) {
        n++;
    }
    return n;
}

struct rigged {
    struct pl_ep_set eps;
    struct tiny_net net;
    struct rig rig;
    struct pl_trace *trace;
};

static void set_up(struct rigged *r, const char *text)
{
    struct pl_plan plan;
    struct pl_options o;

    tiny_net_init(&r->net, UNITS, 3, 6);
    rig_init(&r->rig, &r->net);
    rig_eps(&r->eps, false);
    o = rig_options(&r->rig);
    plan = rig_plan(text, &r->eps, UNITS);
    T_EQ(pl_new(r->net.net, &r->eps, &plan, &o, &r->rig.p), 0);
}

static void tear_down(struct rigged *r)
{
    rig_deinit(&r->rig);
    r->trace = pl_trace_free(r->trace);
    tiny_net_deinit(&r->net);
}

static void detach(struct rigged *r)
{
    while (!pl_trace_detach(r->rig.p)) {
    }
}

TEST(every_frame_once_per_stage_over_a_switch)
{
    static struct seen s;
    struct rigged r;
    struct pl_plan next;

    set_up(&r, "0-2@big*2|3-5@big");
    T_TRUE(rig_stream(&r.rig, FRAMES, 0));
    T_EQ(pl_trace_new(RING, MANY, &r.trace), 0);
    pl_trace_attach(r.rig.p, r.trace, 7);
    T_EQ(pl_trace_id(r.rig.p), 7);
    T_EQ(entries(r.trace), 3);
    T_TRUE(rig_stream(&r.rig, FRAMES, 0));
    next = rig_plan("0-3@big|4-5@big*2", &r.eps, UNITS);
    T_EQ(pl_switch(r.rig.p, &next), 0);
    T_EQ(entries(r.trace), 6);
    T_TRUE(rig_stream(&r.rig, FRAMES, 0));
    T_TRUE(rig_drain(&r.rig));
    detach(&r);
    T_EQ(pl_trace_id(r.rig.p), 0);
    T_TRUE(rig_stream(&r.rig, FRAMES, 0)); /* not recorded */
    read_all(r.trace, &s);
    T_EQ(pl_trace_lost_all(r.trace), 0);
    T_EQ(r.trace->untraced, 0);
    T_EQ(s.records, 2 * 2 * FRAMES);
    for (size_t i = 0; i < 4 * FRAMES; i++) {
        unsigned wanted = i >= FRAMES && i < 3 * FRAMES;

        T_EQ(s.stages[0][i], wanted);
        T_EQ(s.stages[1][i], wanted);
    }
    pl_trace_trim(r.trace);
    T_EQ(entries(r.trace), 0);
    T_EQ(r.trace->bytes, 0);
    T_EQ(r.trace->most_bytes, 6 * RING);
    tear_down(&r);
}

/* A ring outlives its team, and its pipeline, until it was read. */
TEST(records_of_a_pipeline_that_went)
{
    static struct seen s;
    struct rigged r;

    set_up(&r, "0-2@big|3-5@big");
    T_EQ(pl_trace_new(RING, MANY, &r.trace), 0);
    pl_trace_attach(r.rig.p, r.trace, 1);
    T_TRUE(rig_stream(&r.rig, 10, 0));
    r.rig.p = pl_free(r.rig.p);
    pl_trace_trim(r.trace); /* not read yet */
    T_EQ(entries(r.trace), 2);
    read_all(r.trace, &s);
    T_EQ(s.records, 20);
    pl_trace_trim(r.trace);
    T_EQ(entries(r.trace), 0);
    tear_down(&r);
}

TEST(a_team_without_room_is_not_traced)
{
    struct rigged r;

    set_up(&r, "0-2@big|3-5@big*2");
    T_EQ(pl_trace_new(3, MANY, &r.trace), -EINVAL);
    T_EQ(pl_trace_new(RING, 2 * RING, &r.trace), 0);
    pl_trace_attach(r.rig.p, r.trace, 1);
    T_EQ(entries(r.trace), 2);
    T_EQ(r.trace->untraced, 1);
    T_TRUE(rig_stream(&r.rig, 50, 0));
    detach(&r);
    tear_down(&r);
}

/* Rings are small, so records are lost, and rings go while teams write. */
TEST(traces_begin_and_end_under_load)
{
    struct rigged r;

    set_up(&r, "0-2@big*2|3-5@big");
    for (unsigned round = 0; round < 60; round++) {
        T_EQ(pl_trace_new(PL_TRACE_RING_BYTES_MIN, MANY, &r.trace), 0);
        pl_trace_attach(r.rig.p, r.trace, 1);
        for (unsigned i = 0; i < 40; i++) {
            rig_submit(&r.rig, 0);
            rig_collect(&r.rig);
        }
        if (round % 8 == 3) {
            struct pl_plan next =
                rig_plan(round % 16 == 3 ? "0-5@big*3" : "0-2@big*2|3-5@big", &r.eps, UNITS);

            T_TRUE(rig_drain(&r.rig));
            T_EQ(pl_switch(r.rig.p, &next), 0);
        }
        detach(&r);
        r.trace = pl_trace_free(r.trace);
    }
    T_TRUE(rig_drain(&r.rig));
    T_TRUE(!r.rig.wrong);
    tear_down(&r);
}

TEST_MAIN()
