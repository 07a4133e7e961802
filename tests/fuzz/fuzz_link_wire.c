/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between boards, any bytes: what is accepted must be written again as the same bytes.
 * Input: number of parts, their sizes (4 bytes each), the first part. */
#include <stdlib.h>
#include <string.h>

#include "apps/link/wire/messages.h"
#include "tests/fuzz/replay.h"

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    static const uint64_t leaves[3] = {1, 2, 3};
    uint16_t type = (uint16_t)(index + 1 + (index >= 10)); /* 11 is no type */
    struct lnk_message m = {.header.type = type};
    uint8_t first[LNK_FIRST_MAX];
    uint32_t sizes[2] = {0, 0};
    size_t n, parts = 0;

    if (type >= LNK_TYPE_COUNT) {
        return 0;
    }
    if (type == LNK_HELLO) {
        strcpy(m.hello.name, "head");
    } else if (type == LNK_PLAN) {
        m.plan.hop_count = 3;
        m.tail = (const uint8_t *)"a-12345678\n0-16@0011223344556677*1\n0-3,7";
        m.tail_bytes = 40;
    } else if (type == LNK_ERROR) {
        m.error.status = 4;
        m.tail = (const uint8_t *)"no such model";
        m.tail_bytes = 13;
    } else if (type == LNK_WANT) {
        m.tail = (const uint8_t *)leaves;
        m.tail_bytes = sizeof(leaves);
    } else if (type == LNK_LEAF || type == LNK_PING || type == LNK_BOARD) {
        parts = 1;
        sizes[0] = LNK_PING_LARGE_BYTES;
    } else if (type == LNK_FRAME || type == LNK_ANSWER) {
        parts = 2;
        m.tail = (const uint8_t *)leaves;
        m.tail_bytes = 16;
        m.frame.tensor_count = type == LNK_FRAME ? 2 : 0;
        m.answer.tensor_count = type == LNK_ANSWER ? 2 : m.answer.tensor_count;
        for (size_t i = 0; i < parts; i++) {
            m.tensor[i] = (struct lnk_tensor){.dtype = LNK_F32, .rank = 3, .dim = {56, 56, 64}};
            lnk_tensor_bytes(&m.tensor[i], &m.tensor[i].bytes);
            sizes[i] = (uint32_t)m.tensor[i].bytes;
        }
    }
    n = lnk_put(&m, sizes[0], first);
    MUST(n > 0 && n + 9 <= cap);
    data[0] = (uint8_t)parts;
    memcpy(data + 1, sizes, 4 * parts);
    memcpy(data + 1 + 4 * parts, first, n);
    return 1 + 4 * parts + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t part_bytes[32], parts = bytes ? data[0] % 32 : 0;
    uint8_t again[LNK_FIRST_MAX];
    struct lnk_message m;

    if (bytes < 1 + 4 * parts) {
        return 0;
    }
    for (size_t i = 0; i < parts; i++) {
        uint32_t n;

        memcpy(&n, data + 1 + 4 * i, 4);
        part_bytes[i] = n;
    }
    data += 1 + 4 * parts;
    bytes -= 1 + 4 * parts;
    if (lnk_get(data, bytes, part_bytes, parts, &m) == 0) {
        MUST(parts <= LNK_PARTS_MAX && bytes <= LNK_FIRST_MAX);
        MUST(m.tail_bytes <= bytes && m.tail + m.tail_bytes == data + bytes);
        MUST(lnk_put(&m, m.header.payload_bytes, again) == bytes);
        MUST(memcmp(again, data, bytes) == 0);
        for (size_t i = 0; m.header.type == LNK_WANT && i < m.want.leaf_count; i++) {
            lnk_number(&m, i);
        }
        for (size_t i = 0; m.header.type == LNK_FRAME && i < m.frame.time_count; i++) {
            lnk_number(&m, i);
        }
    }
    return 0;
}
