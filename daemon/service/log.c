/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/log.h"

#include "base/base.h"
#include "base/shown_text.h"
#include "daemon/service/service.h"

#define LIMIT_BURST 10u
#define LIMIT_INTERVAL_NS (10 * BASE_NS_PER_S)

static _Atomic int log_level = LOG_NOTICE;
static bool log_journal, log_terminal;
static char startup_failure[512]; /* of the main thread, while it starts */

/* JOURNAL_STREAM is "DEVICE:INODE" of the journal's stream. A process may have inherited it and
 * then redirected stderr. */
static bool stderr_is_journal(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;

    return text && sscanf(text, "%llu:%llu", &device, &inode) == 2 && fstat(2, &st) == 0 &&
           st.st_dev == (dev_t)device && st.st_ino == (ino_t)inode;
}

void dmn_log_open(int level)
{
    log_level = level;
    log_journal = stderr_is_journal();
    log_terminal = isatty(2);
}

const char *dmn_log_startup_failure(void)
{
    return startup_failure;
}

void dmn_log_level(int level)
{
    log_level = level;
}

void dmn_log_with(int level, struct dmn_log_fields f, const char *format, ...)
{
    char text[2048], line[2100];
    va_list args;

    if (level > log_level) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (char *c = text; (c = strpbrk(c, "\t\n")) != NULL;) { /* one entry is one line */
        *c = ' ';
    }
    shown_clean(text, "");
    if (f.id && strcmp(f.id, DMN_MSG_STARTUP_FAILED) == 0) {
        snprintf(startup_failure, sizeof(startup_failure), "%.*s", (int)sizeof(startup_failure) - 1,
                 text);
    }
    if (log_journal && dmn_service_journal(level, text, f.id, f.model, f.plan, f.client) == 0) {
        return;
    }
    if (log_terminal) {
        snprintf(line, sizeof(line), "piped: %s\n", text);
    } else {
        snprintf(line, sizeof(line), "<%d>%s\n", level, text);
    }
    /* one write, so that lines of several processes on one pipe do not mix */
    if (write(2, line, strlen(line)) < 0) {
        return; /* nobody is left to tell */
    }
}

bool dmn_log_allowed(struct dmn_log_limit *limit, uint64_t now_ns)
{
    if (limit->since_ns == 0 || now_ns - limit->since_ns >= LIMIT_INTERVAL_NS) {
        if (limit->suppressed) {
            dmn_log(LOG_NOTICE, "suppressed %u messages like the next one", limit->suppressed);
        }
        limit->since_ns = now_ns;
        limit->count = limit->suppressed = 0;
    }
    if (limit->count >= LIMIT_BURST) {
        limit->suppressed++;
        return false;
    }
    limit->count++;
    return true;
}
