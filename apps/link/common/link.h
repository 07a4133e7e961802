/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/common/link.h - what the files of the program piped-link share
 *
 * links.c greets boards, measures links and reports on them. hop.c computes frames by segments of
 * the daemon here (segments.c) and sends them on; route.c is the head of this board's own models;
 * talk.c tells the daemon how boards and routes are, and hears routes; own_state.c is what this
 * board says of itself; fetch.h moves weights. One loop (main.c), whose thread owns all this; a
 * second one reads and writes files (jobs.c).
 *
 * A board is a peer's index in the list, or LINK_SELF. link_put() to LINK_SELF is a call.
 */
#pragma once

#include <poll.h>
#include <stdio.h>

#include "apps/link/transport/transport.h"
#include "apps/link/wire/measure.h"
#include "apps/link/wire/messages.h"
#include "ipc/boards/board_state.h"
#include "ipc/piped.h"

#define LINK_SELF BRD_MAX
#define LINK_BOARDS (BRD_MAX + 1u) /* the others and this one */
#define LINK_NOBODY SIZE_MAX

struct fetch;
struct front;
struct segments;
struct hops;
struct heads;
struct own_state;
struct talk;

/* Another board. */
struct link_peer {
    bool up, joined;                  /* joined: up, and it has greeted us */
    bool greeted;                     /* since it was lost last */
    uint64_t instance;                /* of its greeting; 0: none yet */
    uint32_t lost_us;                 /* of its greeting: LNK_HELLO_LOST_SHIFT */
    uint32_t features;                /* of its greeting: LNK_HELLO_ bits */
    uint64_t greet_ns, greet_wait_ns; /* up, and not joined: it is greeted again then */
    char print[BRD_FINGERPRINT_BYTES];
    struct lnk_measure measure;
    struct lnk_wire_use wire; /* at wire_ns */
    uint64_t wire_ns;
    uint64_t ping_id, ping_sent_ns, next_ping_ns; /* ping_id 0: no trip is out */
    uint64_t pair_id, pair_sent_ns, pair_first_ns,
        next_pair_ns;       /* pair_id: of the second; 0: none */
    uint32_t pings, rounds; /* pings: ever sent; rounds: trips and pairs, since it joined */
    uint32_t pings_lost;    /* trips without an answer since the last one */
    uint64_t since_ns;      /* it joined or was lost then */
    uint64_t losses, frames;
    struct brd_state state; /* what it says of itself; all zeros: nothing yet */
};
struct link;

/* Takes a valid message of @board. */
typedef void link_take(struct link *l, size_t board, const struct lnk_message *m);

struct link {
    link_take *take;                 /* links_take(), of what this board sends to itself */
    struct lnk_transport *transport; /* owned */
    struct brd_list boards;
    struct link_peer peer[BRD_MAX];
    const char *name;
    char print[BRD_FINGERPRINT_BYTES]; /* of this board */
    uint64_t instance;
    const char *state_folder, *models_folder; /* models_folder: NULL: none */
    const char *frames_path, *control_path;   /* the daemon's sockets */
    uint64_t unused_ns;                       /* segments that nobody uses so long are unloaded */
    bool daemon_silent;        /* it is there, but has not answered for some seconds */
    struct segments *segments; /* owned, as all below */
    struct hops *hops;
    struct fetch *fetch;
    struct heads *heads;
    struct own_state *own_state;
    struct talk *talk;
    struct front *front;       /* NULL: nothing is spread from here */
    const char *report_folder; /* NULL: it does not write links.json */
    uint64_t report_ns;        /* the next links.json is due then; 0: now */
    bool news;                 /* the daemon shall hear of a change at once */
};

/* out.c */
/** link_log() - a line for the journal. Keys never stand in one, and bytes that are no plain text
 * are "?". Of many lines because of one board most are left out. */
void link_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** link_blame() - lines are because of @board from now on; LINK_NOBODY: of nobody. */
void link_blame(const struct link *l, size_t board);
/** link_name() - Return: of a board, for people. */
const char *link_name(const struct link *l, size_t board);
/** link_print() - Return: a board's fingerprint. */
const char *link_print(const struct link *l, size_t board);
/** link_find() - Return: the board with this fingerprint; LINK_NOBODY. */
size_t link_find(const struct link *l, const char *print);
/** link_is_up() - Return: may messages be sent to it? */
bool link_is_up(const struct link *l, size_t board);
/** link_takes() - Return: it is up, and understands what this LNK_HELLO_ bit stands for. */
bool link_takes(const struct link *l, size_t board, uint32_t feature);
/** link_cost() - Return: false: the link to @peer is not measured, or down. */
bool link_cost(const struct link *l, size_t peer, struct lnk_link_cost *ret);
/** link_put() - sends a message; see lnk_put(), lnk_send(). To LINK_SELF, @released may be called
 * before it returns. Return: as lnk_send(). */
int link_put(struct link *l, size_t board, enum lnk_lane lane, const struct lnk_message *m,
             const struct lnk_bytes *range, size_t count, void (*released)(void *arg), void *arg);
int link_put_error(struct link *l, size_t board, const struct lnk_error *error, const char *text);

/* links.c */
void links_up(void *user, size_t peer);
void links_down(void *user, size_t peer, const char *why);
void links_message(void *user, size_t peer, const struct lnk_bytes *part, size_t count);
/** links_take() - hands a message to those who take its type. */
link_take links_take;
/** links_tick() - sends pings that are due, and reports. */
void links_tick(struct link *l, uint64_t now_ns);

/* own_state.c: the daemon is asked for its execution places and for measured costs of the segments
 * that it serves; the links are measured here. Small changes of measured figures are no news. */
/** own_state_new() - Return: NULL: out of memory. */
struct own_state *own_state_new(struct link *l);
struct own_state *own_state_free(struct own_state *o);
/** own_state() - Return: the present state. */
const struct brd_state *own_state(const struct own_state *o);
struct pollfd own_state_poll(const struct own_state *o);
/** own_state_go() - asks the daemon, tells boards; notices whether the daemon is silent. */
void own_state_go(struct link *l, uint64_t now_ns);
/** own_state_joined() - tells a board that has just come. */
void own_state_joined(struct link *l, size_t peer);
/** own_state_take() - a BOARD message. */
link_take own_state_take;

/* talk.c: two connections: reports go at every change and once a second, one at a time; routes come
 * as the daemon decides. While the daemon is away, the routes stay as they are. */
/** talk_new() - Return: NULL: out of memory. */
struct talk *talk_new(struct link *l);
struct talk *talk_free(struct talk *t);
/** talk_poll() - Return: how many of @ret, at most two. */
size_t talk_poll(const struct talk *t, struct pollfd ret[2]);
void talk_go(struct link *l, uint64_t now_ns);
