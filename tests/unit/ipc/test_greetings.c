/* SPDX-License-Identifier: Apache-2.0 */
/* How two boards notice each other: both count their link as up or, some time later, neither. */
#include <time.h>

#include "apps/link/common/link.h"
#include "apps/link/hop/hop.h"
#include "apps/link/route/route.h"
#include "apps/link/transport/code.h"
#include "apps/link/weights/fetch.h"
#include "tests/harness.h"
#include "tests/unit/ipc/fake_wire.h"

#define TICK_NS (250 * BASE_NS_PER_MS)
#define SETTLED_TICKS 120
#define EVENTS 60

static struct board {
    struct lnk_transport transport; /* the first member: sends() finds the board by it */
    struct link link;
    bool up;           /* its connections */
    bool is_silent;    /* what it sends is lost */
    unsigned redialed; /* how often it gave its connections up */
} board[2];
static uint64_t clock_ns;
static unsigned lost_one_in; /* sendings that fail, or vanish; 0: none */

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    (void)id;
    ret->tv_sec = (time_t)(clock_ns / BASE_NS_PER_S);
    ret->tv_nsec = (long)(clock_ns % BASE_NS_PER_S);
    return 0;
}

void __wrap_link_log(const char *format, ...);
void __wrap_link_log(const char *format, ...)
{
    (void)format;
}

/* What links.c calls and is not tried here. */
void hop_plan(struct link *l, size_t from, const struct lnk_message *m)
{
    (void)l, (void)from, (void)m;
}
void hop_frame(struct link *l, size_t from, const struct lnk_message *m)
{
    (void)l, (void)from, (void)m;
}
void hop_cancel(struct link *l, size_t from, const struct lnk_message *m)
{
    (void)l, (void)from, (void)m;
}
void route_answer(struct link *l, size_t from, const struct lnk_message *m)
{
    (void)l, (void)from, (void)m;
}
void route_credit(struct link *l, size_t from, const struct lnk_message *m)
{
    (void)l, (void)from, (void)m;
}
void fetch_want(struct link *l, size_t from, const struct lnk_message *m)
{
    (void)l, (void)from, (void)m;
}
void fetch_leaf(struct link *l, size_t from, const struct lnk_message *m)
{
    (void)l, (void)from, (void)m;
}
void own_state_take(struct link *l, size_t from, const struct lnk_message *m)
{
    (void)l, (void)from, (void)m;
}
bool route_error(struct link *l, size_t from, const struct lnk_message *m)
{
    (void)l, (void)from, (void)m;
    return false;
}
void hop_error(struct link *l, size_t from, const struct lnk_error *e)
{
    (void)l, (void)from, (void)e;
}
void hop_peer_gone(struct link *l, size_t peer)
{
    (void)l, (void)peer;
}
void route_peer_gone(struct link *l, size_t peer)
{
    (void)l, (void)peer;
}
void fetch_peer_gone(struct link *l, size_t peer)
{
    (void)l, (void)peer;
}
void own_state_joined(struct link *l, size_t peer)
{
    (void)l, (void)peer;
}

static int sends(struct lnk_transport *t, size_t peer, enum lnk_lane lane, struct lnk_bytes first,
                 const struct lnk_bytes *range, size_t count, void (*released)(void *), void *arg)
{
    struct board *b = (struct board *)t;
    size_t from = (size_t)(b - board);

    (void)peer, (void)released, (void)arg;
    if (!b->up) {
        return LNK_E_DOWN;
    }
    if (lost_one_in && t_random() % lost_one_in == 0) {
        return t_random() % 2 ? -ENOMEM : 0;
    }
    if (!b->is_silent) {
        packet_put(from, 1 - from, lane, first, range, count);
    }
    return 0;
}

static void redial(struct lnk_transport *t, size_t peer, const char *why)
{
    struct board *b = (struct board *)t;

    (void)peer, (void)why;
    b->redialed++;
}

static const struct lnk_code code = {.kind = "fake", .send = sends, .redial = redial};

/* Its process begins. */
static void start(size_t i)
{
    struct board *b = &board[i];

    *b = (struct board){.transport = {.code = &code, .peer_count = 1}};
    b->link.transport = &b->transport;
    b->link.take = links_take;
    b->link.name = i ? "b" : "a";
    b->link.instance = t_random() | 1;
    b->link.boards.count = 1;
    strcpy(b->link.boards.board[0].name, i ? "a" : "b");
}

