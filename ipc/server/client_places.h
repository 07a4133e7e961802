/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/client_places.h - who may have one more connection to a socket
 *
 * A socket has `most` places, of which one user may hold `of_user`. Another `kept` places are for
 * those alone who the server says, such as root, so that no other users, however many, can lock
 * them out; the limit per user does not concern them.
 *
 * Threads: any; pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct ipc_places {
    size_t most, of_user, kept;
};

enum ipc_place {
    IPC_PLACE_FREE,
    IPC_PLACE_NONE,         /* all are taken */
    IPC_PLACE_NONE_OF_USER, /* the user holds all that it may */
};

/** ipc_place_for() - @held: connections without the new one; @held_of_user: those of its user;
 * @keeps: places are kept for this user. */
static inline enum ipc_place ipc_place_for(const struct ipc_places *p, size_t held,
                                           size_t held_of_user, bool keeps)
{
    if (!keeps && held_of_user >= p->of_user) {
        return IPC_PLACE_NONE_OF_USER;
    }
    return held >= p->most + (keeps ? p->kept : 0) ? IPC_PLACE_NONE : IPC_PLACE_FREE;
}

#define IPC_PLACE_TEXT_MAX 128u
/** ipc_place_text() - writes why @uid has no place. @what: "connections"; @key: of the limit of
 * all, to which that of one user adds "_per_user". Return: @ret. */
static inline const char *ipc_place_text(enum ipc_place place, const struct ipc_places *p,
                                         const char *what, const char *key, uid_t uid,
                                         char ret[IPC_PLACE_TEXT_MAX])
{
    if (place == IPC_PLACE_NONE_OF_USER) {
        snprintf(ret, IPC_PLACE_TEXT_MAX, "no more %s of user %u: %s_per_user is %zu", what,
                 (unsigned)uid, key, p->of_user);
    } else {
        snprintf(ret, IPC_PLACE_TEXT_MAX, "no more %s: %s is %zu", what, key, p->most);
    }
    return ret;
}
