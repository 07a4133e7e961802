/* SPDX-License-Identifier: Apache-2.0 */
/** ipc/boards/board_text.h - keys as text, for the files of board.h */
#pragma once

#include "ipc/boards/known_boards.h"

bool brd_key_from_text(const char *text, uint8_t ret[BRD_KEY_BYTES]);
/** brd_is_public_key() - Return: false for the few keys that would make everything readable. */
bool brd_is_public_key(const uint8_t key[BRD_KEY_BYTES]);
