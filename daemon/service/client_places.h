/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/client_places.h - who may have one more connection to a socket
 *
 * A socket has `most` places, of which one user may hold `of_user`. Another `kept` places are for
 * root, the daemon's own user and piped-link alone, so that no other users, however many, can lock
 * them out; the limit per user does not concern them.
 *
 * Threads: any; pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct dmn_places {
    size_t most, of_user, kept;
};

enum dmn_place {
    DMN_PLACE_FREE,
    DMN_PLACE_NONE,         /* all are taken */
    DMN_PLACE_NONE_OF_USER, /* the user holds all that it may */
};

/** dmn_place_for() - @held: connections without the new one; @held_of_user: those of its user;
 * @keeps: places are kept for this user. */
static inline enum dmn_place dmn_place_for(const struct dmn_places *p, size_t held,
                                           size_t held_of_user, bool keeps)
{
    if (!keeps && held_of_user >= p->of_user) {
        return DMN_PLACE_NONE_OF_USER;
    }
    return held >= p->most + (keeps ? p->kept : 0) ? DMN_PLACE_NONE : DMN_PLACE_FREE;
}

#define DMN_PLACE_TEXT_MAX 128u
/** dmn_place_text() - writes why @uid has no place. @what: "connections"; @key: of the limit of
 * all, to which that of one user adds "_per_user". Return: @ret. */
static inline const char *dmn_place_text(enum dmn_place place, const struct dmn_places *p,
                                         const char *what, const char *key, uid_t uid,
                                         char ret[DMN_PLACE_TEXT_MAX])
{
    if (place == DMN_PLACE_NONE_OF_USER) {
        snprintf(ret, DMN_PLACE_TEXT_MAX, "no more %s of user %u: %s_per_user is %zu", what,
                 (unsigned)uid, key, p->of_user);
    } else {
        snprintf(ret, DMN_PLACE_TEXT_MAX, "no more %s: %s is %zu", what, key, p->most);
    }
    return ret;
}
