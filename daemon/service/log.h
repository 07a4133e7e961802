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

/* Journal MESSAGE_IDs, one for each event worth finding or acting on. They are part of the
 * interface: an ID never changes and is never reused. `journalctl MESSAGE_ID=...` finds them;
 * systemd/piped.catalog explains them. */
#define DMN_MSG_STARTED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c01"
#define DMN_MSG_STOPPED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c02"
#define DMN_MSG_MODEL_LOADED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c03"
#define DMN_MSG_MODEL_FAILED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c04"
#define DMN_MSG_MODEL_UNLOADED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c05"
#define DMN_MSG_PLAN_CHANGED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c06"
#define DMN_MSG_RETUNE_BEGIN "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c07"
#define DMN_MSG_RETUNE_END "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c08"
#define DMN_MSG_RELOADED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c09"
#define DMN_MSG_RELOAD_FAILED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0a"
#define DMN_MSG_CLIENT_REFUSED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0b"
#define DMN_MSG_CLIENT_CLOSED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0c"
#define DMN_MSG_STALLED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0d"
#define DMN_MSG_DRAIN "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0e"
#define DMN_MSG_BLAS "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0f"
#define DMN_MSG_ADAPTED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c11"
#define DMN_MSG_STARTUP_FAILED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c10"
#define DMN_MSG_ROUTE "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c12"
#define DMN_MSG_BOARD "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c13"

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
