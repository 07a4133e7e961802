/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/fuzz/daemon_rig.h - a whole daemon inside a fuzz target, one for all inputs
 *
 * Its loop runs only inside these functions, its teams and work threads run beside. Clients are
 * socket pairs, so nothing goes by way of a listening socket. The machine is a tree of files with
 * four cores, two of each kind. The daemon's log is empty: daemon_log.c takes its place.
 *
 * Threads: that of the target, which is the daemon's loop thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Model "a" is of one of two files, whose frames look the same and whose answers differ; model "b"
 * is of the third. */
enum rig_file { RIG_A, RIG_A2, RIG_B, RIG_FILES };

/** rig_start() - an input begins: starts the daemon at the first call, and notes what it holds. */
void rig_start(void);
/** rig_file() - Return: the path of a model's file. */
const char *rig_file(enum rig_file f);
/** rig_configure() - writes the configuration, with @a for model "a"; a reload reads it. */
void rig_configure(enum rig_file a);
/** rig_cores() - changes the machine's online cores ("0-3"); the daemon looks at once. */
void rig_cores(const char *online);
/** rig_connect() - a client of user @uid comes. Return: its socket, which does not block. */
int rig_connect(bool control, uid_t uid);
/** rig_turn() - lets the daemon do what it can do now. */
void rig_turn(void);
/** rig_pause() - waits for something for the daemon to do, a millisecond at most. */
void rig_pause(void);
/** rig_rest() - all clients are gone: brings models, plans and cores back to what they were, and
 * aborts unless the daemon becomes idle and holds as little as at the start. @changed: models or
 * the configuration may be other ones. */
void rig_rest(bool changed);
