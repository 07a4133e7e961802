/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/shared_reply.h - one reply for all who asked before it was made
 *
 * Of a method that changes nothing and was given no parameters. A reply that was begun after a call
 * had come is as new as one made for that call, so calls that wait behind each other, or on several
 * connections, cost one reply and copies of it. A call that changes something ends that.
 *
 * All zeros is none. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dmn_shared_reply {
    char *data; /* owned; NULL: none */
    size_t bytes;
    uint64_t begun_ns; /* it was begun then */
};

/** dmn_shared_copy() - a copy of the reply for a call that came at @came_ns. @ret: malloc'ed, the
 * caller's. Return: false: there is none that is new enough, or no memory. */
bool dmn_shared_copy(const struct dmn_shared_reply *s, uint64_t came_ns, char **ret,
                     size_t *ret_bytes);
/** dmn_shared_keep() - keeps a copy of @data in place of what was there. */
void dmn_shared_keep(struct dmn_shared_reply *s, const char *data, size_t bytes, uint64_t begun_ns);
/** dmn_shared_forget() - frees @count replies. */
void dmn_shared_forget(struct dmn_shared_reply *all, size_t count);
