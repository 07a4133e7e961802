/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/link/link.h - what the files of the program piped-link share
 *
 * links.c greets boards, measures links and reports on them; serve.c computes other boards' frames
 * by the daemon here; relay.c sends frames from stdin to other boards. One thread, one loop
 * (main.c).
 */
#pragma once

#include <stdio.h>

#include "ipc/boards/link_report.h"
#include "ipc/link/link_measure.h"
#include "ipc/link/link_wire.h"
#include "ipc/link/transport.h"
#include "ipc/piped.h"

struct serve;
struct relay;

/* Another board. */
struct link_peer {
    bool up, joined;   /* joined: up, and it has greeted us */
    uint64_t instance; /* of its greeting; 0: none yet */
    struct lnk_measure measure;
    uint64_t ping_id, ping_sent_ns, ping_bytes, next_ping_ns; /* ping_id 0: none is out */
    uint32_t pings;
    uint64_t since_ns; /* it joined or was lost then */
    uint64_t losses, frames;
};
struct link {
    struct lnk_transport *transport; /* owned */
    struct brd_list boards;
    struct link_peer peer[BRD_MAX];
    const char *name;
    uint64_t instance;
    struct serve *serve;       /* owned */
    struct relay *relay;       /* owned; NULL: this is no relay */
    const char *report_folder; /* NULL: it does not report */
    uint64_t report_ns;        /* the next report is due then; 0: now */
};

/* link_out.c */
/** link_log() - a line for the journal. Keys never stand in one. */
void link_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** link_put() - sends a message; see lnk_put(), lnk_send(). Return: as lnk_send(). */
int link_put(struct link *l, size_t peer, enum lnk_lane lane, const struct lnk_message *m,
             const struct lnk_bytes *range, size_t count, void (*released)(void *arg), void *arg);
int link_put_error(struct link *l, size_t peer, const struct lnk_error *error, const char *text);

/* links.c */
void links_up(void *user, size_t peer);
void links_down(void *user, size_t peer, const char *why);
void links_message(void *user, size_t peer, const struct lnk_bytes *part, size_t count);
/** links_tick() - sends pings that are due, and reports. */
void links_tick(struct link *l, uint64_t now_ns);

/* serve.c */
/** serve_new() - @socket: the daemon's frames socket; NULL: the default. Connects when it is
 * asked. */
int serve_new(struct link *l, const char *socket, struct serve **ret);
struct serve *serve_free(struct serve *s);
void serve_plan(struct serve *s, size_t peer, const struct lnk_message *m);
void serve_frame(struct serve *s, size_t peer, const struct lnk_message *m,
                 const struct lnk_bytes *part);
void serve_peer_gone(struct serve *s, size_t peer);
/** serve_fd() - for poll(); -1: not connected. */
int serve_fd(const struct serve *s);
/** serve_answers() - sends what the daemon has answered. */
void serve_answers(struct serve *s);

/* relay.c */
/** relay_new() - @model: as the other boards' daemons have it; @to: their names with commas, NULL:
 * all; @shape: of the f32 input, such as 1x3x224x224. Return: 0; -EINVAL, said in @ret_error. */
int relay_new(struct link *l, const char *model, const char *to, const char *shape,
              struct relay **ret, char ret_error[256]);
struct relay *relay_free(struct relay *r);
void relay_joined(struct relay *r, size_t peer);
void relay_gone(struct relay *r, size_t peer);
void relay_credit(struct relay *r, size_t peer, const struct lnk_credit *c);
void relay_answer(struct relay *r, size_t peer, const struct lnk_message *m,
                  const struct lnk_bytes *part);
void relay_error(struct relay *r, size_t peer, const struct lnk_message *m);
/** relay_wants_input() - is there room for another frame, and more to read? */
bool relay_wants_input(const struct relay *r);
void relay_input(struct relay *r);
/** relay_go() - sends what is due, writes what is answered. Return: false: all is done. */
bool relay_go(struct relay *r, uint64_t now_ns);
