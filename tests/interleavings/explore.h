/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/interleavings/explore.h - runs code that has threads under every schedule, or many
 *
 * The code under test is compiled with -fsanitize=thread, so that the compiler calls a function at
 * each atomic operation, fence and plain access; instrument.c has these functions, in place of
 * ThreadSanitizer's. Threads are fibers of one thread: they change only at atomic operations and
 * system calls, as explore.c chooses. memory_model.c decides what an atomic load may read: not only
 * the newest value, but any that C11's rules allow here (see there).
 *
 * A run fails if threads wait for each other for ever, if two accesses race, if steps never end, or
 * if the code says so by ex_fail(). The report has the seed or the choices that led there.
 *
 * Everything runs in a forked child, one run after the other. Threads: one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EX_THREADS 16u

struct ex_options {
    uint64_t runs;        /* random: how many; all: at most so many */
    uint64_t seed;        /* of the first random run */
    bool all;             /* every schedule within these bounds, instead of random ones: */
    unsigned preemptions; /* of a thread that could go on */
    unsigned odd;         /* choices of ex_choose() that are not 0: old values, spurious wake-ups */
};

struct ex_report {
    uint64_t runs;
    bool complete;  /* all: there is no other schedule */
    char text[256]; /* why a run failed; "" if none did */
};

/** ex_explore() - runs @fn(@arg), the first thread, once for each schedule. Return: whether no run
 * failed. */
bool ex_explore(void (*fn)(void *arg), void *arg, const struct ex_options *o,
                struct ex_report *ret);

/** ex_fail() - ends the run, and the exploration, with this text. Does not return. */
void ex_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- for instrument.c and replaced.c ---- */

/** ex_active() - Return: whether a run is going on in this thread; else the real functions do. */
bool ex_active(void);
/** ex_self() - Return: the running thread's number. */
size_t ex_self(void);
/** ex_choose() - Return: 0..@count - 1, how something happens. 0 is the ordinary way. */
size_t ex_choose(size_t count);
/** ex_point() - before an operation that others can see: perhaps another thread goes first.
 * @idle: the operation changes nothing; a thread that does no other lets others go on. */
void ex_point(bool idle);
/** ex_yield() - another thread goes first, if one can. */
void ex_yield(void);
/** ex_block() - sleeps until ex_unblock() of the same @on. */
void ex_block(const void *on);
/** ex_unblock() - wakes at most @count of those who sleep on @on. Return: how many. */
size_t ex_unblock(const void *on, size_t count);
/** ex_thread_new() - Return: the number of a new thread that runs fn(arg). */
size_t ex_thread_new(void *(*fn)(void *), void *arg);
/** ex_thread_wait() - sleeps until the thread has ended. Return: what its function returned. */
void *ex_thread_wait(size_t thread);
/** ex_now_ns() - Return: virtual time, which goes on by a microsecond at each look. */
uint64_t ex_now_ns(void);
