/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ipc/fake_wire.h"

#include "tests/harness.h"

struct packet *packets;

struct packet *packet_put(size_t from, size_t to, enum lnk_lane lane, struct lnk_bytes first,
                          const struct lnk_bytes *range, size_t count)
{
    struct packet *p = calloc(1, sizeof(*p)), **end = &packets;
    size_t at = 0;

    p->from = from;
    p->to = to;
    p->lane = lane;
    p->first_bytes = first.bytes;
    p->parts = count;
    memcpy(p->first, first.data, first.bytes);
    for (size_t i = 0; i < count; i++) {
        p->bytes += range[i].bytes;
    }
    p->data = malloc(p->bytes + 1);
    for (size_t i = 0; i < count; i++) {
        p->part[i] = (struct lnk_bytes){p->data + at, range[i].bytes};
        if (range[i].bytes > 0) {
            memcpy(p->data + at, range[i].data, range[i].bytes);
        }
        at += range[i].bytes;
    }
    while (*end) {
        end = &(*end)->next;
    }
    *end = p;
    return p;
}

void packet_release(struct packet *p)
{
    void (*released)(void *) = p->released;

    p->released = NULL;
    if (released) {
        released(p->arg);
    }
}

static bool same_way(const struct packet *a, const struct packet *b)
{
    return a->from == b->from && a->to == b->to && a->lane == b->lane;
}

struct packet **packet_choose(bool any_order, bool (*may)(const struct packet *p))
{
    struct packet **at = &packets, **none;
    size_t count = 0, n;

    for (; *at; at = &(*at)->next) {
        count += !may || may(*at);
    }
    none = at;
    if (count == 0) {
        return none;
    }
    n = (size_t)t_random() % count;
    for (at = &packets; (may && !may(*at)) || n-- > 0;) {
        at = &(*at)->next;
    }
    if (!any_order) {
        const struct packet *like = *at;

        for (at = &packets; !same_way(*at, like);) {
            at = &(*at)->next;
        }
    }
    return at;
}

struct packet *packet_take(struct packet **at)
{
    struct packet *p = *at;

    *at = p->next;
    p->next = NULL;
    packet_release(p);
    return p;
}

void packet_free(struct packet *p)
{
    free(p->data);
    free(p);
}

void packet_read(const struct packet *p, struct lnk_message *ret)
{
    size_t bytes[LNK_PARTS_MAX];

    for (size_t i = 0; i < p->parts; i++) {
        bytes[i] = p->part[i].bytes;
    }
    if (lnk_get(p->first, p->first_bytes, bytes, p->parts, ret) != 0) {
        abort();
    }
    ret->part = p->part;
}
