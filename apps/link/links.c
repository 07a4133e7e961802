/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: who is there, and what the way to them costs. */
#include "apps/link/common/link.h"
#include "apps/link/hop/hop.h"
#include "apps/link/route/route.h"
#include "apps/link/weights/fetch.h"
#include "base/base.h"

#define FIRST_ROUNDS 12u /* one after the other when a link comes up: trips and pairs by turns */
#define PING_NS (2 * BASE_NS_PER_S)
#define PAIR_NS (4 * BASE_NS_PER_S)
#define WIRE_NS (1 * BASE_NS_PER_S)
#define PING_LOST_NS (2 * BASE_NS_PER_S)
#define PINGS_LOST_MAX 4u /* then the link is made anew: heartbeats do not see everything */
#define GREET_NS (1 * BASE_NS_PER_S) /* doubled: a board of another version never answers */
#define GREET_MOST_NS (8 * BASE_NS_PER_S)

static int ping(struct link *l, size_t peer, enum lnk_lane lane, size_t bytes)
{
    static const uint8_t zeros[LNK_PING_LARGE_BYTES];
    struct lnk_message m = {.header.type = LNK_PING, .ping.id = ++l->peer[peer].pings};
    struct lnk_bytes large = {zeros, bytes};

    return link_put(l, peer, lane, &m, &large, bytes > 0, NULL, NULL);
}

static void ping_trip(struct link *l, size_t peer, uint64_t now_ns)
{
    struct link_peer *p = &l->peer[peer];

    ping(l, peer, LNK_URGENT, 0);
    p->ping_id = p->pings;
    p->ping_sent_ns = now_ns;
}

/* Both in the lane of frames, where nothing comes between them. */
static void ping_pair(struct link *l, size_t peer, uint64_t now_ns)
{
    struct link_peer *p = &l->peer[peer];

    if (ping(l, peer, LNK_BULK, 0) == 0 && ping(l, peer, LNK_BULK, LNK_PING_LARGE_BYTES) == 0) {
        p->pair_id = p->pings;
        p->pair_sent_ns = now_ns;
        p->pair_first_ns = 0;
    }
}

static void report(struct link *l, uint64_t now_ns)
{
    struct brd_report r = {.count = l->boards.count};
    struct lnk_transport_stats all;
    struct lnk_peer_stats unused;
    struct lnk_link_cost cost;
    int rc;

    lnk_transport_stats(l->transport, 0, &unused, &all);
    for (size_t i = 0; i < l->boards.count; i++) {
        const struct link_peer *p = &l->peer[i];

        memcpy(r.link[i].name, l->boards.board[i].name, sizeof(r.link[i].name));
        r.link[i].up = p->joined;
        r.link[i].for_s = (double)(now_ns - p->since_ns) / (double)BASE_NS_PER_S;
        r.link[i].losses = p->losses;
        r.link[i].frames = p->frames;
        r.link[i].measured = link_cost(l, i, &cost);
        if (r.link[i].measured) {
            r.link[i].message_us = cost.a_ns / (double)BASE_NS_PER_US;
            r.link[i].kilobyte_us = cost.b_ns; /* ns a byte are us a 1000 bytes */
        }
    }
    r.refused = all.denied;
    rc = brd_report_write(l->report_folder, &r);
    if (rc < 0) {
        link_log("%s: no reports for pipectl board list: %s", l->report_folder, strerror(-rc));
        l->report_folder = NULL;
    }
    l->report_ns = now_ns + BRD_REPORT_EVERY_S * BASE_NS_PER_S;
}

static void see_wire(struct link *l, size_t peer, uint64_t now_ns)
{
    struct link_peer *p = &l->peer[peer];
    struct lnk_wire_use now, use;

    if (now_ns - p->wire_ns < WIRE_NS || lnk_transport_wire(l->transport, peer, &now) != 0) {
        return;
    }
    use = (struct lnk_wire_use){.busy_ns = now.busy_ns - base_min(p->wire.busy_ns, now.busy_ns),
                                .bytes = now.bytes - base_min(p->wire.bytes, now.bytes)};
    if (lnk_measure_wire(&p->measure, &use, now_ns - p->wire_ns)) {
        p->wire = now;
        p->wire_ns = now_ns;
    }
}

