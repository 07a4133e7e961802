/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/user_weights.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>

/* Reads a number at *@at, and the character that follows it. Return: false: it is none, or above
 * @most. */
static bool number(const char **at, unsigned long most, unsigned long *ret, char *ret_next)
{
    char *end;

    if (!isdigit((unsigned char)**at)) {
        return false;
    }
    *ret = strtoul(*at, &end, 10); /* ULONG_MAX if it is too large */
    *ret_next = *end;
    *at = *end ? end + 1 : end;
    return *ret <= most;
}

/* Reads one "UID=WEIGHT" at *@at with the comma after it. Return: false: it is not that. */
static bool next_weight(const char **at, unsigned long *ret_uid, unsigned long *ret_weight)
{
    char next;

    return number(at, UINT_MAX - 1u, ret_uid, &next) && next == '=' &&
           number(at, DMN_USER_WEIGHT_MAX, ret_weight, &next) && *ret_weight > 0 &&
           (next == '\0' || (next == ',' && **at));
}

bool dmn_user_weights_ok(const char *text)
{
    unsigned long uid, weight, other;

    while (*text) {
        if (!next_weight(&text, &uid, &weight)) {
            return false;
        }
        for (const char *rest = text; *rest && next_weight(&rest, &other, &weight);) {
            if (other == uid) {
                return false;
            }
        }
    }
    return true;
}

unsigned dmn_user_weight(const char *text, uid_t uid)
{
    unsigned long user, weight;

    while (*text && next_weight(&text, &user, &weight)) {
        if (user == uid) {
            return (unsigned)weight;
        }
    }
    return 1;
}
