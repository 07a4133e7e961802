/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shown_text.h"

size_t shown_decode(const void *s, size_t left, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *b = s;
    uint32_t c = b[0];
    size_t n = c < 0x80             ? 1
               : (c & 0xe0) == 0xc0 ? 2
               : (c & 0xf0) == 0xe0 ? 3
               : (c & 0xf8) == 0xf0 ? 4
                                    : 0;

    if (n == 0 || n > left) {
        return 0;
    }
    c &= n > 1 ? 0xffu >> (n + 1) : 0x7fu;
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80) {
            return 0;
        }
        c = c << 6 | (b[i] & 0x3f);
    }
    *ret = c;
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

bool shown_hidden(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
        {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},
        {0x890, 0x891},     {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
        {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
        {0x2800, 0x2800},   {0x3164, 0x3164},   {0xfdd0, 0xfdef},   {0xfeff, 0xfeff},
        {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
        {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff},
        {0xe01f0, 0xe0fff},
    };

    if (c < 0x7f) {
        return c < 0x20;
    }
    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges) && c >= ranges[i][0]; i++) {
        if (c <= ranges[i][1]) {
            return true;
        }
    }
    return (c & 0xfffe) == 0xfffe; /* the last two of each plane */
}

bool shown_ok(const void *s, size_t n)
{
    const uint8_t *b = s;
    uint32_t c;

    for (size_t i = 0, step; i < n; i += step) {
        step = shown_decode(b + i, n - i, &c);
        if (step == 0 || shown_hidden(c)) {
            return false;
        }
    }
    return true;
}

size_t shown_fit(const char *s, size_t most)
{
    size_t n = strnlen(s, most + 1);

    if (n > most) {
        n = most;
        while (n > 0 && ((uint8_t)s[n] & 0xc0) == 0x80) {
            n--;
        }
    }
    return n;
}

void shown_whole(char *text)
{
    size_t n = strlen(text), from = n;
    uint32_t c;

    while (from > 0 && n - from < 3 && (text[from - 1] & 0xc0) == 0x80) {
        from--;
    }
    if (from > 0 && (text[from - 1] & 0xc0) == 0xc0 &&
        shown_decode(text + from - 1, n - from + 1, &c) == 0) {
        text[from - 1] = '\0';
    }
}

void shown_clean(char *text, const char *kept)
{
    size_t left = strlen(text);
    char *to = text;
    uint32_t c;

    for (const char *from = text; left > 0;) {
        size_t n = shown_decode(from, left, &c);

        if (n == 0 || (shown_hidden(c) && !(c < 0x80 && strchr(kept, (int)c)))) {
            *to++ = '?';
            n = n == 0 ? 1 : n;
        } else {
            memmove(to, from, n);
            to += n;
        }
        from += n;
        left -= n;
    }
    *to = '\0';
}

const char *shown_short(const char *text, char *room, size_t bytes)
{
    const size_t n = strlen(text), half = bytes / 2 - 2, start = shown_fit(text, half);
    const char *end;

    if (n < bytes) {
        return text;
    }
    memcpy(room, text, start);
    room[start] = '\0';
    end = text + n - half;
    while ((*end & 0xc0) == 0x80) {
        end++;
    }
    strcat(strcat(room, "..."), end);
    return room;
}
