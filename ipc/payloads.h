/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/payloads.h - the header of a message and the payloads, laid out as they travel
 *
 * Integers are little-endian. A struct is its bytes: comments give the offsets of members; a test
 * compares them with docs/protocol_messages.md. Payloads are multiples of 8 bytes. Reserved fields
 * are sent as 0 and ignored. Texts are UTF-8 in fixed fields, padded with NUL and always
 * terminated.
 */
#pragma once

#include <stdint.h>

#include "ipc/protocol.h"

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
    char model[IPC_NAME_BYTES]; /* 0: "" is the only or the first model */
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
