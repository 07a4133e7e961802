/* SPDX-License-Identifier: Apache-2.0 */
/** tests/boards/link_cases.h - what boards do together to try a transport; see link_node.c */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/link/transport/transport.h"

struct node {
    struct lnk_transport *transport;
    struct brd_board peers[LNK_PEERS_MAX];
    size_t peer_count, rooms;
    bool suite, up[LNK_PEERS_MAX];
    /* of cases */
    uint64_t next_in[LNK_PEERS_MAX][LNK_LANES], next_out[LNK_PEERS_MAX][LNK_LANES];
    uint64_t wrong, lent, returned, bytes_in, pongs;
    uint32_t finished[LNK_PEERS_MAX];
    char problem[256];
};

void cases_message(struct node *n, size_t peer, const struct lnk_bytes *part, size_t count);
void cases_send(struct node *n, size_t peer, size_t count, size_t bytes);
void cases_round_trips(struct node *n, size_t peer, size_t count, size_t bytes);
/** cases_run() - all nodes call it. Prints "ok CASE" and "FAIL CASE". Return: failures. */
int cases_run(struct node *n);
/** cases_after_close() - are all lent bytes back? Return: 1 if not. */
int cases_after_close(struct node *n);
