/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_plan.h"

#include "base/base.h"
#include "tuner/eval_boards.h"

#define SHARE_MOST 1000.0
#define SHARE_LEAST 0.02  /* of the largest: less is not worth a board, and would round badly */
#define SHARES_ALIKE 0.05 /* of the frames of a hop */

static int add_boards(const struct dmn_spread_table *t, uint32_t mask, const double *share,
                      struct brd_hop *hop)
{
    double most = 0;

    for (size_t b = 0; b < t->p.boards.count; b++) {
        most = base_max(most, mask >> b & 1 ? share[b] : 0);
    }
    for (size_t b = 0; b < t->p.boards.count; b++) {
        if (mask >> b & 1 && share[b] >= SHARE_LEAST * most) {
            if (hop->board_count == BRD_SHARE_MAX) {
                return -ENOSPC;
            }
            memcpy(hop->board[hop->board_count].print, t->print[b], BRD_FINGERPRINT_BYTES);
            hop->board[hop->board_count++].share = (uint32_t)round(SHARE_MOST * share[b] / most);
        }
    }
    return 0;
}

int dmn_plan_hops(const struct dmn_spread_table *t, const struct pl_plan *plan, struct brd_hop *ret,
                  size_t *ret_count)
{
    base_autofree double(*shares)[TUN_BOARD_MAX] = calloc(PL_STAGE_MAX, sizeof(*shares));
    uint32_t before = 0, all = 0;
    size_t count = 0;

    if (!shares) {
        return -ENOMEM;
    }
    if (t->p.boards.count > 1 && tun_eval_shares(&t->p, plan, shares) != 0) {
        return -EINVAL;
    }
    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        uint32_t mask = tun_board_mask(&t->p, stage);
        bool shared = (mask & (mask - 1)) != 0;

        all |= mask;
        if (mask == before && !shared) {
            ret[count - 1].last_unit = stage->last_unit;
            continue;
        }
        before = mask;
        if (count == BRD_HOPS_MAX) {
            return -ENOSPC;
        }
        ret[count] =
            (struct brd_hop){.first_unit = stage->first_unit, .last_unit = stage->last_unit};
        if (t->p.boards.count > 1 && add_boards(t, mask, shares[s], &ret[count]) != 0) {
            return -ENOSPC;
        }
        count++;
    }
    *ret_count = all == 1 ? 0 : count;
    return 0;
}

static bool hop_same(const struct brd_hop *a, const struct brd_hop *b)
{
    double sum_a = 0, sum_b = 0;

    if (a->first_unit != b->first_unit || a->last_unit != b->last_unit ||
        a->board_count != b->board_count) {
        return false;
    }
    for (size_t i = 0; i < a->board_count; i++) {
        sum_a += a->board[i].share;
        sum_b += b->board[i].share;
    }
    for (size_t i = 0; i < a->board_count; i++) {
        double change = a->board[i].share / sum_a - b->board[i].share / sum_b;

        if (strcmp(a->board[i].print, b->board[i].print) != 0 || fabs(change) > SHARES_ALIKE) {
            return false;
        }
    }
    return true;
}

bool dmn_hops_same(const struct brd_hop *a, size_t a_count, const struct brd_hop *b, size_t b_count)
{
    for (size_t i = 0; i < a_count && a_count == b_count; i++) {
        if (!hop_same(&a[i], &b[i])) {
            return false;
        }
    }
    return a_count == b_count;
}

static bool has_segment(const struct brd_hop *a, size_t count, const struct brd_hop *hop,
                        const char *print)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < a[i].board_count; k++) {
            if (a[i].first_unit == hop->first_unit && a[i].last_unit == hop->last_unit &&
                strcmp(a[i].board[k].print, print) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool dmn_hops_load(const struct brd_hop *a, size_t a_count, const struct brd_hop *b, size_t b_count)
{
    for (size_t i = 0; i < b_count; i++) {
        for (size_t k = 0; k < b[i].board_count; k++) {
            if (!has_segment(a, a_count, &b[i], b[i].board[k].print)) {
                return true;
            }
        }
    }
    return false;
}
