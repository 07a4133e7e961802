/* SPDX-License-Identifier: Apache-2.0 */
/* In place of daemon/service/log.c: a fuzzed daemon says nothing, unless PIPED_FUZZ_LOG is set, and
 * a fault of its own is a failure. */
#include <stdarg.h>
#include <stdio.h>

#include "daemon/service/log.h"
#include "tests/fuzz/replay.h"

void dmn_log_open(int level)
{
    (void)level;
}

void dmn_log_level(int level)
{
    (void)level;
}

void dmn_log_with(int level, struct dmn_log_fields fields, const char *format, ...)
{
    va_list args;

    (void)fields;
    MUST(level > LOG_CRIT && strncmp(format, "internal error", strlen("internal error")) != 0);
    if (getenv("PIPED_FUZZ_LOG")) {
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
}

bool dmn_log_allowed(struct dmn_log_limit *limit, uint64_t now_ns)
{
    (void)limit;
    (void)now_ns;
    return true;
}
