/* SPDX-License-Identifier: Apache-2.0 */
/** tests/boards/hostile_messages.h - messages between boards that are damaged, or valid nonsense */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "apps/link/transport/transport.h"
#include "apps/link/wire/messages.h"
#include "ipc/boards/known_boards.h"

#define HOSTILE_FIRST_MAX (2 * LNK_FIRST_MAX)

/* Who sends, and what it knows. */
struct hostile {
    uint64_t random;                      /* state of the generator */
    char print[3][BRD_FINGERPRINT_BYTES]; /* its own, and its peers' */
    uint8_t identity[LNK_HASH_BYTES];     /* of a model that its peers have */
    const char *content;                  /* what routes call that */
};
struct hostile_message {
    uint8_t first[HOSTILE_FIRST_MAX];
    size_t first_bytes, count;
    struct lnk_bytes part[LNK_PARTS_MAX]; /* borrowed from a buffer of the generator */
};

size_t hostile_below(struct hostile *h, size_t n);
/** hostile_any() - the next message. @to: index of the receiver's print. */
void hostile_any(struct hostile *h, size_t to, struct hostile_message *ret);
