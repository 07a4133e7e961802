/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/base64.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ipc_base64_encode(const void *data, size_t bytes, char *ret)
{
    const uint8_t *from = data;

    for (; bytes >= 3; bytes -= 3, from += 3) {
        uint32_t v = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];

        *ret++ = digits[v >> 18];
        *ret++ = digits[v >> 12 & 63];
        *ret++ = digits[v >> 6 & 63];
        *ret++ = digits[v & 63];
    }
    if (bytes > 0) {
        uint32_t v = (uint32_t)from[0] << 16 | (bytes == 2 ? (uint32_t)from[1] << 8 : 0);

        *ret++ = digits[v >> 18];
        *ret++ = digits[v >> 12 & 63];
        *ret++ = bytes == 2 ? digits[v >> 6 & 63] : '=';
        *ret++ = '=';
    }
    *ret = '\0';
}

/* Return: 0..63; 64: not a digit. */
static uint32_t value_of(char c)
{
    return c >= 'A' && c <= 'Z'   ? (uint32_t)(c - 'A')
           : c >= 'a' && c <= 'z' ? (uint32_t)(c - 'a') + 26
           : c >= '0' && c <= '9' ? (uint32_t)(c - '0') + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : 64;
}

size_t ipc_base64_decode(const char *text, size_t length, void *ret)
{
    uint8_t *to = ret;

    if (length % 4 != 0) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i < length; i += 4) {
        size_t padding = i + 4 < length       ? 0
                         : text[i + 3] != '=' ? 0
                         : text[i + 2] != '=' ? 1
                                              : 2;
        uint32_t v = 0;

        for (size_t k = 0; k < 4; k++) {
            uint32_t digit = k < 4 - padding ? value_of(text[i + k]) : 0;

            if (digit > 63) {
                return SIZE_MAX;
            }
            v = v << 6 | digit;
        }
        for (size_t k = 0; k < 3 - padding; k++) {
            *to++ = (uint8_t)(v >> (16 - 8 * k));
        }
    }
    return (size_t)(to - (uint8_t *)ret);
}