static void go_up(size_t i)
{
    if (!board[i].up) {
        board[i].up = true;
        links_up(&board[i].link, 0);
    }
}

/* What is on its way is lost. */
static void go_down(size_t i)
{
    if (board[i].up) {
        struct packet **at = &packets;

        board[i].up = false;
        while (*at) {
            if ((*at)->from == i) {
                packet_free(packet_take(at));
            } else {
                at = &(*at)->next;
            }
        }
        links_down(&board[i].link, 0, "the test says so");
    }
}

static void deliver(unsigned most)
{
    while (packets && most-- > 0) {
        struct packet *p = packet_take(packet_choose(false, NULL));
        struct lnk_bytes part[1 + LNK_PARTS_MAX] = {{p->first, p->first_bytes}};

        memcpy(part + 1, p->part, p->parts * sizeof(part[0]));
        links_message(&board[p->to].link, 0, part, 1 + p->parts);
        packet_free(p);
    }
}

static void pass(unsigned ticks)
{
    while (ticks-- > 0) {
        clock_ns += TICK_NS;
        for (size_t i = 0; i < 2; i++) {
            links_tick(&board[i].link, clock_ns);
            if (board[i].redialed) {
                board[i].redialed = 0;
                go_down(i);
                go_up(i);
            }
        }
        deliver(1000);
    }
}

static void begin(void)
{
    clock_ns = 1000 * BASE_NS_PER_S;
    lost_one_in = 0;
    while (packets) {
        packet_free(packet_take(&packets));
    }
    start(0);
    start(1);
}

static bool joined(size_t i)
{
    return board[i].link.peer[0].joined;
}

TEST(a_lost_greeting_is_repeated)
{
    begin();
    go_up(1);
    board[0].is_silent = true;
    go_up(0);
    deliver(1000);
    T_TRUE(joined(0));
    T_TRUE(!joined(1));
    board[0].is_silent = false;
    pass(8);
    T_TRUE(joined(0));
    T_TRUE(joined(1));
    T_EQ(board[0].link.peer[0].losses, 0);
}

TEST(a_peer_that_does_not_answer_is_given_up)
{
    begin();
    go_up(0);
    go_up(1);
    pass(8);
    T_TRUE(joined(0));
    T_TRUE(joined(1));
    board[1].is_silent = true; /* it hears the other, and says nothing */
    pass(SETTLED_TICKS);
    T_TRUE(!joined(0));
    T_TRUE(joined(1) || board[1].link.peer[0].losses > 0);
    board[1].is_silent = false;
    pass(SETTLED_TICKS);
    T_TRUE(joined(0));
    T_TRUE(joined(1));
}

static void event(void)
{
    size_t i = t_random() % 2;

    switch (t_random() % 8) {
    case 0:
        go_down(i);
        break;
    case 1: /* restarted: the other notices sooner or later */
        go_down(i);
        start(i);
        break;
    case 2:
        board[i].is_silent = t_random() % 2;
        break;
    case 3:
        pass((unsigned)t_range(1, 12));
        break;
    case 4:
    case 5:
        deliver((unsigned)t_range(1, 3));
        break;
    default:
        go_up(i);
    }
}

TEST(whatever_happens_both_agree_afterwards)
{
    for (int round = 0; round < t_times(3000); round++) {
        uint64_t losses[2];

        begin();
        lost_one_in = 4;
        for (int i = 0; i < EVENTS; i++) {
            event();
        }
        lost_one_in = 0;
        for (size_t i = 0; i < 2; i++) {
            board[i].is_silent = false;
            go_up(i);
        }
        pass(SETTLED_TICKS);
        for (size_t i = 0; i < 2; i++) {
            losses[i] = board[i].link.peer[0].losses;
            T_TRUE(joined(i));
        }
        pass(SETTLED_TICKS);
        for (size_t i = 0; i < 2; i++) {
            T_TRUE(joined(i));
            T_EQ(losses[i], board[i].link.peer[0].losses);
        }
    }
}

TEST_MAIN()
