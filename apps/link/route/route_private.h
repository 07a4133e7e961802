/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/route/route_private.h - what the files of route.h share */
#pragma once

#include "apps/link/common/ledger.h"
#include "apps/link/common/progress.h"
#include "apps/link/route/route.h"

#define HEAD_FRAMES 1024u
#define HEAD_EPOCHS_MAX 6u /* the present one, one that boards prepare, and those that end */

/* A frame of the front. */
struct head_frame {
    struct head *head;
    struct head_frame *next_free;
    struct front_frame *front; /* NULL: free */
    unsigned held;             /* messages of the transport that have its input */
    bool released;             /* by the ledger: it is answered when nothing holds it */
    bool forsaken;             /* boards that have it are to be told that nobody wants it */
    bool alone;                /* it found nobody before it */
    uint64_t number;           /* of the ledger */
    uint32_t status;
    uint32_t route;                /* number of the route that answered */
    uint64_t begun_ns, service_ns; /* when it came; how long boards computed it */
};
struct head_epoch {
    uint32_t number;                            /* of the messages; 0: free */
    uint32_t ledger;                            /* its number in the ledger; 0: not begun */
    bool pictures;                              /* its first hop takes them as they are */
    uint32_t gone;                              /* bits of boards of a single hop that were lost */
    uint64_t told_ns;                           /* when boards were told their places */
    uint32_t room[BRD_HOPS_MAX][BRD_SHARE_MAX]; /* frames that a board gets at most; 0: not yet */
    uint32_t busy[BRD_HOPS_MAX][BRD_SHARE_MAX]; /* of them, those that keep it busy */
    uint64_t frame_bytes[BRD_HOPS_MAX];         /* sent to a board of the hop for a frame */
    struct brd_route *route;                    /* owned */
};
/* How answers came since the window was last worked out. */
struct head_pace {
    uint64_t alone_ns; /* the shortest time of a frame that found nobody before it; 0: unknown */
    uint64_t last_ns;  /* the last answers came then */
    bool full;         /* and the window was full */
    uint64_t full_ns;  /* in which it was full from answer to answer */
    uint32_t answers;  /* in that time */
};
/* A model of this board that is spread. */
struct head {
    struct link *link;
    bool withdrawn; /* no more frames; it ends when all are answered */
    uint32_t stream, last_epoch;
    uint32_t told;              /* bits of boards that may know the stream */
    uint32_t over[LINK_BOARDS]; /* epochs before it are over, and the board knows; 0: none */
    char content[BRD_CONTENT_BYTES];
    struct brd_route_state state;
    uint64_t late;             /* answers of epochs that are over */
    struct lnk_ledger *ledger; /* owned */
    struct head_epoch epoch[HEAD_EPOCHS_MAX];
    struct head_frame frame[HEAD_FRAMES], *free;
    uint32_t taken;                           /* frames that are not free */
    uint32_t forsaken;                        /* of them, so many are marked so */
    struct head_frame *numbered[HEAD_FRAMES]; /* frame of the ledger % HEAD_FRAMES -> it */
    uint64_t window_ns;                       /* windows are worked out again then */
    uint64_t pause_ns;                        /* nothing is sent until then */
    struct head_pace pace;
    struct lnk_progress progress; /* of answers of boards */
};
struct heads {
    uint64_t turn_ns;                  /* the last one */
    struct head *head[BRD_ROUTES_MAX]; /* owned; NULL: free */
};

/* epochs.c */
/** head_by_stream() - Return: NULL: none. */
struct head *head_by_stream(const struct link *l, uint32_t stream);
/** head_by_model() - the head of a model that is not withdrawn. Return: NULL: none. */
struct head *head_by_model(const struct link *l, const char *model);
/** head_epoch() - Return: the epoch with this number in messages; NULL. */
struct head_epoch *head_epoch(struct head *h, uint32_t number);
/** head_present() - Return: the epoch that new frames go under; NULL. */
struct head_epoch *head_present(struct head *h);
/** head_end_epoch() - forgets it. */
void head_end_epoch(struct head_epoch *e);
/** head_prepare() - a new epoch by a copy of @route. */
void head_prepare(struct head *h, const struct brd_route *route);
/** head_remind() - tells boards that have not given credit their places again: one that has not
 * yet seen its own link to us break forgets them when it does. */
void head_remind(struct head *h, uint64_t now_ns);
/** head_epoch_fail() - the epoch is over. @board: of which the failure is, or LINK_NOBODY; @to: its
 * link to this board, or LINK_NOBODY. */
void head_epoch_fail(struct head *h, struct head_epoch *e, size_t board, size_t to,
                     const char *why);
/** head_lose() - the epoch cannot use a board any more. */
void head_lose(struct head *h, struct head_epoch *e, size_t board, const char *why);
/** head_hop_has() - Return: the board has a share of that hop. */
bool head_hop_has(const struct head *h, const struct brd_hop *hop, size_t board);
/** head_uses() - Return: it has a place in the epoch's route. */
bool head_uses(const struct head *h, const struct head_epoch *e, size_t board);
/** head_windows() - the ledger's windows, by links and boards as they are now. @e: the present one.
 */
void head_windows(struct head *h, const struct head_epoch *e);
/** head_tidy() - ends epochs that are not needed any more, and tells boards. Return: false: a board
 * that is there could not be told yet. */
bool head_tidy(struct head *h);

/* window.c */
/** head_full() - Return: how many frames of an epoch keep its bottleneck busy; the pace is noted
 * anew. */
uint32_t head_full(struct head *h, const struct head_epoch *e);
/** head_pace_frame() - a frame that found nobody before it was answered. */
void head_pace_frame(struct head *h, uint64_t took_ns);
/** head_pace_answers() - so many frames were answered together. @full: the window was, before. */
void head_pace_answers(struct head *h, uint32_t count, bool full, uint64_t now_ns);
/** head_window() - Return: how many frames of an epoch may be unanswered. */
uint32_t head_window(const struct head *h, const struct head_epoch *e);
/** head_way_window() - the same of board @k of a single hop. */
uint32_t head_way_window(const struct head *h, const struct head_epoch *e, size_t k);

/* frames.c */
/** head_send() - sends what is due. */
void head_send(struct head *h, uint64_t now_ns);
/** head_cancel() - tells boards of frames that nobody wants any more. */
void head_cancel(struct head *h);
/** head_answer() - answers what is answered, in order. */
void head_answer(struct head *h);
