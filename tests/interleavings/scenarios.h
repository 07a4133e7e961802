/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/interleavings/scenarios.h - what the threads of a run do; compiled like the code under test
 *
 * Each is a first thread for ex_explore(), which it leaves by ex_fail() if something is wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Small programs whose outcomes are known: they test the checker. arg: the memory_order, as an
 * int *, of what they try. */
void litmus_message_passing(void *order); /* fails unless release and acquire, or stronger */
void litmus_store_buffering(void *order); /* of the fences; fails unless seq_cst */
void litmus_race(void *unused);           /* fails always */
void litmus_lost_wakeup(void *unused);    /* fails always: a handshake without fences */
void litmus_three_threads(void *unused);  /* right: what is released twice is carried on */

/* arg: the number of items, as a size_t *. */
void ring_of_two(void *items);         /* a producer and a consumer that spins */
void ring_with_wake(void *items);      /* a consumer that sleeps */
void two_rings_with_wake(void *items); /* two producers, one consumer */

/* Two teams of one core and one of both, of two models, sit down and look between two units. */
struct seats_case {
    unsigned classes[3]; /* of the teams' models; [0] and [1] are one's if they are equal */
    size_t rounds;
    bool cancels; /* one of them is to end meanwhile */
    bool changes; /* what one of the models is to have changes */
};
void seats_taken(void *seats_case);

/* A pipeline with its loop: frames, plan switches, cancels, in an order that @seed gives. */
struct pipeline_case {
    const char *plans[2]; /* the second: switched to, again and again; NULL: none */
    size_t frames, pool;
    unsigned long spin_ns;
    bool seats;           /* its teams take turns */
    bool cut;             /* and get up in the middle of units, too */
    struct tiny_net *net; /* made before the run */
};
void pipeline_run(void *pipeline_case);
