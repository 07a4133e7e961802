/* SPDX-License-Identifier: Apache-2.0 */
/** tests/fuzz/replay.h - the functions of a fuzz target; see replay.c */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* what must hold for every input */
#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #x);                      \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/** LLVMFuzzerTestOneInput() - the target: takes any bytes and must not crash. Return: 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/** fuzz_seed() - optional: writes the target's own seed number @index to @data. Return: its size, 0
 * when there are no more. */
size_t fuzz_seed(size_t index, unsigned char *data, size_t cap);

/** fuzz_seed_text() - fuzz_seed() of a list of @count texts. */
static inline size_t fuzz_seed_text(const char *const *texts, size_t count, size_t index,
                                    unsigned char *data, size_t cap)
{
    if (index >= count || strlen(texts[index]) > cap) {
        return 0;
    }
    memcpy(data, texts[index], strlen(texts[index]));
    return strlen(texts[index]);
}
