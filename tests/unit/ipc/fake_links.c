/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ipc/fake_links.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "tests/unit/ipc/fake_wire.h"

struct wire wire;
struct node node[NODES];
static uint64_t now_ns;
static uint64_t bytes_max;
static char folders[NODES][300];

static size_t other_end(size_t i, size_t peer)
{
    return i == 0 ? peer + 1 : 0;
}

static size_t peer_of(size_t i, size_t other)
{
    return i == 0 ? other - 1 : 0;
}

static int send(struct lnk_transport *t, size_t peer, enum lnk_lane lane, struct lnk_bytes first,
                const struct lnk_bytes *range, size_t count, void (*released)(void *), void *arg)
{
    size_t from = (size_t)((struct node *)t - node), bytes = count ? range[0].bytes : 0;
    struct lnk_peer_stats *stats = &t->peer[peer];
    struct packet *p;

    if (!stats->up) {
        return LNK_E_DOWN;
    }
    if (wire.queue_bytes_max && stats->queued_bytes > 0 &&
        stats->queued_bytes + bytes > wire.queue_bytes_max) {
        wire.full++;
        return LNK_E_FULL;
    }
    p = packet_put(from, other_end(from, peer), lane, first, range, count);
    p->released = released;
    p->arg = arg;
    stats->queued_bytes += bytes;
    return 0;
}

static const struct lnk_code code = {.kind = "fake", .send = send};

/* Takes it from the list. */
static struct packet *take(struct packet **at)
{
    const struct packet *p = *at;

    node[p->from].base.peer[peer_of(p->from, p->to)].queued_bytes -= p->bytes;
    return packet_take(at);
}

static void receive(const struct packet *p)
{
    struct link *l = &node[p->to].link;
    size_t peer = peer_of(p->to, p->from);
    struct lnk_message m;

    packet_read(p, &m);
    if (m.header.type == LNK_WANT) {
        wire.wants++;
        fetch_want(l, peer, &m);
        return;
    }
    wire.lists += m.leaf.leaf == LNK_LEAF_LIST;
    wire.refusals += m.leaf.leaf == LNK_LEAF_REFUSED;
    wire.leaves += m.leaf.leaf < LNK_LEAF_REFUSED;
    if (wire.flip && t_random() % wire.flip == 0) {
        wire.flipped++;
        p->data[t_random() % p->bytes] ^= (uint8_t)(1u << t_random() % 8);
    }
    fetch_leaf(l, peer, &m);
    if (wire.twice && t_random() % wire.twice == 0) {
        fetch_leaf(l, peer, &m);
    }
}

static void wait_for_threads(void)
{
    struct pollfd fds[NODES];

    for (size_t i = 0; i < NODES; i++) {
        fds[i] = (struct pollfd){fetch_fd(&node[i].link), POLLIN, 0};
    }
    poll(fds, NODES, 20);
}

bool links_turn(void)
{
    struct packet **at = packet_choose(wire.any_order, NULL), *p = *at;

    if (!p) {
        wait_for_threads();
    } else {
        take(at);
        if (wire.lose && t_random() % wire.lose == 0) {
            wire.lost++;
        } else {
            receive(p);
        }
        packet_free(p);
    }
    for (size_t i = 0; i < NODES; i++) {
        fetch_go(&node[i].link, now_ns);
    }
    return packets != NULL;
}

void links_pass(uint64_t ns)
{
    now_ns += ns;
}

/* ---- boards ---- */

static void set_joined(size_t i, bool on)
{
    node[0].link.peer[i - 1].joined = node[i].link.peer[0].joined = on;
    node[0].base.peer[i - 1].up = node[i].base.peer[0].up = on;
}

void links_cut(size_t i)
{
    for (struct packet **at = &packets; *at;) {
        struct packet *p = *at;

        if (p->from == i || p->to == i) {
            take(at);
            packet_free(p);
        } else {
            at = &p->next;
        }
    }
    set_joined(i, false);
    fetch_peer_gone(&node[0].link, i - 1);
    fetch_peer_gone(&node[i].link, 0);
}

void links_join(size_t i)
{
    set_joined(i, true);
}

static void start(size_t i)
{
    struct node *n = &node[i];

    n->base.code = &code;
    n->base.peer_count = n->link.boards.count = i == 0 ? NODES - 1 : 1;
    n->link.transport = &n->base;
    snprintf(n->link.boards.board[0].name, sizeof(n->link.boards.board[0].name), "%s",
             i == 0 ? "b1" : "head");
    if (fetch_new(&n->link, folders[i], bytes_max, links_path) < 0) {
        abort();
    }
}

void links_restart(size_t i)
{
    links_cut(i);
    fetch_free(&node[i].link);
    start(i);
    links_join(i);
}

void links_begin(const char *folder, uint64_t max)
{
    memset(node, 0, sizeof(node));
    wire = (struct wire){0};
    now_ns = 1;
    bytes_max = max;
    for (size_t i = 0; i < NODES; i++) {
        snprintf(folders[i], sizeof(folders[i]), "%s/%zu", folder, i);
        mkdir(folders[i], 0755);
        start(i);
    }
    for (size_t i = 1; i < NODES; i++) {
        links_join(i);
    }
}

void links_end(void)
{
    for (size_t i = 1; i < NODES; i++) {
        links_cut(i); /* as a transport that closes */
    }
    for (size_t i = 0; i < NODES; i++) {
        fetch_free(&node[i].link);
    }
}
