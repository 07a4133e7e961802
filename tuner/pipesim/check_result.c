/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "base/cli/shown_print.h"
#include "tuner/pipesim/check.h"

void psim_check(struct psim_checks *c, bool ok, const char *name, const char *format, ...)
{
    va_list args;

    shown_printf("%s %s: ", ok ? "ok" : "FAIL", name);
    va_start(args, format);
    shown_vfprintf(stdout, format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    *(ok ? &c->passed : &c->failed) += 1;
}
