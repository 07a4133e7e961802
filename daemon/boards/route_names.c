/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/route_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/boards/route_fill.h"
#include "daemon/models/models.h"

int dmn_names_read(const struct dmn_model *m, const char *text, char *why,
                   struct dmn_route_text *ret)
{
    size_t last;

    if (dmn_route_text_parse(text, why, ret) < 0) {
        ret->hop_count = 0;
        return -EINVAL;
    }
    last = ret->hop[ret->hop_count - 1].last_unit;
    if (last + 1 != m->model->unit_count) {
        snprintf(why, DMN_ROUTE_ERROR_MAX,
                 "the route ends with unit %zu; the model's last one is %zu", last,
                 m->model->unit_count - 1);
        ret->hop_count = 0;
        return -EINVAL;
    }
    return 0;
}

bool dmn_names_here(const struct dmn_route_text *t)
{
    for (size_t i = 0; i < t->hop_count; i++) {
        if (t->hop[i].board_count > 1 || strcmp(t->hop[i].board[0].name, DMN_BOARD_HERE) != 0) {
            return false;
        }
    }
    return true;
}

const char *dmn_names_print(const struct brd_link_report_all *r, const char *name)
{
    if (strcmp(name, DMN_BOARD_HERE) == 0) {
        return r->self.known ? r->self.print : NULL;
    }
    for (size_t i = 0; i < r->board_count; i++) {
        if (strcmp(r->board[i].name, name) == 0) {
            return r->board[i].print;
        }
    }
    return NULL;
}

const char *dmn_names_away(const struct dmn_route_text *t, const struct brd_link_report_all *r)
{
    for (size_t i = 0; i < t->hop_count; i++) {
        for (size_t b = 0; b < t->hop[i].board_count; b++) {
            const char *print = dmn_names_print(r, t->hop[i].board[b].name);

            if (!print || !dmn_board_up(r, print)) {
                return t->hop[i].board[b].name;
            }
        }
    }
    return NULL;
}

void dmn_names_hops(const struct dmn_route_text *t, const struct brd_link_report_all *r,
                    struct brd_route *ret)
{
    ret->hop_count = t->hop_count;
    for (size_t i = 0; i < t->hop_count; i++) {
        struct brd_hop *h = &ret->hop[i];

        h->first_unit = t->hop[i].first_unit;
        h->last_unit = t->hop[i].last_unit;
        h->board_count = t->hop[i].board_count;
        for (size_t b = 0; b < h->board_count; b++) {
            snprintf(h->board[b].print, sizeof(h->board[b].print), "%s",
                     dmn_names_print(r, t->hop[i].board[b].name));
            h->board[b].share = t->hop[i].board[b].share;
        }
    }
}
