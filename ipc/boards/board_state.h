/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/boards/board_state.h - what boards tell each other, and what piped and piped-link tell each
 * other, about boards
 *
 * Three JSON objects, and nothing else, cross these borders:
 *
 * - a *state*: what a board says of itself; in a BOARD message of the link (apps/link/wire/);
 * - a *link report*: the states of all boards, and how the routes are doing; piped-link calls
 *   io.piped.LinkReport with it, at every change and once a second;
 * - *routes*: which boards serve which units of a model; piped answers io.piped.LinkRoutes with all
 *   of them, again after each change.
 *
 * Boards are named by their fingerprint (ipc/boards/known_boards.h), which is the same everywhere;
 * names are each board's own, for people. Every reader takes untrusted JSON: counts are bounded,
 * numbers finite, names valid; what it does not know it ignores.
 *
 * Threads: any; plain data and pure functions.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/boards/known_boards.h"

#define BRD_EPS_MAX 8u   /* EPs of one board */
#define BRD_HOPS_MAX 16u /* segments of a route */
#define BRD_SHARE_MAX 8u /* boards of one hop */
#define BRD_TENSORS_MAX 16u
#define BRD_RANK_MAX 8u
#define BRD_ROUTES_MAX 16u
#define BRD_COSTS_MAX 8u      /* segments whose costs a state tells */
#define BRD_COST_ROWS_MAX 64u /* (EP, width) of one of them */
#define BRD_COST_UNITS_MAX 4096u
#define BRD_CONTENT_BYTES 64u /* with NUL */
#define BRD_EP_NAME_BYTES 24u
#define BRD_STATE_TEXT_MAX (256u << 10) /* of a state as text */
#define BRD_LEAVES_TEXT_MAX 2048u       /* "0-3,7" */
#define BRD_PRIMITIVES_TEXT_MAX 3072u   /* of a hop */
#define BRD_PREPROCESS_TEXT_MAX 1024u   /* with NUL */

struct brd_ep {
    char name[BRD_EP_NAME_BYTES];
    uint32_t cores;
    double speed;    /* relative to the board's fastest EP, 0 < speed <= 1 */
    double max_khz;  /* 0: unknown */
    double capacity; /* the kernel's figure, at most 1024; 0: unknown */
    double watts;    /* of a busy core above idle, measured or configured; 0: unknown */
};
/* Measured times of the units of a segment on one (EP, width). */
struct brd_cost_row {
    uint32_t ep, width; /* ep: index of the state's EPs */
    uint32_t units;     /* of the segment */
    double *ns;         /* [units], owned; 0: not measured */
};
struct brd_costs {
    char content[BRD_CONTENT_BYTES]; /* of the route */
    uint32_t first_unit, unit_count;
    size_t row_count;
    struct brd_cost_row row[BRD_COST_ROWS_MAX];
};
/* One direction, to another board. */
struct brd_way {
    char print[BRD_FINGERPRINT_BYTES]; /* its fingerprint */
    bool up, measured;
    double ns, ns_per_byte; /* a message of n bytes takes ns + n x ns_per_byte */
};
struct brd_state {
    char print[BRD_FINGERPRINT_BYTES];
    char name[BRD_NAME_BYTES]; /* the reader's name for it; not part of the text */
    bool up;                   /* it is there; not part of the text */
    bool known;                /* it has told the rest */
    char version[32];          /* of piped-link */
    double memory_bytes;       /* that models may take there; 0: unknown */
    size_t ep_count, way_count, costs_count;
    struct brd_ep ep[BRD_EPS_MAX];
    struct brd_way way[BRD_MAX];
    struct brd_costs *costs; /* [costs_count], owned; the newest last */
};

enum brd_route_phase {
    BRD_PREPARING, /* boards load their segments */
    BRD_READY,     /* frames of the model may be sent */
    BRD_FAILED,    /* it serves no more; .why */
};
/** brd_phase_name() - Return: "preparing", "ready", "failed"; static. */
const char *brd_phase_name(enum brd_route_phase phase);

struct brd_route_state {
    char model[BRD_CONTENT_BYTES];
    uint32_t number;
    enum brd_route_phase phase;
    char why[256];                     /* FAILED: a sentence */
    char board[BRD_FINGERPRINT_BYTES]; /* FAILED: of which board; "": none in particular */
    char to[BRD_FINGERPRINT_BYTES];    /* FAILED: its link to this one; "": the board itself */
    uint32_t frames;                   /* that may be on their way; 0: unknown */
    uint32_t window;                   /* of them, those that keep it full; 0: unknown */
    bool pictures;                     /* boards take pictures as they are */
    uint64_t answered, resent, late;
    uint64_t dropped;                /* not sent: their clients had left, or cancelled them */
    double service_ns[BRD_HOPS_MAX]; /* of a frame in each hop, mean of the newest; 0: unknown */
};
struct brd_link_report_all {
    struct brd_state self; /* .way: how far away the others are */
    size_t board_count, route_count;
    struct brd_state board[BRD_MAX];
    struct brd_route_state route[BRD_ROUTES_MAX];
};

