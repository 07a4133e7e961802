/* SPDX-License-Identifier: Apache-2.0 */
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "base.h"
#include "daemon/control/control.h"

#define GROUPS_MAX 1024
#define LINK_USER "piped-link"

bool dmn_control_is_link(struct dmn_control_conn *c)
{
    const struct passwd *user;

    if (c->link == DMN_LINK_UNKNOWN) {
        user = getpwnam(LINK_USER);
        c->link = user && user->pw_uid == c->uid ? DMN_LINK_YES : DMN_LINK_NO;
    }
    return c->link == DMN_LINK_YES;
}

bool dmn_control_may_change(uid_t uid, gid_t gid, const char *admin_group)
{
    const struct group *group;
    const struct passwd *user;
    gid_t admin, groups[GROUPS_MAX];
    int count = GROUPS_MAX;

    if (uid == 0 || uid == geteuid()) {
        return true;
    }
    if (!admin_group[0] || !(group = getgrnam(admin_group))) {
        return false;
    }
    admin = group->gr_gid;
    if (gid == admin) {
        return true;
    }
    /* the peer's supplementary groups, from the user database: SO_PEERCRED has only the primary
     * one */
    user = getpwuid(uid);
    if (!user || getgrouplist(user->pw_name, user->pw_gid, groups, &count) < 0) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (groups[i] == admin) {
            return true;
        }
    }
    return false;
}
