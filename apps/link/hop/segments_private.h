/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/hop/segments_private.h - what segments.c and segment_life.c share */
#pragma once

#include "apps/link/common/daemon_call.h"
#include "apps/link/hop/segments.h"

#define SEGMENT_SILENT "its daemon does not answer"

struct segments {
    struct link *link;
    struct daemon_conn conn; /* Load, Unload */
    void (*changed)(struct link *l, struct segment *s);
    uint64_t turn_ns; /* the last one */
    struct segment segment[SEGMENTS_MAX];
};

/** segment_look() - begins to look for the file, once the daemon is there and not silent. */
void segment_look(struct segment *s, bool silent, uint64_t now_ns);
/** segment_opened() - is its stream open now, or failed? */
void segment_opened(struct segment *s);
/** segment_free_owned() - what it owns; then it must not be used. */
void segment_free_owned(struct segment *s);
/** segment_close() - its place is free. */
void segment_close(struct segment *s);
/** segment_is_idle() - Return: nobody holds it, and no reply will name it. */
bool segment_is_idle(const struct segment *s);
/** segment_retire() - unloads and closes an idle one. Return: its place is free; false: the daemon
 * could not be told yet. */
bool segment_retire(struct segment *s);
/** segments_make_room() - retires what nobody uses. Return: how many. */
size_t segments_make_room(struct segments *s);