struct brd_tensor {
    uint32_t dtype, rank; /* enum piped_dtype */
    uint32_t dim[BRD_RANK_MAX];
    uint64_t bytes;
};
struct brd_hop_board {
    char print[BRD_FINGERPRINT_BYTES];
    uint32_t share; /* of the frames, relative to the others'; 1 to 1000 */
};
struct brd_hop {
    uint32_t first_unit, last_unit;
    size_t board_count;
    struct brd_hop_board board[BRD_SHARE_MAX];
    char leaves[BRD_LEAVES_TEXT_MAX]; /* of the file, that the segment needs; "": all */
    char border[BRD_KEY_TEXT_BYTES];  /* brd_border_text() of the segment; "": unknown */
    /* that the head's whole model has for these units (daemon/models/choosing.h); "": unknown */
    char primitives[BRD_PRIMITIVES_TEXT_MAX];
};
struct brd_route {
    char model[BRD_CONTENT_BYTES];   /* as clients call it */
    char content[BRD_CONTENT_BYTES]; /* as boards call it: the name and a part of the identity */
    uint32_t number;                 /* another for each change of the model's route */
    char identity[65];               /* hash of the file (base/leaves/leaves.h), hex */
    char path[1024];                 /* of the file, at the head */
    /* how pictures become the input, as JSON (the key preprocess of a sidecar); "": none are sent
     */
    char preprocess[BRD_PREPROCESS_TEXT_MAX];
    size_t hop_count; /* 0: the model is not spread (any more) */
    struct brd_hop hop[BRD_HOPS_MAX];
    size_t input_count, output_count;
    struct brd_tensor input[BRD_TENSORS_MAX], output[BRD_TENSORS_MAX];
};
struct brd_routes {
    size_t count;
    struct brd_route route[BRD_ROUTES_MAX];
};

/** brd_costs_deinit() - frees the rows. */
void brd_costs_deinit(struct brd_costs *c);
/** brd_costs_drop() - forgets all costs. */
void brd_costs_drop(struct brd_state *s);
/** brd_state_deinit() - frees the costs. */
void brd_state_deinit(struct brd_state *s);
/** brd_state_json() - Return: a new reference; NULL: out of memory. */
json_t *brd_state_json(const struct brd_state *s);
/** brd_state_json_within() - the same, without as many costs, the first ones first, as make its
 * compact text longer than @bytes; what is left without any is much shorter. */
json_t *brd_state_json_within(const struct brd_state *s, size_t bytes);
/** brd_state_read() - sets all but name and up. Return: 0; -EBADMSG: something else, or out of
 * memory: @ret is zeros. */
int brd_state_read(const json_t *j, struct brd_state *ret);

/** brd_report_all_json() - Return: a new reference; NULL: out of memory. */
json_t *brd_report_all_json(const struct brd_link_report_all *r);
/** brd_report_all_json_within() - as brd_state_json_within(), of all boards alike. */
json_t *brd_report_all_json_within(const struct brd_link_report_all *r, size_t bytes);
/** brd_report_all_read() - @ret: the caller's, brd_report_all_deinit(). Return: as
 * brd_state_read(). */
int brd_report_all_read(const json_t *j, struct brd_link_report_all *ret);
void brd_report_all_deinit(struct brd_link_report_all *r);

/** brd_routes_json() - Return: a new reference; NULL: out of memory. */
json_t *brd_routes_json(const struct brd_routes *r);
/** brd_routes_read() - Return: 0; -EBADMSG, @ret is zeros. Hops cover units from 0 on without a
 * gap. */
int brd_routes_read(const json_t *j, struct brd_routes *ret);

/** brd_border_text() - what boards compare before they work together: a hash of the hashes of the
 * borders before and after a segment (model/segment/segment.h), which piped tells. */
void brd_border_text(const char *front, const char *back, char ret[BRD_KEY_TEXT_BYTES]);

/** brd_hops_text() - hops as a text for PLAN messages, FIRST-LAST@PRINT*SHARE+PRINT*SHARE|...
 * Return: 0; -ENOSPC. */
int brd_hops_text(const struct brd_hop *hop, size_t count, char *ret, size_t bytes);
/** brd_hops_parse() - reads it, without leaves, from untrusted text. Return: 0; -EBADMSG, @ret has
 * anything. */
int brd_hops_parse(const char *text, struct brd_hop ret[BRD_HOPS_MAX], size_t *ret_count);
