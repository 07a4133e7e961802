/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/ask.h - when to decide, and the record to decide on */
#pragma once

#include "tuner/adapt/adapt_state.h"

/** tun_ask() - looks for something to decide on. Return: TUN_ASK_DECIDE with the record, owned by
 * the caller, in @ret; 0: nothing; -ENOMEM. */
enum { TUN_ASK_DECIDE = 1 };
int tun_ask(struct tun_adapt *a, struct tun_record *ret);
