/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "tuner/pipesim/check.h"

void psim_check(struct psim_checks *c, bool ok, const char *name, const char *format, ...)
{
    va_list args;

    printf("%s %s: ", ok ? "ok" : "FAIL", name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    *(ok ? &c->passed : &c->failed) += 1;
}
