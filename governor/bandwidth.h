/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/bandwidth.h - how fast cores move memory, alone and beside each other
 *
 * Each core streams over three arrays of its own, as the triad of STREAM does:
 *     a[i] = b[i] + s c[i]
 * Source: J. D. McCalpin, Memory Bandwidth and Machine Balance in Current High Performance
 * Computers, IEEE TCCA Newsletter, December 1995; as there, an element counts 24 bytes, though a
 * cache may read a[] before it is written.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * gov_bandwidth_measure() - streams on all of @cpus at once
 * @cpus: [@count], a thread is pinned to each; one that cannot be pinned runs where it may.
 * @bytes: of one core's arrays together; more than its caches hold, to see the memory behind them
 * @ms: how long, without the time to map the arrays
 * @ret_bytes_per_ns: all cores together: of eight equal parts of the time the best, since other
 * programs only take from it
 *
 * Allocates @count * @bytes and blocks; any thread. Return: 0; -EINVAL: nothing to measure;
 * -ENOMEM; -EAGAIN: no threads.
 */
int gov_bandwidth_measure(const uint16_t *cpus, size_t count, size_t bytes, unsigned ms,
                          double *ret_bytes_per_ns);
