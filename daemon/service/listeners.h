/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/listeners.h - lists of those that a room tells of its events
 *
 * A listener is a struct with `ctx`, functions of which each may be NULL, and `next`. It lives as
 * long as its list. Threads: the loop thread.
 */
#pragma once

/* Adds listener @l behind the others of @list. */
#define DMN_LISTEN(list, l)                                                                        \
    do {                                                                                           \
        __typeof__(list) *at_ = &(list);                                                           \
        while (*at_) {                                                                             \
            at_ = &(*at_)->next;                                                                   \
        }                                                                                          \
        *at_ = (l);                                                                                \
    } while (0)

/* Calls function @fn of every listener in @list that has it, with its ctx and what follows. */
#define DMN_TELL(list, fn, ...)                                                                    \
    do {                                                                                           \
        for (__typeof__(list) l_ = (list); l_; l_ = l_->next) {                                    \
            if (l_->fn) {                                                                          \
                l_->fn(l_->ctx, ##__VA_ARGS__);                                                    \
            }                                                                                      \
        }                                                                                          \
    } while (0)
