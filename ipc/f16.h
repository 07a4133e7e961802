/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/f16.h - floats as IEEE binary16 and back, for what travels
 *
 * Uses the CPU's own conversion if it has one; the results are the same without, but for the bits
 * of a NaN, which stays one. Pure functions; any thread; any alignment.
 */
#pragma once

#include <stddef.h>

/** ipc_f16_encode() - writes @count floats to @halves: to nearest even, and from 65520 on to
 * infinity. */
void ipc_f16_encode(const void *floats, size_t count, void *halves);
/** ipc_f16_decode() - the reverse, exact. */
void ipc_f16_decode(const void *halves, size_t count, void *floats);
