/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/ipc/fake_wire.h - messages on their way between the boards of one test
 *
 * A node is any number that the test gives a board. Bytes are copied when a packet is put.
 */
#pragma once

#include "apps/link/transport/transport.h"
#include "apps/link/wire/messages.h"

struct packet {
    struct packet *next;
    size_t from, to; /* nodes */
    enum lnk_lane lane;
    uint8_t first[LNK_FIRST_MAX];
    size_t first_bytes, parts, bytes; /* bytes: of all parts */
    struct lnk_bytes part[LNK_PARTS_MAX];
    uint8_t *data;               /* owned; of all parts */
    void (*released)(void *arg); /* NULL: called, or nobody asked for it */
    void *arg;
};
/* The oldest first. */
extern struct packet *packets;

struct packet *packet_put(size_t from, size_t to, enum lnk_lane lane, struct lnk_bytes first,
                          const struct lnk_bytes *range, size_t count);
/** packet_release() - calls released(), once. */
void packet_release(struct packet *p);
/** packet_choose() - one that may come next: any, or the first of its way and lane. @may: NULL: all
 * may. Return: where it is linked; *it is NULL: none. */
struct packet **packet_choose(bool any_order, bool (*may)(const struct packet *p));
/** packet_take() - out of the list, and released. Return: the caller's, packet_free(). */
struct packet *packet_take(struct packet **at);
void packet_free(struct packet *p);
/** packet_read() - with the packet's parts; aborts if it is not a valid message. */
void packet_read(const struct packet *p, struct lnk_message *ret);
