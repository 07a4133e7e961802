/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/protocol.h - the numbers of the frames protocol: limits, types, outcomes, formats
 *
 * docs/protocol.md says the same for those who write a client; a test compares the two. A number
 * never gets another meaning.
 */
#pragma once

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
