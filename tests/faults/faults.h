/* SPDX-License-Identifier: Apache-2.0 */
/** tests/faults/faults.h - within the faults library: what becomes of a call */
#pragma once

#include "tests/faults/fault_control.h"

enum fault_how {
    FAULT_HOW_NOT,   /* make the real call */
    FAULT_HOW_ERROR, /* errno is set: return the call's error */
    FAULT_HOW_SHORT, /* make the real call with fewer bytes */
};

/** fault_now() - counts a call of @kind. @caller: its return address. Threads: any; allocates
 * nothing while no call fails. */
enum fault_how fault_now(enum fault_kind kind, const void *caller);
/** fault_kind_of() - Return: @socket or @file, by what @fd is; FAULT_KINDS, which never fails, for
 * eventfds and pipes: theirs are a few bytes, all or none. Keeps errno. */
enum fault_kind fault_kind_of(int fd, enum fault_kind socket, enum fault_kind file);
/** fault_main_begins() - arms what waits for main(). */
void fault_main_begins(void);

/* The caller of the replacement that uses it. */
#define FAULT_CALLER __builtin_return_address(0)
