/* SPDX-License-Identifier: Apache-2.0 */
/** tests/fuzz/conversation_control.h - the client of the control socket in fuzz_conversation.c:
 * calls of every sort, each of which is answered once, by JSON */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/fuzz/talker.h"

#define CONTROL_CALLS 28u /* kinds of calls */

/** control_begin() - a new conversation: nothing has changed. */
void control_begin(void);
/** control_act() - calls. a[0]: which, a[1], a[2]: its variant. @changed: told which files may
 * serve a model from now on, besides those that do. */
void control_act(const uint8_t a[4], void (*changed)(enum talk_model m, unsigned versions));
/** control_read() - reads and judges replies. Return: there were some. */
bool control_read(void);
/** control_settled() - Return: every call is answered that is not a search. */
bool control_settled(void);
/** control_end() - leaves. Return: models or the configuration may have changed. */
bool control_end(void);
