/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/protocol.h - the frames protocol: its numbers, and messages laid out as they travel
 *
 * docs/protocol.md and docs/protocol_messages.md say the same for those who write a client; a test
 * compares the two. A number never gets another meaning.
 *
 * Integers are little-endian. A struct is its bytes: comments give the offsets of members. Payloads
 * are multiples of 8 bytes. Reserved fields are sent as 0 and ignored. Texts are UTF-8 in fixed
 * fields, padded with NUL and always terminated.
 */
#pragma once

#include <stdint.h>

#include "base/pixfmt.h"

#define IPC_VERSION 1u
#define IPC_HEADER_BYTES 32u
#define IPC_NAME_BYTES 64u
#define IPC_FDS_MAX 4u
#define IPC_RANK_MAX 8u
#define IPC_PAYLOAD_MAX (64u << 20) /* largest payload: an inline frame */
#define IPC_TEXT_MAX 512u           /* text of OPENED, POOLED, RESULT and ERROR */
#define IPC_TENSORS_MAX 16u
#define IPC_STREAMS_MAX 64u  /* of a connection */
#define IPC_CREDITS_MAX 256u /* of a stream */
#define IPC_POOLS_MAX 4u     /* of a stream */
#define IPC_POOL_BYTES_MAX (1ull << 30)
#define IPC_PRIORITY_MAX 3u
#define IPC_PING_MAX 64u
#define IPC_EXTENDED_MAX 1024u      /* of a payload of fixed size in later versions */
#define IPC_UNKNOWN_MAX (64u << 10) /* payload of an unknown type with bit 15, and of DESCRIBED */
#define IPC_DESCRIPTION_MAX (1u << 20) /* text of all DESCRIBED of a stream */

/* A reader skips an unknown type with bit 15. An unknown type without it is answered by ERROR, and
 * the connection is closed. */
enum ipc_type {
    IPC_HELLO = 1,   /* client: first message */
    IPC_WELCOME = 2, /* server: answer to HELLO */
    IPC_OPEN = 3, /* client: open stream header.stream (chosen by the client, not 0, not in use) */
    IPC_OPENED = 4,  /* server: answer to OPEN; a text follows unless header.status is OK */
    IPC_POOL = 5,    /* client: memory for a stream; one fd with the header's first byte */
    IPC_POOLED = 6,  /* server: answer to POOL; header.frame is the pool's number; a text follows
                       unless header.status is OK */
    IPC_FRAME = 7,   /* client: a frame in a pool */
    IPC_INLINE = 8,  /* client: a frame whose input bytes follow the payload struct */
    IPC_RESULT = 9,  /* server: exactly one per FRAME or INLINE, in frame order per stream */
    IPC_CREDIT = 10, /* server: more (never fewer) credits for a stream */
    IPC_CANCEL = 11, /* client: cancels header.frame, which is still answered */
    IPC_PING = 12,   /* either side; PONG returns its payload, at most 64 bytes */
    IPC_PONG = 13,
    IPC_CLOSE = 14,         /* client: no more frames on this stream */
    IPC_CLOSED = 15,        /* server: all its frames are answered; pools are unmapped */
    IPC_ERROR = 16,         /* server: header.status and a text; then the connection is closed */
    IPC_EVENT = 0x8001,     /* server: something changed, see enum ipc_event */
    IPC_DESCRIBED = 0x8002, /* server: how the outputs from here on are decoded: a part of a text */
};

enum ipc_flag { IPC_FLAG_MORE = 4 }; /* DESCRIBED: another part follows; else sent as 0 */

/* header.status; ipc_status_name() has the names */
enum ipc_status {
    IPC_OK = 0,
    IPC_INVALID_ARGUMENT = 1, /* wrong size, offset outside the pool, bad shape */
    IPC_NOT_FOUND = 2,        /* no such model, stream, pool */
    IPC_PERMISSION_DENIED = 3,
    IPC_UNSUPPORTED = 4,        /* version, pixel format, feature */
    IPC_RESOURCE_EXHAUSTED = 5, /* no credit left, too many streams, policy reject and busy */
    IPC_UNAVAILABLE = 6,        /* draining, model being unloaded; in ERROR: it failed to start */
    IPC_DEADLINE_EXCEEDED = 7,
    IPC_CANCELLED = 8,
    IPC_DROPPED = 9, /* policy latest: a newer frame took its place */
    IPC_INTERNAL = 10,
    IPC_PROTOCOL = 11, /* invalid bytes; only in ERROR */
    IPC_STATUS_COUNT
};

enum ipc_policy {
    IPC_POLICY_BLOCK = 0,  /* every frame is computed; credits hold the client back */
    IPC_POLICY_LATEST = 1, /* a new frame replaces the waiting one, which is answered DROPPED */
    IPC_POLICY_REJECT = 2, /* a frame that cannot start at once is answered RESOURCE_EXHAUSTED */
    IPC_POLICY_COUNT
};

/* Pixel formats of OPEN; TENSOR: the model's input tensors at the offsets that OPENED names */
#define IPC_PIX_ID(ID, ...) IPC_PIX_##ID,
enum ipc_pixfmt { PIXFMT_LIST(IPC_PIX_ID) IPC_PIX_COUNT };

/* F16: only on streams that ask for it; see struct ipc_open */
enum ipc_dtype {
    IPC_F32 = 1,
    IPC_I32 = 2,
    IPC_I64 = 3,
    IPC_U8 = 4,
    IPC_I8 = 5,
    IPC_BOOL = 6,
    IPC_F16 = 7
};

