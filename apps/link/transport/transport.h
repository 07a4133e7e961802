/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/transport/transport.h - messages to other boards, over whatever carries them
 *
 * A message is a first part and up to LNK_RANGES_MAX ranges of bytes. Messages to one peer in one
 * lane arrive in order or, when the peer is lost, not at all; between lanes there is no order.
 * The urgent lane is for small messages, which must not wait behind borders.
 *
 * "zmq" (ZeroMQ): peers come and go. Each has its key; both ends prove theirs (CurveZMQ), and who
 * is not on the list is refused before its first message. A peer that is gone or silent is down
 * within a second. "mpi" (Open MPI): all ranks of one job; no keys, no peer ever goes down alone:
 * when a rank dies, the job dies. It wakes up by timer, because MPI has no descriptor.
 *
 * Threads: one, which never waits in here but in open and close. Nothing here logs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/boards/known_boards.h"

#define LNK_PEERS_MAX 16u
#define LNK_RANGES_MAX 16u

struct lnk_transport;
struct lnk_wire_use; /* apps/link/wire/measure.h */

enum lnk_lane { LNK_URGENT, LNK_BULK, LNK_LANES };

struct lnk_bytes {
    const void *data;
    size_t bytes;
};

/* What the transport tells. Called by lnk_transport_dispatch() only. @peer: index in the list. */
struct lnk_listener {
    void *user;
    /* The peer takes messages from now on. */
    void (*up)(void *user, size_t peer);
    /* It does not; what was sent and not answered may be lost. @why: a few words, never a key. */
    void (*down)(void *user, size_t peer, const char *why);
    /* @part: @count parts, the first part first, valid until it returns. */
    void (*message)(void *user, size_t peer, const struct lnk_bytes *part, size_t count);
    /* A peer for which lnk_send() returned LNK_E_FULL has room again. */
    void (*room)(void *user, size_t peer);
};

struct lnk_config {
    const char *kind;     /* "zmq" or "mpi" */
    const char *listen;   /* zmq: HOST:PORT; port 0: any */
    const char *self;     /* mpi: the own name; zmq: unused */
    struct brd_keys keys; /* zmq: the own ones */
    bool trusted_wire;    /* zmq: no encryption, keys are claimed and not proved; both ends alike */
    /* at most LNK_PEERS_MAX. zmq: an address is HOST:PORT, IPv6 in brackets. mpi: all ranks in
     * order, self too, by their names */
    const struct brd_board *peers;
    size_t peer_count;
    uint64_t part_bytes_max;  /* a longer part from a peer ends its connection; 0: 256 MiB */
    uint64_t queue_bytes_max; /* of ranges, unsent to one peer, before LNK_E_FULL; 0: 64 MiB */
    uint32_t silent_ms;       /* zmq: a peer that is silent so long is lost; 0: 550 */
    struct lnk_listener listener;
};

struct lnk_peer_stats {
    bool up;
    uint64_t messages_out, messages_in;
    uint64_t queued_messages, queued_bytes; /* accepted and not yet given to the kernel */
    uint64_t refused_full, ups, downs;
};
struct lnk_transport_stats {
    uint64_t denied;  /* handshakes: not on the list, wrong key, no key, not our protocol */
    uint64_t garbage; /* messages dropped: too many parts, from nobody on the list */
};

enum { LNK_E_FULL = 1, LNK_E_DOWN = 2 };

/** lnk_transport_open() - copies @config. @ret_error: a sentence without keys if it fails.
 * Return: 0; -ENOTSUP: not built with that kind; -EINVAL: no or bad keys, names or addresses;
 * -EADDRINUSE, ... */
int lnk_transport_open(const struct lnk_config *config, struct lnk_transport **ret,
                       char ret_error[256]);
/** lnk_transport_close() - drops what is queued; releases all ranges. mpi: waits for the other
 * ranks to close. @t may be NULL. Return: NULL. */
struct lnk_transport *lnk_transport_close(struct lnk_transport *t);

/** lnk_transport_fd() - readable when lnk_transport_dispatch() has something to do. */
int lnk_transport_fd(const struct lnk_transport *t);
/** lnk_transport_dispatch() - receives, notices, calls the listener, which may send but not
 * close. */
void lnk_transport_dispatch(struct lnk_transport *t);
/** lnk_transport_port() - zmq: the port that it listens on; mpi: 0. */
uint16_t lnk_transport_port(const struct lnk_transport *t);

/**
 * lnk_send() - sends a message
 * @first: copied
 * @range: @count ranges, at most LNK_RANGES_MAX; a message without any is not refused as full
 * @released: NULL: ranges are copied. Else they must not change until it is called with @arg, which
 * happens once, in dispatch or close: sent or lost, the bytes are the caller's again.
 *
 * Return: 0; LNK_E_FULL: wait for room(); LNK_E_DOWN; -EINVAL; -ENOMEM. Unless it returns 0,
 * nothing is sent and @released is not called.
 */
int lnk_send(struct lnk_transport *t, size_t peer, enum lnk_lane lane, struct lnk_bytes first,
             const struct lnk_bytes *range, size_t count, void (*released)(void *arg), void *arg);

/** lnk_transport_wire() - @ret: what carries the bulk lane to @peer did since it is up. Return: 0;
 * LNK_E_DOWN: it is not up; -ENOTSUP: this transport or kernel does not know. */
int lnk_transport_wire(const struct lnk_transport *t, size_t peer, struct lnk_wire_use *ret);
/** lnk_transport_redial() - ends the connections to a peer that does not answer, and connects
 * again: the next dispatch calls down() with @why, a constant. mpi: nothing. */
void lnk_transport_redial(struct lnk_transport *t, size_t peer, const char *why);
void lnk_transport_stats(const struct lnk_transport *t, size_t peer, struct lnk_peer_stats *ret,
                         struct lnk_transport_stats *ret_all);
