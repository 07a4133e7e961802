/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/log.h - messages to the journal with fields, or to stderr
 *
 * When stderr is the journal (JOURNAL_STREAM names it), entries go there with MESSAGE_ID and
 * PIPED_* fields; otherwise one line goes to stderr, with a "<N>" priority prefix unless stderr is
 * a terminal. Messages that a client can cause are rate-limited by place (DMN_LOG_LIMIT). Threads:
 * the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syslog.h>

/* Fields beside the text; every member may be NULL. */
struct dmn_log_fields {
    const char *id; /* DMN_MSG_... */
    const char *model, *plan, *client;
};

/** dmn_log_open() - once, before anything is logged. @level: LOG_ERR..LOG_DEBUG. */
void dmn_log_open(int level);
void dmn_log_level(int level);

__attribute__((format(printf, 3, 4))) void dmn_log_with(int level, struct dmn_log_fields fields,
                                                        const char *format, ...);
#define dmn_log(level, ...) dmn_log_with(level, (struct dmn_log_fields){0}, __VA_ARGS__)

/* At most 10 messages in 10 s from one place; what was suppressed is counted in the next one. */
struct dmn_log_limit {
    uint64_t since_ns;
    unsigned count, suppressed;
};
/** dmn_log_allowed() - is there room for one more; says how many were suppressed before it. */
bool dmn_log_allowed(struct dmn_log_limit *limit, uint64_t now_ns);
#define dmn_log_limited(level, fields, ...)                                                        \
    do {                                                                                           \
        static struct dmn_log_limit dmn_limit_;                                                    \
        if (dmn_log_allowed(&dmn_limit_, base_now_ns())) {                                         \
            dmn_log_with(level, fields, __VA_ARGS__);                                              \
        }                                                                                          \
    } while (0)
