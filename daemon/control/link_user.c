/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the user piped-link when it was made after the daemon's start: a package was installed. */
#include "daemon/control/methods.h"

#include "base.h"

#define AGAIN_NS BASE_NS_PER_S /* clients that are refused make it ask no more often */

static void look(uv_work_t *work)
{
    struct dmn_control *control = work->data;

    dmn_users_look_up("", &control->link_search.found);
}

static void looked(uv_work_t *work, int status)
{
    struct dmn_control *control = work->data;
    const struct dmn_users *found = &control->link_search.found;
    struct dmn_call *c;

    control->link_search.busy = false;
    control->link_search.again_ns = base_now_ns() + AGAIN_NS;
    if (status == 0 && found->has_link) {
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
    if (!control->link_search.busy) {
        control->link_search.work.data = control;
        if (uv_queue_work(control->machine->loop, &control->link_search.work, look, looked) < 0) {
            return false;
        }
        control->link_search.busy = true;
    }
    LIST_INSERT_HEAD(&control->link_search.calls, c, searching);
    return true;
}
