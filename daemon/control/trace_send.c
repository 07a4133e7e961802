/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a trace on their way to its client, in blocks: docs/trace.md describes them. */
#include <endian.h>
#include <sys/socket.h>

#include "base/base.h"
#include "daemon/control/tracing.h"

#define BLOCK_WORDS 2u /* of a block's head: track, words that follow */

/* Return: everything was sent. */
static bool flush(struct dmn_tracing *t)
{
    while (t->out_sent < t->out_used && !t->broken) {
        ssize_t n = send(t->sock, (const char *)t->words + t->out_sent, t->out_used - t->out_sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0) {
            t->out_sent += (size_t)n;
        } else if (errno == EAGAIN) {
            return false;
        } else if (errno != EINTR) {
            t->broken = true;
        }
    }
    t->out_sent = t->out_used = 0;
    return true;
}

/* Adds a block with what @ring holds, as far as it fits into @share words; one record in any case,
 * if there is room for it. @used: words so far. Return: words then. */
static size_t add_block(struct dmn_tracing *t, size_t used, struct pl_trace_ring *ring,
                        uint32_t track, size_t share)
{
    size_t room = DMN_TRACE_BATCH_WORDS - used, words;
    uint32_t *to = t->words + used;

    if (room <= BLOCK_WORDS) {
        return used;
    }
    words = pl_trace_read(ring, to + BLOCK_WORDS,
                          base_min(room - BLOCK_WORDS, base_max(share, pl_trace_next_words(ring))));
    if (words == 0) {
        return used;
    }
    to[0] = track;
    to[1] = (uint32_t)words;
    for (size_t i = 0; i < BLOCK_WORDS + words; i++) {
        to[i] = htole32(to[i]);
    }
    return used + BLOCK_WORDS + words;
}

/* Each ring gets its share of the room, so that no team starves another. Return: there is
 * something to send. */
static bool fill(struct dmn_tracing *t)
{
    size_t left = 1, used;

    for (const struct pl_trace_entry *e = t->trace->entries; e; e = e->next) {
        left++;
    }
    used = add_block(t, 0, &t->answers, 0, DMN_TRACE_BATCH_WORDS / left);
    for (struct pl_trace_entry *e = t->trace->entries; e; e = e->next) {
        used = add_block(t, used, &e->ring, e->team.track, (DMN_TRACE_BATCH_WORDS - used) / --left);
    }
    t->out_used = used * sizeof(t->words[0]);
    return used > 0;
}

bool dmn_trace_send(struct dmn_tracing *t)
{
    do {
        if (!flush(t)) {
            return false;
        }
    } while (fill(t));
    pl_trace_trim(t->trace);
    return true;
}
