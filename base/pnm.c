/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pnm.h"

bool pnm_begins(const uint8_t *data, size_t bytes)
{
    return bytes > 2 && data[0] == 'P' && (data[1] == '5' || data[1] == '6');
}

/* Reads the next number, behind blanks and # comments. */
static bool pnm_number(const uint8_t *data, size_t bytes, size_t *at, uint32_t *ret)
{
    bool comment = false;
    size_t first;

    for (; *at < bytes; ++*at) {
        uint8_t c = data[*at];

        comment = (comment && c != '\n') || c == '#';
        if (!comment && c != ' ' && (c < '\t' || c > '\r')) {
            break;
        }
    }
    first = *at;
    *ret = 0;
    while (*at < bytes && data[*at] >= '0' && data[*at] <= '9' && *at - first < 9) {
        *ret = 10 * *ret + (uint32_t)(data[(*at)++] - '0');
    }
    return *at > first;
}

bool pnm_read(const uint8_t *data, size_t bytes, size_t at, struct pnm *ret)
{
    if (!pnm_begins(data + at, bytes - at)) {
        return false;
    }
    ret->channels = data[at + 1] == '6' ? 3 : 1;
    at += 2;
    if (!pnm_number(data, bytes, &at, &ret->width) || !pnm_number(data, bytes, &at, &ret->height) ||
        !pnm_number(data, bytes, &at, &ret->most) || at >= bytes) {
        return false;
    }
    ret->pixels_at = at + 1; /* behind exactly one blank */
    return true;
}
