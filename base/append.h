/* SPDX-License-Identifier: Apache-2.0 */
/** base/append.h - texts for people that are made of several parts. Threads: any. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/** base_append() - adds to the text in @ret, which has @bytes. Return: false: it did not fit; then
 * it is cut off, and so is all that is added later. */
bool base_append(char *ret, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** base_vappend() - the same. */
bool base_vappend(char *ret, size_t bytes, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
