/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: the heads of models and their epochs, to find. */
#include <sys/random.h>

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

int heads_new(struct heads **ret)
{
    *ret = calloc(1, sizeof(**ret));
    return *ret ? 0 : -ENOMEM;
}

struct head *head_free(struct head *h)
{
    for (size_t i = 0; h && i < HEAD_EPOCHS_MAX; i++) {
        head_end_epoch(&h->epoch[i]);
    }
    if (h) {
        lnk_ledger_free(h->ledger);
    }
    free(h);
    return NULL;
}

struct heads *heads_free(struct heads *h)
{
    for (size_t i = 0; h && i < BRD_ROUTES_MAX; i++) {
        head_free(h->head[i]);
    }
    free(h);
    return NULL;
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

struct head *head_new(struct link *l, const char *model)
{
    struct head *h = NULL;

    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        if (!l->heads->head[i]) {
            h = calloc(1, sizeof(*h));
            if (h && lnk_ledger_new(HEAD_FRAMES, &h->ledger) < 0) {
                h = head_free(h);
            }
            l->heads->head[i] = h;
            break;
        }
    }
    if (h) {
        h->link = l;
        for (size_t i = HEAD_FRAMES; i-- > 0;) {
            h->frame[i].next_free = h->free;
            h->free = &h->frame[i];
        }
        if (getrandom(&h->stream, sizeof(h->stream), 0) < 0) {
            h->stream = (uint32_t)base_now_ns();
        }
        snprintf(h->state.model, sizeof(h->state.model), "%s", model);
    }
    return h;
}

const struct brd_route *head_newest(const struct head *h)
{
    const struct head_epoch *best = NULL;

    for (size_t i = 0; i < HEAD_EPOCHS_MAX; i++) {
        const struct head_epoch *e = &h->epoch[i];

        best = e->number && (!best || e->number > best->number) ? e : best;
    }
    return best ? best->route : NULL;
}
