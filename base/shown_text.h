/* SPDX-License-Identifier: Apache-2.0 */
/**
 * shown_text.h - what may be shown of a text that came from a file, a client or another board
 *
 * A terminal obeys control characters (U+009B begins a command of xterm as ESC [ does). Marks that
 * turn the direction of text, or have no width, show a name as another one. Every border to a
 * terminal, a log or a page goes through these functions: shown_clean() where text is written,
 * shown_ok() where a name is taken.
 *
 * Threads: any.
 */
#pragma once

#include "base/base.h"

/** shown_decode() - @left: bytes at @s, at least 1. Return: those of the UTF-8 character there,
 * with *ret; 0: invalid, overlong, a surrogate, above U+10FFFF. */
size_t shown_decode(const void *s, size_t left, uint32_t *ret);

/** shown_hidden() - Return: the character is never written raw: controls (Cc), marks of format
 * (Cf: bidi, zero width, tags), separators of lines and paragraphs (Zl, Zp), other letters without
 * ink, and noncharacters. Source: the Unicode Character Database 15.0, General_Category and
 * Default_Ignorable_Code_Point, of which variation selectors may stay. */
bool shown_hidden(uint32_t c);

/** shown_ok() - Return: @n bytes at @s are UTF-8 and hold nothing hidden. */
bool shown_ok(const void *s, size_t n);

/** shown_fit() - Return: how many bytes of @s, UTF-8, are a text of at most @most bytes: all, or
 * those up to a border between characters. */
size_t shown_fit(const char *s, size_t most);

/** shown_whole() - drops a character that was cut at the end of the text. */
void shown_whole(char *text);

/** shown_clean() - puts one '?' in place of each hidden character, but those in @kept (ASCII only,
 * such as "\n"), and of each byte that is not UTF-8. The text does not grow. */
void shown_clean(char *text, const char *kept);

#define SHOWN_SHORT_MAX 204u

/** shown_short() - @room: @bytes bytes, an even number; SHOWN_SHORT_MAX for a name. Return: @text;
 * if it does not fit there, its start and end in @room, with "..." between them. */
const char *shown_short(const char *text, char *room, size_t bytes);
