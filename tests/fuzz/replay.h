/* SPDX-License-Identifier: Apache-2.0 */
/** tests/fuzz/replay.h - the functions of a fuzz target; see replay.c */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** LLVMFuzzerTestOneInput() - the target: takes any bytes and must not crash. Return: 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/** fuzz_seed() - optional: writes the target's own seed number @index to @data. Return: its size, 0
 * when there are no more. */
size_t fuzz_seed(size_t index, unsigned char *data, size_t cap);
