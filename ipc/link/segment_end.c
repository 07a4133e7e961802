/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: how a segment ends, and gives its place to another. */
#include "base.h"
#include "ipc/link/daemon_call.h"
#include "ipc/link/fetch.h"
#include "ipc/link/segments_private.h"

void segment_free_owned(struct segment *s)
{
    for (size_t i = 0; i < PIXFMT_COUNT; i++) {
        segment_open_leave(s->lane[i].opening);
        piped_close(s->lane[i].piped);
    }
    for (size_t i = 0; i < SEGMENT_SLOTS_MAX; i++) {
        hop_border_deinit(&s->job[i].border);
    }
}

void segment_close(struct segment *s)
{
    segment_free_owned(s);
    if (s->fetched) {
        fetch_release(s->link, s->identity);
    }
    *s = (struct segment){0};
}

static void unloaded(void *arg, const char *error, const json_t *parameters)
{
    (void)arg;
    (void)error; /* it was not there: as wanted */
    (void)parameters;
}

bool segment_unload(const struct segment *s)
{
    int rc = daemon_conn_call(s->link->segments->conn, "io.piped.Unload",
                              json_pack("{s:s}", "name", s->name), false, unloaded, NULL);

    return rc == 0 || rc == -ENOTCONN;
}

bool segment_is_idle(const struct segment *s)
{
    return s->users == 0 && s->held == 0 && !s->waits;
}

bool segment_retire(struct segment *s)
{
    if (s->loaded && !segment_unload(s)) {
        return false;
    }
    segment_close(s);
    return true;
}

size_t segments_make_room(struct segments *all)
{
    size_t count = 0;

    for (size_t i = 0; i < SEGMENTS_MAX; i++) {
        struct segment *s = &all->segment[i];

        count += s->phase == SEGMENT_READY && segment_is_idle(s) && segment_retire(s);
    }
    return count;
}
