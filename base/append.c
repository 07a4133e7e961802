/* SPDX-License-Identifier: Apache-2.0 */
#include "base/append.h"

#include <stdio.h>
#include <string.h>

bool base_vappend(char *ret, size_t bytes, const char *format, va_list args)
{
    size_t used = strlen(ret);
    int n = vsnprintf(ret + used, bytes - used, format, args);

    return n >= 0 && (size_t)n < bytes - used;
}

bool base_append(char *ret, size_t bytes, const char *format, ...)
{
    va_list args;
    bool fits;

    va_start(args, format);
    fits = base_vappend(ret, bytes, format, args);
    va_end(args);
    return fits;
}
