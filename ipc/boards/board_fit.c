/* SPDX-License-Identifier: Apache-2.0 */
/* States and reports as JSON that is not too long. */

#include "base/base.h"
#include "ipc/boards/board_state.h"

/* @ret: borrows from @s, without the @oldest costs. */
static void without(const struct brd_state *s, size_t oldest, struct brd_state *ret)
{
    *ret = *s;
    oldest = base_min(oldest, s->costs_count);
    ret->costs_count -= oldest;
    memcpy(ret->costs, s->costs + oldest, ret->costs_count * sizeof(ret->costs[0]));
}

/* Return: @j if it fits, or may be as long as it is; else NULL. */
static json_t *keep(json_t *j, size_t bytes, bool anyway)
{
    if (j && !anyway && json_dumpb(j, NULL, 0, JSON_COMPACT) > bytes) {
        json_decref(j);
        j = NULL;
    }
    return j;
}

json_t *brd_state_json_within(const struct brd_state *s, size_t bytes)
{
    base_autofree struct brd_state *part = malloc(sizeof(*part));
    json_t *j = NULL;

    for (size_t oldest = 0; part && !j && oldest <= BRD_COSTS_MAX; oldest++) {
        without(s, oldest, part);
        j = keep(brd_state_json(part), bytes, oldest == BRD_COSTS_MAX);
    }
    return j;
}

json_t *brd_report_all_json_within(const struct brd_link_report_all *r, size_t bytes)
{
    base_autofree struct brd_link_report_all *part = malloc(sizeof(*part));
    json_t *j = NULL;

    for (size_t oldest = 0; part && !j && oldest <= BRD_COSTS_MAX; oldest++) {
        *part = *r;
        without(&r->self, oldest, &part->self);
        for (size_t i = 0; i < r->board_count; i++) {
            without(&r->board[i], oldest, &part->board[i]);
        }
        j = keep(brd_report_all_json(part), bytes, oldest == BRD_COSTS_MAX);
    }
    return j;
}
