/* SPDX-License-Identifier: Apache-2.0 */
/** tests/fuzz/talker_private.h - what talker.c and talker_read.c share */
#pragma once

#include "tests/fuzz/talker.h"

#define TALK_SLOT_BYTES 1024u /* of the pool: an input, and an output from TALK_OUT_OFFSET on */
#define TALK_OUT_OFFSET 512u

/** talk_is_others() - Return: another client made this cookie. */
bool talk_is_others(const struct talk_client *c, uint64_t cookie);
