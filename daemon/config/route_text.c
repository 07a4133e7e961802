/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/route_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT_MAX 9999999u /* more than any model has */

__attribute__((format(printf, 2, 3))) static int fail(char *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, DMN_ROUTE_ERROR_MAX, format, args);
    va_end(args);
    return -EINVAL;
}

/* Reads decimal digits at *at. Return: 0; -EINVAL: none, or more than @max. */
static int number(const char **at, uint32_t max, uint32_t *ret)
{
    uint32_t value = 0;

    if (!isdigit((unsigned char)**at)) {
        return -EINVAL;
    }
    for (; isdigit((unsigned char)**at); ++*at) {
        value = value * 10 + (uint32_t)(**at - '0');
        if (value > max) {
            return -EINVAL;
        }
    }
    *ret = value;
    return 0;
}

static size_t name_length(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]) || (n > 0 && (text[n] == '-' || text[n] == '_'))) {
        n++;
    }
    return n;
}

/* Reads BOARD*SHARE at *at into the hop's next place. */
static int board(const char **at, char *why, struct dmn_route_text *r)
{
    size_t hop = r->hop_count - 1, n = name_length(*at), count = r->hop[hop].board_count;

    if (n == 0 || n >= DMN_ROUTE_NAME_BYTES) {
        return fail(why, "a board's name is missing before \"%.20s\"", *at);
    }
    if (count == DMN_ROUTE_BOARDS_MAX) {
        return fail(why, "more than %u boards for units %u-%u", DMN_ROUTE_BOARDS_MAX,
                    r->hop[hop].first_unit, r->hop[hop].last_unit);
    }
    memcpy(r->hop[hop].board[count].name, *at, n);
    r->hop[hop].board[count].share = 1;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(r->hop[hop].board[i].name, r->hop[hop].board[count].name) == 0) {
            return fail(why, "board %s is named twice for units %u-%u", r->hop[hop].board[i].name,
                        r->hop[hop].first_unit, r->hop[hop].last_unit);
        }
    }
    r->hop[hop].board_count++;
    *at += n;
    if (**at == '*') {
        ++*at;
        if (number(at, DMN_ROUTE_SHARE_MAX, &r->hop[hop].board[count].share) < 0 ||
            r->hop[hop].board[count].share == 0) {
            return fail(why, "the share of board %s must be 1 to %u", r->hop[hop].board[count].name,
                        DMN_ROUTE_SHARE_MAX);
        }
    }
    return 0;
}

int dmn_route_text_parse(const char *text, char *why, struct dmn_route_text *ret)
{
    const char *at = text;

    *ret = (struct dmn_route_text){0};
    for (uint32_t next = 0;; at++) {
        size_t hop = ret->hop_count;
        uint32_t first, last;

        if (hop == DMN_ROUTE_HOPS_MAX) {
            return fail(why, "more than %u segments", DMN_ROUTE_HOPS_MAX);
        }
        if (number(&at, UNIT_MAX, &first) < 0 || *at++ != '-' || number(&at, UNIT_MAX, &last) < 0 ||
            *at++ != '@') {
            return fail(why, "must be \"" DMN_BOARDS_OFF "\", \"" DMN_BOARDS_AUTO
                             "\" or FIRST-LAST@BOARDS|..., such as 0-16@here|17-44@b2");
        }
        if (first != next || last < first) {
            return fail(why, "units %u-%u do not begin at unit %u", first, last, next);
        }
        next = last + 1;
        ret->hop[hop].first_unit = first;
        ret->hop[hop].last_unit = last;
        ret->hop_count++;
        do {
            int r = board(&at, why, ret);

            if (r < 0) {
                return r;
            }
        } while (*at == '+' && at++);
        if (*at == '\0') {
            return 0;
        }
        if (*at != '|') {
            return fail(why, "\"%.20s\" is not expected there", at);
        }
    }
}
