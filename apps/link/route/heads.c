/* SPDX-License-Identifier: Apache-2.0 */
/* Heads and their epochs, to find. */
#include "apps/link/route/route_private.h"

struct head_epoch *head_epoch(struct head *h, uint32_t number)
{
    for (size_t i = 0; i < HEAD_EPOCHS_MAX; i++) {
        if (number && h->epoch[i].number == number) {
            return &h->epoch[i];
        }
    }
    return NULL;
}

struct head_epoch *head_present(struct head *h)
{
    struct head_epoch *best = NULL;

    for (size_t i = 0; i < HEAD_EPOCHS_MAX; i++) {
        struct head_epoch *e = &h->epoch[i];

        if (e->number && e->ledger && (!best || e->ledger > best->ledger)) {
            best = e;
        }
    }
    return best;
}

void head_end_epoch(struct head_epoch *e)
{
    free(e->route);
    *e = (struct head_epoch){0};
}

struct head *head_by_stream(const struct link *l, uint32_t stream)
{
    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        if (l->heads->head[i] && l->heads->head[i]->stream == stream) {
            return l->heads->head[i];
        }
    }
    return NULL;
}

struct head *head_by_model(const struct link *l, const char *model)
{
    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        struct head *h = l->heads->head[i];

        if (h && !h->withdrawn && strcmp(h->state.model, model) == 0) {
            return h;
        }
    }
    return NULL;
}
