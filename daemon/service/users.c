/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/users.h"

#include <pwd.h>

#include "base/base.h"
#include "daemon/service/log.h"
#include "ipc/listen.h"

#define LINK_USER "piped-link"
#define GROUPS_FEW 64
#define ENTRY_BYTES 4096u

static bool find_user(const char *name, uid_t *ret)
{
    struct passwd user, *found = NULL;
    base_autofree char *entry = malloc(ENTRY_BYTES);

    /* libc's look-up crashes without room for the entry */
    if (!entry || getpwnam_r(name, &user, entry, ENTRY_BYTES, &found) != 0 || !found) {
        return false;
    }
    *ret = user.pw_uid;
    return true;
}

void dmn_users_look_up(const char *admin_group, struct dmn_users *ret)
{
    *ret = (struct dmn_users){0};
    ret->has_admin = admin_group[0] && ipc_group_find(admin_group, &ret->admin) == 0;
    ret->has_link = find_user(LINK_USER, &ret->link);
}

void dmn_users_set(struct dmn_users *u, const struct dmn_users *found, const char *admin_group)
{
    *u = *found;
    if (admin_group[0] && !found->has_admin) {
        dmn_log(LOG_WARNING,
                "admin_group: no group is named %s, so only root and the daemon's own user may "
                "change something; make the group, then reload",
                admin_group);
    }
}

static bool is_own(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

bool dmn_users_is_link(const struct dmn_users *u, uid_t uid)
{
    return u->has_link && uid == u->link;
}

bool dmn_users_keep_place(const struct dmn_users *u, uid_t uid)
{
    return is_own(uid) || dmn_users_is_link(u, uid);
}

/* Return: the process that connected @fd had @wanted among its supplementary groups. */
static bool has_group(int fd, gid_t wanted)
{
    gid_t few[GROUPS_FEW], *groups = few;
    base_autofree gid_t *many = NULL;
    socklen_t bytes = sizeof(few);
    int rc = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes);

    if (rc < 0 && errno == ERANGE) { /* the kernel has set how many bytes it takes */
        groups = many = malloc(bytes);
        rc = many ? getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) : -1;
    }
    for (size_t i = 0; rc == 0 && i < bytes / sizeof(*groups); i++) {
        if (groups[i] == wanted) {
            return true;
        }
    }
    return false;
}

bool dmn_users_may_change(const struct dmn_users *u, const struct ucred *peer, int fd)
{
    return is_own(peer->uid) ||
           (u->has_admin && (peer->gid == u->admin || has_group(fd, u->admin)));
}
