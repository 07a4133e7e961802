/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/http/web_log.h"

#include <stdarg.h>
#include <stdio.h>

void web_log(const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "piped-http: %s\n", text);
}
