/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/ipc/fake_boards_private.h - what fake_boards.c (the wire, and what happens) and
 * fake_boards_hops.c (what boards do) share */
#pragma once

#include "tests/unit/ipc/fake_boards.h"

#define PLACES 64u

struct place {
    bool used;
    struct lnk_plan plan;
    size_t next_count, next[BRD_SHARE_MAX];
};
struct held {
    struct held *linked;
    struct lnk_frame frame;
    uint64_t came_ns, value;
};
struct board {
    bool frozen;
    struct place place[PLACES];
    struct held *held;
};

extern struct board board[LINK_BOARDS];
extern size_t board_count;
extern bool sees[LINK_BOARDS][LINK_BOARDS]; /* as far as the first knows */
extern struct boards_told boards_told;

/* fake_boards.c */
bool boards_by_chance(unsigned one_in);
/** boards_nth() - Return: board number @n of all, the head's own last. */
size_t boards_nth(size_t n);
/** boards_put() - a board sends, with @tensors values. Return: false: the other is away. */
bool boards_put(size_t from, size_t to, struct lnk_message *m, uint64_t *value, size_t tensors);
void boards_put_error(size_t from, size_t to, struct lnk_error e, const char *text);
/** boards_close() - the frame of a message arrived at the head, or is lost. */
void boards_close(const struct lnk_message *m);

/* fake_boards_hops.c */
void board_takes(size_t b, size_t from, const struct lnk_message *m);
/** board_lose_place() - it cannot reach @to. */
void board_lose_place(size_t b, struct place *p, size_t to);
void board_forget_frames(size_t b);
