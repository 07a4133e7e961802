/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_past.h"

#include <math.h>

#include "base/base.h"

void dmn_past_init(struct dmn_spread_past *p, size_t unit_count)
{
    *p = (struct dmn_spread_past){.unit_count = unit_count};
}

void dmn_past_deinit(struct dmn_spread_past *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->row[i].ns);
    }
    free(p->row);
    *p = DMN_SPREAD_PAST_NULL;
}

int dmn_past_copy(const struct dmn_spread_past *from, struct dmn_spread_past *ret)
{
    struct dmn_spread_past copy = {.unit_count = from->unit_count};
    size_t bytes = from->unit_count * sizeof(double);

    copy.row = calloc(from->count + 1, sizeof(*copy.row));
    for (size_t i = 0; copy.row && i < from->count; i++) {
        copy.row[i] = from->row[i];
        copy.row[i].ns = malloc(bytes);
        copy.count++;
        if (!copy.row[i].ns) {
            dmn_past_deinit(&copy);
            return -ENOMEM;
        }
        memcpy(copy.row[i].ns, from->row[i].ns, bytes);
    }
    if (!copy.row) {
        return -ENOMEM;
    }
    *ret = copy;
    return 0;
}

const struct dmn_past_row *dmn_past_find(const struct dmn_spread_past *p, const char *print,
                                         const char *ep, size_t width)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct dmn_past_row *r = &p->row[i];

        if (r->width == width && strcmp(r->print, print) == 0 && strcmp(r->ep, ep) == 0) {
            return r;
        }
    }
    return NULL;
}

/* Return: the row, a new one if there is none yet; NULL with *ret_error: 0: the table is full, or
 * -ENOMEM. */
static struct dmn_past_row *row_of(struct dmn_spread_past *p, const char *print, const char *ep,
                                   uint32_t width, int *ret_error)
{
    const struct dmn_past_row *found = dmn_past_find(p, print, ep, width);
    struct dmn_past_row *row = p->row;

    *ret_error = 0;
    if (found) {
        return p->row + (found - p->row);
    }
    if (p->count == DMN_PAST_ROWS_MAX) {
        return NULL;
    }
    row = realloc(p->row, (p->count + 1) * sizeof(*row));
    if (row) {
        p->row = row;
        row += p->count;
        *row = (struct dmn_past_row){.width = width};
        row->ns = malloc(p->unit_count * sizeof(*row->ns));
    }
    if (!row || !row->ns) {
        *ret_error = -ENOMEM;
        return NULL;
    }
    snprintf(row->print, sizeof(row->print), "%s", print);
    snprintf(row->ep, sizeof(row->ep), "%s", ep);
    for (size_t u = 0; u < p->unit_count; u++) {
        row->ns[u] = -1;
    }
    p->count++;
    return row;
}

static int learn_costs(struct dmn_spread_past *p, const struct brd_state *s,
                       const struct brd_costs *c, uint64_t now_ns)
{
    for (size_t i = 0; i < c->row_count; i++) {
        const struct brd_cost_row *from = &c->row[i];
        struct dmn_past_row *to;
        int error;

        if (from->ep >= s->ep_count) {
            continue;
        }
        to = row_of(p, s->print, s->ep[from->ep].name, from->width, &error);
        if (!to) {
            return error;
        }
        to->at_ns = now_ns;
        for (size_t u = 0; u < c->unit_count; u++) {
            if (isfinite(from->ns[u]) && from->ns[u] > 0) {
                to->ns[c->first_unit + u] = from->ns[u];
            }
        }
    }
    return 0;
}

static int learn_state(struct dmn_spread_past *p, const char *content, const struct brd_state *s,
                       uint64_t now_ns)
{
    int error = 0;

    for (size_t i = 0; !error && i < s->costs_count; i++) {
        const struct brd_costs *c = s->costs[i];

        if (strcmp(c->content, content) == 0 && c->first_unit < p->unit_count &&
            c->unit_count <= p->unit_count - c->first_unit) {
            error = learn_costs(p, s, c, now_ns);
        }
    }
    return error;
}

static void forget(struct dmn_spread_past *p, uint64_t now_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->count; i++) {
        if (now_ns > p->row[i].at_ns && now_ns - p->row[i].at_ns > DMN_PAST_KEEP_NS) {
            free(p->row[i].ns);
        } else {
            p->row[kept++] = p->row[i];
        }
    }
    p->count = kept;
}

int dmn_past_learn(struct dmn_spread_past *p, const char *content,
                   const struct brd_link_report_all *r, uint64_t now_ns)
{
    int error = learn_state(p, content, &r->self, now_ns);

    for (size_t i = 0; !error && i < r->board_count; i++) {
        if (r->board[i].up && r->board[i].known) {
            error = learn_state(p, content, &r->board[i], now_ns);
        }
    }
    forget(p, now_ns);
    return error;
}
