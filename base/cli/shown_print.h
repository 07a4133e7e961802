/* SPDX-License-Identifier: Apache-2.0 */
/**
 * shown_print.h - prints texts from outside, without what a terminal obeys: see shown_text.h
 *
 * All that programs print with %s goes through these functions; the style test looks for what does
 * not. Threads: any.
 */
#pragma once

#include "base/base.h"

#define SHOWN_LINE_MAX 8192u

/** shown_vfprintf() - vfprintf(), with one '?' for each hidden character but "\n" and "\t". */
void shown_vfprintf(FILE *to, const char *format, va_list args);

/** shown_fprintf() - the same, as fprintf(). */
__attribute__((format(printf, 2, 3))) void shown_fprintf(FILE *to, const char *format, ...);

/** shown_printf() - the same, as printf(). */
__attribute__((format(printf, 1, 2))) void shown_printf(const char *format, ...);

/** shown_text_print() - prints @text on stdout, as a part of a line: "\n" and "\t" are hidden. */
void shown_text_print(const char *text);

/** shown_vsay() - writes "PROGRAM: TEXT" on stderr, always as one line, of at most SHOWN_LINE_MAX
 * bytes of text, after what was printed on stdout. Needs no memory. */
void shown_vsay(const char *program, const char *format, va_list args);

/** shown_say() - the same. */
__attribute__((format(printf, 2, 3))) void shown_say(const char *program, const char *format, ...);

/** shown_refuse() - the same, of why something cannot be done. Return: @code. */
__attribute__((format(printf, 3, 4))) int shown_refuse(int code, const char *program,
                                                       const char *format, ...);

/** shown_begin() - takes the numbers 0, 1 and 2 where the program was started without them, before
 * a pipe or socket gets them: reading and writing them goes on failing. First in each main(). */
void shown_begin(void);

/** shown_end() - sends what was printed on stdout, and says it if a part of that is lost, now or
 * before; also between two results of a long run. Return: @code; 1: the output is not whole, and
 * @code is 0. */
int shown_end(const char *program, int code);
