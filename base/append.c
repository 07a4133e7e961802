/* SPDX-License-Identifier: Apache-2.0 */
#include "base/append.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool base_append(char *ret, size_t bytes, const char *format, ...)
{
    size_t used = strlen(ret);
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(ret + used, bytes - used, format, args);
    va_end(args);
    return n >= 0 && (size_t)n < bytes - used;
}