static void greet(struct link *l, size_t peer, uint32_t features)
{
    struct link_peer *p = &l->peer[peer];
    struct lnk_message m = {.header.type = LNK_HELLO};

    m.hello.version_min = m.hello.version_max = LNK_VERSION;
    m.hello.features = features | LNK_HELLO_CANCEL | LNK_HELLO_PICTURES |
                       ((uint32_t)(p->losses % UINT16_MAX) + 1) << LNK_HELLO_LOST_SHIFT;
    m.hello.instance = l->instance;
    strncpy(m.hello.name, l->name, sizeof(m.hello.name) - 1);
    /* The bulk lane: what follows there is behind it. */
    p->greet_wait_ns = base_min(base_max(2 * p->greet_wait_ns, GREET_NS), GREET_MOST_NS);
    p->greet_ns = base_now_ns() + p->greet_wait_ns;
    link_put(l, peer, LNK_BULK, &m, NULL, 0, NULL, NULL);
}

void links_tick(struct link *l, uint64_t now_ns)
{
    if (l->report_folder && now_ns >= l->report_ns) {
        report(l, now_ns);
    }
    for (size_t i = 0; i < l->boards.count; i++) {
        struct link_peer *p = &l->peer[i];

        if (p->ping_id && now_ns - p->ping_sent_ns > PING_LOST_NS) {
            p->ping_id = 0;
            if (++p->pings_lost >= PINGS_LOST_MAX) {
                p->pings_lost = 0;
                lnk_transport_redial(l->transport, i, "it does not answer");
            }
        }
        if (p->up && !p->joined && now_ns >= p->greet_ns) {
            greet(l, i, 0);
        }
        if (p->joined && !p->ping_id && now_ns >= p->next_ping_ns) {
            p->next_ping_ns = now_ns + PING_NS;
            ping_trip(l, i, now_ns);
        }
        if (p->joined) {
            see_wire(l, i, now_ns);
        }
        /* However late, a pair is answered: it waits behind frames. */
        if (p->joined && !p->pair_id && now_ns >= p->next_pair_ns) {
            p->next_pair_ns = now_ns + PAIR_NS;
            ping_pair(l, i, now_ns);
        }
    }
}

static void round_done(struct link *l, size_t peer, uint64_t now_ns)
{
    struct link_peer *p = &l->peer[peer];
    struct lnk_link_cost cost;

    if (++p->rounds == FIRST_ROUNDS && lnk_measure_get(&p->measure, &cost) == 0) {
        link_log("%s: a message takes %.0f us (+-%.0f) and %.3f us (+-%.3f) a kB",
                 l->boards.board[peer].name, cost.a_ns / 1e3, cost.a_err_ns / 1e3, cost.b_ns,
                 cost.b_err_ns);
        l->report_ns = 0;
    }
    if (p->rounds < FIRST_ROUNDS && p->rounds % 2 == 1) {
        ping_pair(l, peer, now_ns);
    } else if (p->rounds < FIRST_ROUNDS) {
        ping_trip(l, peer, now_ns);
    }
}

static void answer_ping(struct link *l, size_t peer, const struct lnk_message *m)
{
    struct lnk_message pong = {.header.type = LNK_PONG, .ping = m->ping};

    link_put(l, peer, LNK_URGENT, &pong, NULL, 0, NULL, NULL);
}

static void take_pong(struct link *l, size_t peer, const struct lnk_message *m)
{
    struct link_peer *p = &l->peer[peer];
    uint64_t now_ns = base_now_ns();

    p->pings_lost = 0;
    if (p->ping_id && m->ping.id == p->ping_id) {
        p->ping_id = 0;
        lnk_measure_trip(&p->measure, now_ns - p->ping_sent_ns);
        round_done(l, peer, now_ns);
    } else if (p->pair_id && m->ping.id == p->pair_id - 1) {
        p->pair_first_ns = now_ns;
    } else if (p->pair_id && m->ping.id == p->pair_id && p->pair_first_ns) {
        p->pair_id = 0;
        lnk_measure_pair(&p->measure, LNK_PING_LARGE_BYTES, p->pair_first_ns - p->pair_sent_ns,
                         now_ns - p->pair_sent_ns);
        round_done(l, peer, now_ns);
    } /* else too late, or of nobody's ping */
}

/* It takes our messages, and we know who it is. */
static void join(struct link *l, size_t peer)
{
    struct link_peer *p = &l->peer[peer];

    p->joined = true;
    p->since_ns = base_now_ns();
    l->report_ns = 0;
    p->rounds = p->pings_lost = 0; /* ids go on: answers may be late */
    p->ping_id = p->pair_id = 0;
    p->next_ping_ns = 0; /* at once; pairs follow it */
    p->next_pair_ns = p->since_ns + PAIR_NS;
    p->measure = (struct lnk_measure){0};
    p->wire = (struct lnk_wire_use){0};
    p->wire_ns = p->since_ns;
    l->news = true;
    link_log("%s is there", l->boards.board[peer].name);
    own_state_joined(l, peer);
}

