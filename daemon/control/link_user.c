/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the user piped-link when it was made after the daemon's start: a package was installed. */
#include "daemon/control/methods.h"

#include "base/base.h"

#define AGAIN_NS BASE_NS_PER_S /* clients that are refused make it ask no more often */

static void look(struct dmn_job *work)
{
    dmn_users_look_up(
        "", &base_container_of(work, struct dmn_control, link_search.work)->link_search.found);
}

static void looked(struct dmn_job *work)
{
    struct dmn_control *control = base_container_of(work, struct dmn_control, link_search.work);
    const struct dmn_users *found = &control->link_search.found;
    struct dmn_call *c;

    control->link_search.again_ns = base_now_ns() + AGAIN_NS;
    if (found->has_link) {
        control->users->has_link = true;
        control->users->link = found->link;
    }
    while ((c = LIST_FIRST(&control->link_search.calls)) != NULL) {
        LIST_REMOVE(c, searching);
        if (c->conn) {
            control->dispatch(c);
        } else {
            dmn_call_reply(c, json_object(), false); /* to nobody */
        }
    }
}

bool dmn_link_search(struct dmn_call *c)
{
    struct dmn_control *control = c->control;

    if (control->users->has_link || control->stopping ||
        base_now_ns() < control->link_search.again_ns) {
        return false;
    }
    LIST_INSERT_HEAD(&control->link_search.calls, c, searching);
    if (!control->link_search.work.at) {
        control->link_search.work = (struct dmn_job){.run = look, .done = looked};
        dmn_work_do(control->machine->awaited, &control->link_search.work);
    }
    return true;
}
