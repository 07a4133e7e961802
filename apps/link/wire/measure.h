/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/wire/measure.h - what a link costs: one way takes a + b x bytes
 *
 * a is half of a round trip without payload. Frames on their way fill queues, which only ever make
 * a round trip longer; so a is the lower quartile of the last ones.
 *
 * b is the dispersion of a packet pair: a message without payload and a large one, sent one right
 * behind the other on the same connection, arrive as far apart as the wire takes to carry the large
 * one. What is queued before them delays both, so a link that is busy with frames is measured as
 * well as an idle one; a round trip of a large message would share the wire with the frames, and
 * show half of the rate. (S. Keshav, A Control-Theoretic Approach to Flow Control, SIGCOMM 1991.)
 *
 * A board that is busy may read both at once, which brings the answers together. So b is the upper
 * quartile of the last pairs, but at most what is left of the large ones' round trips (their lower
 * quartile) without the shortest trip ever: on an idle link, that holds whatever the board does.
 *
 * A wire that frames keep busy shows its rate by itself: the kernel knows how long it had bytes on
 * the wire, and how many were acknowledged. Their quotient is an upper bound of b at any time, and
 * b itself while the wire is never idle. Then pairs are worst: both boards are busy, too.
 *
 * Pure: no clock, no I/O.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LNK_MEASURE_RING 16u /* samples of each kind that are kept */

/* Of the way out to a peer. */
struct lnk_wire_use {
    uint64_t busy_ns; /* bytes were on the wire, and the peer's memory was not full */
    uint64_t bytes;   /* acknowledged by its kernel */
};
/* Begins as zeros. */
struct lnk_measure {
    double trip_ns[LNK_MEASURE_RING];
    struct lnk_pair {
        double bytes, apart_ns, second_ns;
    } pair[LNK_MEASURE_RING];
    double least_trip_ns;  /* of all trips, and of the first messages of pairs */
    double wire_ns;        /* per byte, while it was busy; 0: not known lately */
    bool wire_full;        /* it was so nearly all the time */
    uint64_t trips, pairs; /* ever added */
};
struct lnk_link_cost {
    double a_ns, b_ns;         /* of a message; of one byte */
    double a_err_ns, b_err_ns; /* standard errors, from the samples' scatter */
};
enum { LNK_MEASURE_E_UNKNOWN = 1 };

/** lnk_measure_trip() - adds a round trip without payload. */
void lnk_measure_trip(struct lnk_measure *m, uint64_t ns);
/**
 * lnk_measure_pair() - adds a pair
 * @bytes: of the large message; 0 is ignored
 * @first_ns, @second_ns: from sending both to the answer of each
 */
void lnk_measure_pair(struct lnk_measure *m, uint64_t bytes, uint64_t first_ns, uint64_t second_ns);

/** lnk_measure_wire() - adds what the wire did in a time, a second or so. Return: it was enough to
 * count, or too long ago: the next time begins now; false: go on, and call again with all of it. */
bool lnk_measure_wire(struct lnk_measure *m, const struct lnk_wire_use *use, uint64_t elapsed_ns);

/** lnk_measure_get() - Return: 0; LNK_MEASURE_E_UNKNOWN: fewer than three trips or pairs. */
int lnk_measure_get(const struct lnk_measure *m, struct lnk_link_cost *ret);
