/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/ipc/fake_boards.h - a head, and boards that compute its routes, at the message level
 *
 * The head is real (route.h), with one struct link. Boards are a few lines each: they take
 * places and frames as hop.h says, and may do anything that a board or a cable can do: be late, be
 * lost and come back, freeze, forget, refuse, have no memory, double an answer. Time is the test's.
 *
 * Board i < count is the head's peer i; SELF is the head's own place in routes.
 */
#pragma once

#include "apps/link/route/route.h"
#include "tests/harness.h"

#define BOARDS_MAX 4u
#define SELF LINK_SELF
#define UNITS 12u

struct boards_chance { /* one in so many; 0: never */
    unsigned full, no_memory, twice, refuse_place, refuse_frame, final_error, silent, odd_answer;
};
extern struct boards_chance chance;
extern struct link head;
extern uint64_t clock_ns;
extern size_t boards_cancelled; /* frames that a board had, and left at a CANCEL */
/* What boards said of a frame; @frame is the number of the message. */
struct boards_told {
    void (*failed)(uint32_t stream, uint64_t frame);
    /* The head sends a frame; called before a board has it. */
    void (*sent)(const struct lnk_frame *f, const struct lnk_bytes *part);
};

/** boards_begin() - @count boards that see each other. */
void boards_begin(size_t count, struct boards_told told);
/** boards_end() - the wire and all boards are gone. The head must hold nothing. */
void boards_end(void);
/** boards_change() - something happens to a board or a cable. */
void boards_change(void);
/** boards_heal() - everybody is well again, and sees everybody. */
void boards_heal(void);
/** boards_deliver() - one message. Return: false: none can come. */
bool boards_deliver(void);
/** boards_compute() - a board is done with a frame. Return: false: no board has one. */
bool boards_compute(void);
/** boards_places() - Return: how many places boards that the head sees still have. */
size_t boards_places(void);
/** boards_open() - Return: how many frames of an epoch that were sent on a way may still come back
 * to the head. */
uint32_t boards_open(uint32_t stream, uint32_t epoch, uint32_t way);
/** boards_holding() - Return: does the wire have a frame's input from the head? */
bool boards_holding(uint32_t stream, uint64_t frame);
/** boards_answer() - Return: what all units make of an input. */
uint64_t boards_answer(uint64_t input);
/** boards_ns() - Return: how long boards say that they computed a frame: another for each epoch and
 * way. */
uint64_t boards_ns(uint32_t epoch, uint32_t way);
