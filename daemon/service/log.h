/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/log.h - messages to the journal with fields, or to stderr
 *
 * If stderr is the journal (JOURNAL_STREAM names it), entries go there with MESSAGE_ID and PIPED_*
 * fields. Otherwise each message is one line on stderr, with a "<N>" priority prefix unless stderr
 * is a terminal.
 *
 * dmn_log_limited() limits the rate of messages that a client can cause, separately for each place
 * in the code, and belongs to the loop thread, as do dmn_log_open() and dmn_log_level(). Threads:
 * any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syslog.h>

/* Fields of an entry besides its text; every member may be NULL. */
struct dmn_log_fields {
    const char *id; /* DMN_MSG_... */
    const char *model, *plan, *client;
};

/** dmn_log_startup_failure() - Return: the last message with DMN_MSG_STARTUP_FAILED; "": none.
 * Threads: the main thread. */
const char *dmn_log_startup_failure(void);

/** dmn_log_open() - call once, before the first message. @level: LOG_ERR..LOG_DEBUG. */
void dmn_log_open(int level);
void dmn_log_level(int level);

__attribute__((format(printf, 3, 4))) void dmn_log_with(int level, struct dmn_log_fields fields,
                                                        const char *format, ...);
#define dmn_log(level, ...) dmn_log_with(level, (struct dmn_log_fields){0}, __VA_ARGS__)

/* At most 10 messages in 10 s from one place; the next one says how many were suppressed. */
struct dmn_log_limit {
    uint64_t since_ns;
    unsigned count, suppressed;
};
/** dmn_log_allowed() - Return: may one more message be logged. Logs how many were suppressed before
 * it. */
bool dmn_log_allowed(struct dmn_log_limit *limit, uint64_t now_ns);
#define dmn_log_limited(level, fields, ...)                                                        \
    do {                                                                                           \
        static struct dmn_log_limit dmn_limit_;                                                    \
        if (dmn_log_allowed(&dmn_limit_, base_now_ns())) {                                         \
            dmn_log_with(level, fields, __VA_ARGS__);                                              \
        }                                                                                          \
    } while (0)
