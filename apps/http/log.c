/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/http/log.h"

#include <stdarg.h>

#include "base/cli/shown_print.h"

void web_log(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    shown_vsay("piped-http", format, args);
    va_end(args);
}