void links_up(void *user, size_t peer)
{
    struct link *l = user;

    l->peer[peer].up = true;
    l->peer[peer].greet_wait_ns = 0;
    greet(l, peer, 0);
    if (l->peer[peer].greeted) { /* before we reached it */
        join(l, peer);
    }
}

static void leave(struct link *l, size_t peer)
{
    struct link_peer *p = &l->peer[peer];

    p->joined = p->greeted = false;
    p->since_ns = base_now_ns();
    p->losses++;
    l->report_ns = 0;
    l->news = true;
    route_peer_gone(l, peer);
    hop_peer_gone(l, peer);
    fetch_peer_gone(l, peer);
}

void links_down(void *user, size_t peer, const char *why)
{
    struct link *l = user;

    l->peer[peer].up = false;
    if (l->peer[peer].joined) {
        link_log("%s is gone: %s", l->boards.board[peer].name, why);
        leave(l, peer);
    }
}

static void take_hello(struct link *l, size_t peer, const struct lnk_message *message)
{
    const struct lnk_hello *m = &message->hello;
    struct link_peer *p = &l->peer[peer];
    uint32_t lost_us = m->features >> LNK_HELLO_LOST_SHIFT;
    bool is_back = m->features & LNK_HELLO_BACK;

    if (m->version_min > LNK_VERSION || m->version_max < LNK_VERSION) {
        link_log("%s speaks versions %u to %u, not %u", l->boards.board[peer].name, m->version_min,
                 m->version_max, LNK_VERSION);
        return;
    }
    if (p->joined && p->instance != m->instance) { /* it was restarted before it was missed */
        leave(l, peer);
    } else if (p->joined && (lost_us ? lost_us != p->lost_us : !is_back)) {
        link_log("%s is gone: it lost its connection to this board", l->boards.board[peer].name);
        leave(l, peer); /* it forgot what it had from here */
    }
    p->instance = m->instance;
    p->lost_us = lost_us;
    p->features = m->features;
    p->greeted = true;
    if (p->up && !is_back) {
        greet(l, peer, LNK_HELLO_BACK);
    }
    if (p->up && !p->joined) {
        join(l, peer);
    }
}

static void take_error(struct link *l, size_t board, const struct lnk_message *m)
{
    if (!route_error(l, board, m)) {
        hop_error(l, board, &m->error);
    }
}

static link_take *const takers[] = {
    [LNK_HELLO] = take_hello,    [LNK_PLAN] = hop_plan,        [LNK_FRAME] = hop_frame,
    [LNK_ANSWER] = route_answer, [LNK_ERROR] = take_error,     [LNK_CREDIT] = route_credit,
    [LNK_PING] = answer_ping,    [LNK_PONG] = take_pong,       [LNK_WANT] = fetch_want,
    [LNK_LEAF] = fetch_leaf,     [LNK_BOARD] = own_state_take, [LNK_CANCEL] = hop_cancel,
};
_Static_assert(base_array_count(takers) == LNK_TYPE_COUNT, "the newest type has its taker, too");

void links_take(struct link *l, size_t board, const struct lnk_message *m)
{
    takers[m->header.type](l, board, m);
}

static void take_message(struct link *l, size_t peer, const struct lnk_bytes *part, size_t count)
{
    size_t part_bytes[LNK_PARTS_MAX], parts = count - 1;
    struct lnk_message m;
    int rc;

    for (size_t i = 0; i < parts && i < LNK_PARTS_MAX; i++) {
        part_bytes[i] = part[1 + i].bytes;
    }
    rc = lnk_get(part[0].data, part[0].bytes, part_bytes, parts, &m);
    if (rc != 0 || !takers[m.header.type]) {
        link_log("%s sent a message that is %s; it is ignored", l->boards.board[peer].name,
                 rc == LNK_E_VERSION ? "of another version" : "malformed");
        return;
    }
    m.part = part + 1;
    links_take(l, peer, &m);
}

void links_message(void *user, size_t peer, const struct lnk_bytes *part, size_t count)
{
    link_blame(user, peer);
    take_message(user, peer, part, count);
    link_blame(user, LINK_NOBODY);
}
