/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/board.h - boards and the links between them, as a problem describes them
 *
 * Consecutive stages on one board are a segment. A message of n bytes over a link arrives
 * `ns + ns_per_byte x n` after it was sent, and keeps the link busy for `ns_per_byte x n`: several
 * messages are on their way at once. Plain data; times in ns, energy in nJ, as double.
 */
#pragma once

#include <stddef.h>

#include "pipeline/plan.h"

#define TUN_BOARD_MAX 8u

struct tun_board {
    char name[PL_BOARD_NAME_MAX];
    double memory_bytes;     /* that its segments may take; 0: no bound */
    double energy_max_nj;    /* a frame of the stream; 0: no bound */
    double frames_held;      /* frames that it works on at once: arenas and borders; 0: 1 */
    double port_ns_per_byte; /* of its own socket, either direction; 0: the links alone bound */
    double link_watts;       /* while it sends or receives, beside its cores; 0: none */
};

/* One direction. */
struct tun_link {
    double ns, ns_per_byte;
};

enum tun_comm {
    TUN_COMM_OVERLAPPED, /* links work while boards compute */
    TUN_COMM_ADDED,      /* a board computes or communicates: AutoDiCE, section 3.1 */
};

/* All of a problem about boards; .count 0 or 1: one board, and nothing of this is looked at. */
struct tun_boards {
    size_t count; /* <= TUN_BOARD_MAX */
    size_t head;  /* the board whose clients' frames these are: it has inputs, wants answers */
    enum tun_comm comm;
    double input_bytes, output_bytes; /* of a frame, before the first and after the last unit */
    struct tun_board boards[TUN_BOARD_MAX];
    struct tun_link links[TUN_BOARD_MAX][TUN_BOARD_MAX]; /* [from][to] */
};
#define TUN_BOARDS_NULL ((struct tun_boards){0})
