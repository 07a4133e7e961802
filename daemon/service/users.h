/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/users.h - which users and groups may do more than others
 *
 * The user database may be on a network, so it is asked at start and at each reload, never while
 * the loop serves. What a client belongs to, its kernel tells: the groups are those that its
 * process had when it connected, as in systemd's services.
 *
 * Threads: any may look up; the rest is for the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* All zeros: the names are unknown, and only root and the daemon's own user may do more. */
struct dmn_users {
    bool has_admin, has_link;
    gid_t admin; /* of the group that may change something */
    uid_t link;  /* of piped-link */
};

/** dmn_users_look_up() - asks the user database, and blocks. @admin_group: a name; "": none. */
void dmn_users_look_up(const char *admin_group, struct dmn_users *ret);
/** dmn_users_set() - @u becomes @found, the answer for @admin_group; warns if there is no such
 * group. */
void dmn_users_set(struct dmn_users *u, const struct dmn_users *found, const char *admin_group);

/** dmn_users_is_link() - Return: @uid is piped-link's. */
bool dmn_users_is_link(const struct dmn_users *u, uid_t uid);
/** dmn_users_keep_place() - Return: places are kept for @uid: root, the daemon's own user, and
 * piped-link, by which other boards are served. */
bool dmn_users_keep_place(const struct dmn_users *u, uid_t uid);
/** dmn_users_may_change() - Return: the client on socket @fd is root, the daemon's own user, or in
 * the admin group. @peer: its SO_PEERCRED. */
bool dmn_users_may_change(const struct dmn_users *u, const struct ucred *peer, int fd);
