/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/kept_reply.h - replies that wait until something is kept for the next start
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/config/state_put.h"
#include "daemon/control/methods.h"

/**
 * dmn_kept_reply() - answers a call when a state file is written
 *
 * @c: the call; it is answered later. @reply: its parameters, reference taken. @noted: borrowed
 * from it: where a failure is noted, as "note"; NULL: a failure calls @failed, which answers the
 * call instead. Return: to be given to whatever writes the file, just once.
 */
struct dmn_state_kept dmn_kept_reply(struct dmn_call *c, json_t *reply, json_t *noted,
                                     void (*failed)(struct dmn_call *c, int error));
