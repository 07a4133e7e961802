/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/hop/hop.h - this board's places in routes, of any head, and models of the daemon here
 * that compute frames for them
 *
 * A PLAN gives it a place: a segment to compute, and where its answers go: to a board of the next
 * hop, dispatched by their shares, or from the last hop to the head. Errors go to the head. A board
 * of the next hop that cannot be reached ends the place; the head is told its fingerprint.
 *
 * A segment is found (its file), loaded by the daemon, and opened as a stream of a connection of
 * its own. Those who use it hold it; one that nobody uses is unloaded after a while. A segment that
 * fails is told to its users, and is closed when the transport has let go of its answers. It also
 * fails if its daemon has frames and answers none of them for too long (progress.h).
 *
 * Threads: the loop.
 */
#pragma once

#include <poll.h>

#include "apps/link/common/link.h"
#include "apps/link/common/progress.h"
#include "base/pixfmt.h"

#define SEGMENTS_MAX 16u
#define SEGMENT_SLOTS_MAX 32u
#define SEGMENT_NAME_BYTES (BRD_CONTENT_BYTES + 24u)

enum segment_phase {
    SEGMENT_NONE, /* free */
    SEGMENT_FINDING,
    SEGMENT_LOADING,
    SEGMENT_READY,
    SEGMENT_FAILED
};

struct segment_opening;

/* One kind of frames of a segment: a connection and a stream of its own. */
struct segment_lane {
    bool failed;                     /* the daemon takes no such frames */
    uint64_t begun_ns;               /* of opening */
    struct segment_opening *opening; /* owned; NULL: none */
    struct piped *piped;             /* owned */
    struct piped_stream *stream;     /* owned; NULL: not open */
};
/* A frame in a slot of a segment's stream. */
struct segment_job {
    struct segment *segment;
    struct piped_stream *stream; /* of one of its lanes */
    struct piped_frame *frame;   /* NULL: free */
    uint64_t place;              /* number of the hop's place */
    struct lnk_frame of;         /* as it came */
    uint64_t deadline_ns;        /* CLOCK_MONOTONIC; 0: none */
    size_t to; /* the board that gets what was computed; LINK_NOBODY: not dispatched yet */
    size_t time_count;
    uint64_t time_ns[LNK_HOPS_MAX]; /* that each hop computed it */
};
/* A segment, as a PLAN's text has it. */
struct segment_text {
    char content[BRD_CONTENT_BYTES];
    char leaves[BRD_LEAVES_TEXT_MAX];
    char primitives[BRD_PRIMITIVES_TEXT_MAX];
    char preprocess[BRD_PREPROCESS_TEXT_MAX]; /* "": it takes no pictures */
};
struct segment {
    struct link *link;
    enum segment_phase phase;
    int status;                    /* FAILED: of the protocol */
    char why[256];                 /* FAILED */
    char name[SEGMENT_NAME_BYTES]; /* CONTENT#a-b */
    struct segment_text of;
    uint32_t first_unit, last_unit;
    bool loaded;  /* by us */
    bool asked;   /* FINDING: its file is being looked for */
    bool fetched; /* its file is in use: fetch_release() */
    bool waits;   /* a reply will name it */
    char path[1024];
    size_t head; /* the board that asked for it first */
    uint8_t identity[LNK_HASH_BYTES];
    uint8_t border[LNK_HASH_BYTES]; /* as the daemon here cuts the model; zeros: unknown */
    uint64_t begun_ns;
    unsigned users;
    unsigned held; /* jobs whose answers the transport has */
    uint64_t unused_ns;
    /* by pixel format; [0]: tensors, open while READY; pictures: from the first one on */
    struct segment_lane lane[PIXFMT_COUNT];
    struct lnk_progress progress; /* of the frames that the daemon has */
    struct segment_job job[SEGMENT_SLOTS_MAX];
    struct segment_job *waits_for_link; /* an answer for which the link had no room */
};

/* hop.c, frames.c */
/** hops_new() - without a place. Return: NULL: out of memory. */
struct hops *hops_new(void);
struct hops *hops_free(struct hops *h);
/** hop_plan() - a PLAN of a head. */
link_take hop_plan;
/** hop_frame() - a FRAME; its bytes are copied. */
link_take hop_frame;
/** hop_cancel() - a CANCEL of the head: the frame is not computed, if that has not begun. */
link_take hop_cancel;
/** hop_error() - an ERROR of a board that was sent a frame and is not our route's. */
void hop_error(struct link *l, size_t from, const struct lnk_error *e);
/** hop_segment_changed() - it is READY or FAILED. */
void hop_segment_changed(struct link *l, struct segment *s);
/** hop_peer_gone() - ends the places that it headed, and those that send to it. */
void hop_peer_gone(struct link *l, size_t peer);
/** hop_go() - sends on what segments have computed. */
void hop_go(struct link *l);

/* segments.c, segment_life.c */
/** segments_new() - @changed: a segment is READY or FAILED. Return: NULL: out of memory. */
struct segments *segments_new(struct link *l, void (*changed)(struct link *l, struct segment *s));
/** segments_free() - after the transport is closed. @s may be NULL. Return: NULL. */
struct segments *segments_free(struct segments *s);

/**
 * segment_hold() - a segment to compute frames by
 * @m: a PLAN     @of: its text
 *
 * It may be READY or not; its users are told later. Return: NULL: there are too many,
 * or another file has that name here.
 */
struct segment *segment_hold(struct link *l, size_t head, const struct lnk_message *m,
                             const struct segment_text *of);
/** segment_release() - @s may be NULL. */
void segment_release(struct segment *s);
/** segment_fail() - it serves no more. @why: a sentence. */
void segment_fail(struct segment *s, int status, const char *why);
/** segment_lane_open() - frames of this pixel format are to come; opens their stream, if there is
 * none. Return: 0; PIPED_RESOURCE_EXHAUSTED: later; PIPED_UNSUPPORTED: never. */
int segment_lane_open(struct segment *s, uint32_t pixfmt);
/** segment_job() - a free slot for a frame of this pixel format, whose lane is open. Return: NULL:
 * all are taken. */
struct segment_job *segment_job(struct segment *s, uint32_t pixfmt);
/** segment_next() - Return: an answered frame of any lane; NULL. */
struct piped_frame *segment_next(struct segment *s);
/** segment_job_end() - frees a job's slot. */
void segment_job_end(struct segment_job *j);

/** segments_poll() - appends what to wait for. Return: how many. */
size_t segments_poll(const struct link *l, struct pollfd *ret, size_t max);
/** segments_go() - takes messages of the daemon, loads and unloads. */
void segments_go(struct link *l, uint64_t now_ns);
/** segments_watch() - fails segments whose daemon does not answer; after their answers were taken.
 */
void segments_watch(struct link *l, uint64_t now_ns);
/** segments_are_used() - Return: does somebody hold one? */
bool segments_are_used(const struct link *l);
/** segments_each() - Return: the next READY one at or after *@at, which is set behind it; NULL. */
struct segment *segments_each(const struct link *l, size_t *at);
