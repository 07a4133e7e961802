/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/hop/hop_private.h - what the files of this folder share
 *
 * libpiped waits when it connects and opens, for as long as the daemon does not answer. So a stream
 * of the daemon here is opened on a thread of its own (segment_open.c), and the loop polls a
 * descriptor instead; what it no longer waits for ends by itself when the daemon answers or ends.
 *
 * Threads: the loop; hop_border_...(): any.
 */
#pragma once

#include <sys/queue.h>

#include "apps/link/common/daemon_call.h"
#include "apps/link/hop/hop.h"

#define HOP_PLACES_MAX 64u

struct hop_next {
    size_t board;
    int share, due; /* due: the next frame goes to the board with the largest */
};
/* This board's part of an epoch. */
struct hop_place {
    uint64_t number; /* another for each place there ever was; 0: free */
    uint64_t since_ns;
    size_t head;
    uint32_t stream, epoch;
    uint16_t hop;
    bool last;
    uint32_t from;                  /* bits of boards that send to it; hop 0: the head does */
    uint8_t border[LNK_HASH_BYTES]; /* as the head cuts the model; zeros: unknown */
    struct segment *segment;        /* held */
    size_t next_count;
    struct hop_next next[BRD_SHARE_MAX];
};
/* A frame that waits for a slot of its segment. A route has more frames on their way than a board's
 * daemon takes at once; those of the slowest hop wait here, bounded in frames and bytes. */
struct hop_waiting {
    TAILQ_ENTRY(hop_waiting) linked;
    uint64_t place; /* number of the hop's place */
    uint64_t came_ns;
    size_t bytes;
    struct lnk_message message; /* a FRAME; its tail and parts are in here, too */
    struct lnk_bytes part[LNK_PARTS_MAX];
    uint8_t data[]; /* of the tail, then of the parts */
};
struct hop_queue {
    TAILQ_HEAD(, hop_waiting) frames;
    size_t bytes;
    uint32_t count;
};
struct hops {
    struct hop_place place[HOP_PLACES_MAX];
    uint64_t last_number;
    struct hop_queue queue;
};

/* frames.c */
/** hop_places() - Return: the first place that is not free; the next one behind @before; NULL. */
struct hop_place *hop_places(struct hops *h, struct hop_place *before);
/** hop_place() - Return: the place with this number, 0: a free one; NULL. */
struct hop_place *hop_place(struct hops *h, uint64_t number);
/** hop_drop_waiting() - takes a frame out of the queue and frees it. */
void hop_drop_waiting(struct hop_queue *q, struct hop_waiting *w);

/* border.c: the border of a frame, out of a segment's answer onto the wire and off the wire into
 * the next segment's input */
/**
 * hop_border_take() - checks the tensors of a FRAME, which are not trusted, and writes them where
 * the daemon wants them
 * @f: a slot of the stream
 * Return: 0; PIPED_INVALID_ARGUMENT.
 */
int hop_border_take(const struct piped_stream_info *info, const struct lnk_message *m,
                    struct piped_frame *f);

/** hop_border_picture() - the same of a FRAME that is a picture. */
int hop_border_picture(const struct lnk_message *m, struct piped_frame *f);

/**
 * hop_border_put() - the tensors of an answer as those of a message
 * @m: its tensors are set. @ret: as many ranges, into the slot. Return: how many tensors.
 */
size_t hop_border_put(const struct piped_stream_info *info, const struct piped_frame *f,
                      struct lnk_message *m, struct lnk_bytes *ret);

/* segment_open.c */
struct segment_opened {
    int rc;                      /* 0 or -errno */
    bool reached;                /* the daemon */
    struct piped *piped;         /* the taker's, as the stream; rc 0 */
    struct piped_stream *stream; /* with as many slots as fit */
    char why[256];
};

/** segment_open() - begins. @path: of the frames socket. @pixfmt: of its frames, 0: tensors.
 * Return: 0, -errno. */
int segment_open(const char *path, const char *model, uint32_t pixfmt,
                 struct segment_opening **ret);
/** segment_open_fd() - readable when it is over. */
int segment_open_fd(const struct segment_opening *o);
/** segment_open_take() - Return: false: nothing is opened, or not yet; true: it is over, and the
 * lane has what was opened. */
bool segment_open_take(struct segment_lane *lane, struct segment_opened *ret);
/** segment_open_leave() - nobody waits any more. @o may be NULL. Return: NULL. */
struct segment_opening *segment_open_leave(struct segment_opening *o);

/* segments.c, segment_life.c */
#define SEGMENT_SILENT "its daemon does not answer"

struct segments {
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
