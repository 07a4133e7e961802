/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/link/link_measure.h - what a link costs: one way takes a + b x bytes
 *
 * Fed with round trips: a few of two sizes when a link comes up, then those of frames and pings
 * that happen anyway. Pure: no clock, no I/O.
 *
 * Small and large round trips have rings of their own, so many of one kind do not push out the
 * other. b is a weighted Theil-Sen estimate: the median of the slopes between all pairs of samples,
 * each as heavy as its pair is far apart. a is the median of what is left. Up to a quarter of the
 * samples may be arbitrarily wrong. (P. K. Sen 1968; weights: Jaeckel 1972.)
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LNK_MEASURE_RING 24u               /* samples of each kind that are kept */
#define LNK_MEASURE_SMALL_BYTES (8u << 10) /* at most: a small round trip */

struct lnk_sample {
    double bytes, ns; /* of a round trip, both ways together */
};
struct lnk_measure {
    struct lnk_sample sample[2][LNK_MEASURE_RING];
    uint64_t count[2]; /* ever added: [0] small, [1] large */
};
struct lnk_link_cost {
    double a_ns, b_ns;         /* of a message; of one byte */
    double a_err_ns, b_err_ns; /* standard errors, from the samples' scatter */
    uint64_t samples;          /* behind the estimate */
};
enum { LNK_MEASURE_E_UNKNOWN = 1 };

void lnk_measure_init(struct lnk_measure *m);

/**
 * lnk_measure_add() - adds a round trip
 * @bytes_out, @bytes_back: payload of the message and of its answer
 * @ns: from sending to the answer, without the time that the other board computed
 */
void lnk_measure_add(struct lnk_measure *m, uint64_t bytes_out, uint64_t bytes_back, uint64_t ns);

/** lnk_measure_get() - Return: 0; LNK_MEASURE_E_UNKNOWN: fewer than three samples of either kind.
 * */
int lnk_measure_get(const struct lnk_measure *m, struct lnk_link_cost *ret);
