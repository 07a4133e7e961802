/* SPDX-License-Identifier: Apache-2.0 */
/** ipc/link/segments_private.h - what segments.c and segment_life.c share */
#pragma once

#include "ipc/link/segments.h"

#define SEGMENT_SILENT "its daemon does not answer"

struct segments {
    struct link *link;
    struct daemon_conn *conn; /* owned: Load, Unload; NULL: a relay */
    void (*changed)(struct link *l, struct segment *s);
    uint64_t turn_ns; /* the last one */
    struct segment segment[SEGMENTS_MAX];
};

/** segment_look() - begins to look for the file, once the daemon is there and not silent. */
void segment_look(struct segment *s, bool silent, uint64_t now_ns);
/** segment_opened() - is its stream open now, or failed? */
void segment_opened(struct segment *s);
/** segment_unload() - the daemon shall forget it. */
void segment_unload(const struct segment *s);
