/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_explain.h"

#include "base/base.h"

static bool in_table(const struct dmn_spread_table *t, const char *print)
{
    for (size_t b = 0; b < t->p.boards.count; b++) {
        if (strcmp(t->print[b], print) == 0) {
            return true;
        }
    }
    return false;
}

static bool in_hops(const struct brd_hop *hop, size_t count, const char *print)
{
    for (size_t h = 0; h < count; h++) {
        for (size_t b = 0; b < hop[h].board_count; b++) {
            if (strcmp(hop[h].board[b].print, print) == 0) {
                return true;
            }
        }
    }
    return false;
}

static const char *why_left_out(const struct dmn_spread_query *q, const struct dmn_spread_table *t,
                                size_t i)
{
    struct dmn_spread_inputs in = dmn_spread_query_inputs(q);
    const struct brd_state *s = &q->report.board[i];

    if (!s->up) {
        return "It is away.";
    }
    if (!s->known || s->ep_count == 0) {
        return "It has not told of its cores yet.";
    }
    if (!q->usable[i]) {
        return "It is there, but it was away, or a route failed there, a short time ago; it must "
               "stay for a while first.";
    }
    if (!dmn_spread_linked(&in, q->report.self.print, s->print)) {
        return "Frames cannot go there and back: the link is down, or a route failed at it.";
    }
    if (!in_table(t, s->print)) {
        return "It is planned for 8 boards, and for so many cores, at most.";
    }
    return "By the table no route is better with it.";
}

static void find_left_out(const struct dmn_spread_query *q, const struct dmn_spread_table *t,
                          struct dmn_explained *ret)
{
    for (size_t i = 0; i < q->report.board_count; i++) {
        const char *print = q->report.board[i].print;

        if (!in_hops(ret->answer.hop, ret->answer.hop_count, print)) {
            struct dmn_left_out *l = &ret->left[ret->left_count++];

            memcpy(l->print, print, sizeof(l->print));
            l->why = why_left_out(q, t, i);
        }
    }
}

static enum dmn_verdict judge(const struct dmn_spread_query *q, const struct dmn_spread_answer *a,
                              bool moves)
{
    if (q->hop_count > 0 && a->best.possible &&
        dmn_hops_same(q->hop, q->hop_count, a->hop, a->hop_count)) {
        return DMN_VERDICT_SERVES;
    }
    if (!a->best.possible && q->hop_count == 0) {
        return DMN_VERDICT_NONE;
    }
    switch (dmn_decide_worth(&q->here, &a->best, &a->present, &a->alone, q->hop_count > 0, moves)) {
    case DMN_TAKE_ROUTE:
        return DMN_VERDICT_BETTER;
    case DMN_TAKE_NONE:
        return DMN_VERDICT_ALONE_BETTER;
    default:
        return q->hop_count > 0 ? DMN_VERDICT_LITTLE : DMN_VERDICT_ALONE;
    }
}

int dmn_spread_explain(const struct dmn_spread_query *q, struct dmn_explained *ret)
{
    struct dmn_spread_inputs in = dmn_spread_query_inputs(q);
    struct dmn_spread_table t;
    int r;

    memset(ret, 0, sizeof(*ret));
    r = dmn_spread_query_run(q, &ret->answer);
    if (!r) {
        r = dmn_spread_table_init(&in, &t);
    }
    if (r) {
        return r;
    }
    ret->guessed_links = t.guessed_links;
    ret->moves = dmn_hops_load(q->hop, q->hop_count, ret->answer.hop, ret->answer.hop_count);
    ret->verdict = judge(q, &ret->answer, ret->moves);
    find_left_out(q, &t, ret);
    if (t.p.boards.count > 1 && q->hop_count > 0 &&
        dmn_spread_judge_hops(&t, q->hop, q->hop_count, &ret->present) == -ENOMEM) {
        r = -ENOMEM;
    }
    if (!r && ret->answer.best.possible) {
        r = dmn_spread_judge_hops(&t, ret->answer.hop, ret->answer.hop_count, &ret->best);
    }
    dmn_spread_table_deinit(&t);
    return r;
}
