/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: users for whom the loop works so much that they rest. */
#include <math.h>

#include "apps/pipectl/common/output.h"
#include "apps/pipectl/doctor/facts.h"
#include "base/base.h"

#define LOOP_SHARE 0.05  /* of its time, that makes a user worth a word */
#define OTHERS 0.002     /* of it is more than the questions of doctor */
#define PUT_OFF_LEAST 10 /* times a second */
#define NAMED 3          /* clients of a user */

/* How much a number of a user has grown; users come and go. */
static double loop_more(const struct doctor *d, const json_t *user, const char *key)
{
    const json_t *before =
        doctor_same(json_object_get(d->before, "loop"), "uid", json_object_get(user, "uid"));
    double more = doctor_more(before, user, key);

    return isnan(more) ? ctl_value(user, key) : more;
}

/* Does anybody else want something of the loop? Its own questions are nothing. */
static bool has_others(const struct doctor *d, const json_t *user)
{
    const json_t *u;
    size_t i;

    json_array_foreach(json_object_get(d->after, "loop"), i, u)
    {
        if (u != user && loop_more(d, u, "spent_s") > OTHERS * d->seconds) {
            return true;
        }
    }
    return false;
}

/* Writes `"a" (pid 1), "b" (pid 2)`, or that only the control socket is used. */
static void clients_of(const struct doctor *d, double uid, char *ret, size_t bytes)
{
    size_t i, used = 0, named = 0;
    const json_t *c;

    json_array_foreach(json_object_get(d->after, "clients"), i, c)
    {
        if (ctl_value(c, "uid") == uid && named < NAMED && used < bytes) {
            used += (size_t)snprintf(ret + used, bytes - used, "%s\"%s\" (pid %.0f)",
                                     named ? ", " : "", ctl_text(c, "client"), ctl_value(c, "pid"));
            named++;
        }
    }
    if (named == 0) {
        snprintf(ret, bytes, "none for frames; calls of the control socket");
    }
}

void doctor_loop_user(struct doctor *d)
{
    const json_t *u;
    size_t i;

    json_array_foreach(json_object_get(d->after, "loop"), i, u)
    {
        double share = loop_more(d, u, "spent_s") / d->seconds;
        double put_off = loop_more(d, u, "put_off"), uid = ctl_value(u, "uid");
        char clients[256];

        if (!(d->seconds > 0) || share < LOOP_SHARE || put_off < PUT_OFF_LEAST * d->seconds ||
            !has_others(d, u)) {
            continue;
        }
        clients_of(d, uid, clients, sizeof(clients));
        doctor_find(d, NULL, NAN,
                    "Other users do not wait for it. If it is slow itself: let it send fewer and "
                    "larger messages, and ask the control socket less often; limits.user_weights "
                    "gives a user more of the loop.",
                    "User %.0f keeps the daemon's loop at work for %.0f %% of the time, and was "
                    "made to rest %.0f time%s in %.1f s so that others come first. Its clients: "
                    "%s.",
                    uid, 100 * share, put_off, base_plural(put_off), d->seconds, clients);
    }
}