/* Bits of `features` in HELLO and WELCOME: what a side knows besides version 1. */
enum ipc_feature { IPC_FEATURE_F16 = 1, IPC_FEATURE_DESCRIBED = 2 };

enum ipc_event { IPC_EVENT_PLAN = 1, IPC_EVENT_DRAINING = 2, IPC_EVENT_UNLOADING = 3 };

/* ---- the header of a message, and payloads ---- */

struct ipc_header {    /* byte offset: */
    uint32_t length;   /*  0  payload bytes after this header */
    uint16_t type;     /*  4 */
    uint8_t version;   /*  6  1 */
    uint8_t flags;     /*  7 */
    uint32_t stream;   /*  8  0: the connection */
    uint16_t fd_count; /* 12 */
    uint16_t status;   /* 14  answers; 0 in requests */
    uint64_t frame;    /* 16  the client's number, strictly increasing on a stream */
    uint64_t time_ns;  /* 24  FRAME: capture time by the client's clock, returned in RESULT */
};

struct ipc_hello {                     /* 80 bytes */
    uint16_t version_min, version_max; /* 0, 2 */
    uint32_t features;                 /* 4: enum ipc_feature */
    char client[IPC_NAME_BYTES];       /* 8 */
    uint64_t reserved;                 /* 72 */
};
struct ipc_welcome {                   /* 96 bytes */
    uint16_t version, reserved;        /* 0, 2 */
    uint32_t features;                 /* 4: those both sides have */
    uint32_t payload_max, streams_max; /* 8, 12 */
    uint64_t pool_bytes_max;           /* 16 */
    char server[IPC_NAME_BYTES];       /* 24: "piped 0.1.0" */
    uint64_t instance;                 /* 88: changes with every start of the daemon */
};
struct ipc_open {               /* 96 bytes */
    char model[IPC_NAME_BYTES]; /* 0: "" is the default model */
    uint32_t pixfmt, policy;    /* 64, 68 */
    uint32_t credits;           /* 72: wanted; 0: the server decides */
    uint32_t priority;          /* 76: 0 (usual) to 3 */
    uint64_t deadline_ns;       /* 80: for each frame, from its arrival; 0: none */
    /* as what f32 tensors travel, 88, 92; 0: f32; reserved unless both sides have F16 */
    uint32_t input_dtype, output_dtype;
};
struct ipc_tensor {             /* 128 bytes */
    char name[IPC_NAME_BYTES];  /* 0 */
    uint32_t dtype, rank;       /* 64, 68 */
    uint32_t dim[IPC_RANK_MAX]; /* 72 */
    uint64_t offset, bytes;     /* 104: from the start of the frame's input or output area; 112 */
    uint32_t rows_output;       /* 120: 1 + the output that says how many rows are valid; 0: all */
    uint32_t rows_dim;          /* 124: rows are along this dimension */
};
/* Followed by input_count + output_count tensors; by a text if the status is not OK. */
struct ipc_opened {                     /* 48 bytes */
    uint32_t credits;                   /* 0: frames that may be unanswered */
    uint32_t depth;                     /* 4: frames that keep the pipeline full */
    uint32_t input_count, output_count; /* 8, 12 */
    uint64_t input_bytes, output_bytes; /* 16, 24: of a frame's areas, for tensors */
    uint32_t image_width, image_height; /* 32, 36: needs no resizing; 0: input 0 is not an image */
    uint64_t reserved;                  /* 40 */
};
struct ipc_pool {            /* 16 bytes */
    uint32_t pool, reserved; /* 0: 0..IPC_POOLS_MAX-1 */
    uint64_t bytes;          /* 8: size of the memfd; sealed F_SEAL_SHRINK (and GROW) */
};
/* FRAME, and INLINE: in_bytes follow the struct; pool, in_offset, out_offset, out_bytes are 0. */
struct ipc_frame {                /* 64 bytes */
    uint32_t pool, reserved;      /* 0 */
    uint64_t in_offset, in_bytes; /* 8, 16: input area */
    uint64_t out_offset,
        out_bytes;              /* 24, 32: output area: 64-byte aligned, at least output_bytes */
    uint64_t deadline_ns;       /* 40: CLOCK_MONOTONIC; 0: as OPEN said */
    uint32_t width, height;     /* 48, 52: images; 0 for tensors */
    uint32_t stride, reserved2; /* 56 */
};
/* Followed by the output if it answers INLINE; by a text if the status is not OK. */
struct ipc_result {          /* 48 bytes */
    uint64_t queue_ns;       /* 0: from arrival to the start of the first stage */
    uint64_t service_ns;     /* 8: from there to the end of the last stage */
    uint64_t done_ns;        /* 16: CLOCK_MONOTONIC at that end */
    uint32_t credits, epoch; /* 24: credits that it gives back; 28: number of the plan */
    uint64_t out_bytes;      /* 32: output bytes, in the pool or following */
    uint32_t depth;          /* 40: frames that keep the pipeline full now; 0: not told */
    uint32_t reserved;       /* 44 */
};
struct ipc_credit { /* 8 bytes */
    uint32_t credits, reserved;
};
struct ipc_event_msg { /* 16 bytes */
    uint32_t event, epoch;
    uint64_t reserved;
};

#define IPC_HELLO_BYTES 80u
#define IPC_WELCOME_BYTES 96u
#define IPC_OPEN_BYTES 96u
#define IPC_TENSOR_BYTES 128u
#define IPC_OPENED_BYTES 48u
#define IPC_POOL_BYTES 16u
#define IPC_FRAME_BYTES 64u
#define IPC_RESULT_BYTES 48u
#define IPC_CREDIT_BYTES 8u
#define IPC_EVENT_BYTES 16u
