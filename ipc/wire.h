/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/wire.h - the frames protocol: 32-byte little-endian headers and fixed payloads, bytes in,
 * messages out
 *
 * No I/O here: the daemon, libpiped, the tests and the fuzzers share this codec. docs/protocol.md
 * describes the same bytes for those who write a client of their own; a test compares the two. All
 * integers are little-endian, all payload structs are multiples of 8 bytes, reserved fields are
 * sent as 0 and ignored. Strings are UTF-8 in fixed fields, padded with NUL and always terminated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IPC_VERSION 1u
#define IPC_HEADER_BYTES 32u
#define IPC_NAME_BYTES 64u
#define IPC_FDS_MAX 4u
#define IPC_RANK_MAX 8u
#define IPC_PAYLOAD_MAX (64u << 20) /* largest payload: an inline frame */
#define IPC_TEXT_MAX 512u           /* explanation in RESULT and ERROR */
#define IPC_TENSORS_MAX 16u
#define IPC_STREAMS_MAX 64u  /* a connection */
#define IPC_CREDITS_MAX 256u /* a stream */
#define IPC_POOLS_MAX 4u     /* a stream */
#define IPC_POOL_BYTES_MAX (1ull << 30)
#define IPC_PRIORITY_MAX 3u
#define IPC_PING_MAX 64u
#define IPC_EXTENDED_MAX 1024u      /* to what size a later version may grow a fixed payload */
#define IPC_UNKNOWN_MAX (64u << 10) /* payload of a type with bit 15 that the reader skips */

/* Type numbers; bit 15 set: a reader that does not know it ignores it. Unknown without bit 15:
 * ERROR and close. */
enum ipc_type {
    IPC_HELLO = 1,   /* client: first message */
    IPC_WELCOME = 2, /* server: answer to HELLO */
    IPC_OPEN = 3, /* client: open stream header.stream (chosen by the client, not 0, not in use) */
    IPC_OPENED = 4, /* server: answer to OPEN; header.status says whether; text follows if not OK */
    IPC_POOL = 5,   /* client: a memory pool for a stream, one fd on the header's first byte */
    IPC_POOLED = 6, /* server: answer to POOL; header.status, header.frame the pool's number; text
                       if not OK */
    IPC_FRAME = 7,  /* client: a frame in a pool */
    IPC_INLINE = 8, /* client: a frame whose input bytes follow the payload struct */
    IPC_RESULT = 9, /* server: exactly one per FRAME or INLINE, in frame order per stream */
    IPC_CREDIT = 10, /* server: more (never fewer) credits for a stream */
    IPC_CANCEL = 11, /* client: frame header.frame is no longer wanted; it is still answered */
    IPC_PING = 12,   /* either side; payload returned as it is, at most 64 bytes */
    IPC_PONG = 13,
    IPC_CLOSE = 14,     /* client: no more frames on this stream */
    IPC_CLOSED = 15,    /* server: all its frames are answered; pools are unmapped */
    IPC_ERROR = 16,     /* server: header.status and text; the connection is closed after it */
    IPC_EVENT = 0x8001, /* server: something changed, see enum ipc_event */
};

enum ipc_flag { IPC_FLAG_MORE = 4 }; /* reserved for later versions; sent as 0 */

/* header.status. The names go over the control socket and into bench's `errors` in lower case with
 * '_'. */
enum ipc_status {
    IPC_OK = 0,
    IPC_INVALID_ARGUMENT = 1, /* wrong size, offset outside the pool, bad shape */
    IPC_NOT_FOUND = 2,        /* no such model, stream, pool */
    IPC_PERMISSION_DENIED = 3,
    IPC_UNSUPPORTED = 4,        /* version, pixel format, feature */
    IPC_RESOURCE_EXHAUSTED = 5, /* no credit left, too many streams, policy reject and busy */
    IPC_UNAVAILABLE = 6,        /* draining, model being unloaded */
    IPC_DEADLINE_EXCEEDED = 7,
    IPC_CANCELLED = 8,
    IPC_DROPPED = 9, /* policy latest: a newer frame took its place */
    IPC_INTERNAL = 10,
    IPC_PROTOCOL = 11, /* the bytes make no sense; only in ERROR */
    IPC_STATUS_COUNT
};

enum ipc_policy {
    IPC_POLICY_BLOCK = 0, /* every frame is computed; credits hold the client back */
    IPC_POLICY_LATEST =
        1, /* a new frame replaces the stream's queued one, which is answered DROPPED */
    IPC_POLICY_REJECT = 2, /* a frame that cannot start at once is answered RESOURCE_EXHAUSTED */
};

/* Pixel formats of OPEN; 0: the input is the model's tensors, back to back at the offsets that
 * OPENED names. */
enum ipc_pixfmt {
    IPC_PIX_TENSOR = 0,
    IPC_PIX_RGB24 = 1,
    IPC_PIX_BGR24 = 2,
    IPC_PIX_GRAY8 = 3,
    IPC_PIX_NV12 = 4,
    IPC_PIX_YUYV = 5,
    IPC_PIX_COUNT
};

enum ipc_dtype { IPC_F32 = 1, IPC_I32 = 2, IPC_I64 = 3, IPC_U8 = 4, IPC_I8 = 5, IPC_BOOL = 6 };

enum ipc_event { IPC_EVENT_PLAN = 1, IPC_EVENT_DRAINING = 2, IPC_EVENT_UNLOADING = 3 };

struct ipc_header {    /* byte offset: */
    uint32_t length;   /*  0  payload bytes after this header */
    uint16_t type;     /*  4 */
    uint8_t version;   /*  6  1 */
    uint8_t flags;     /*  7 */
    uint32_t stream;   /*  8  0: the connection */
    uint16_t fd_count; /* 12 */
    uint16_t status;   /* 14  answers; 0 in requests */
    uint64_t frame;    /* 16  client's number, strictly increasing per stream */
    uint64_t time_ns;  /* 24  FRAME: capture time, the client's own, returned in RESULT */
};

struct ipc_hello {                     /* 80 bytes */
    uint16_t version_min, version_max; /* 0, 2 */
    uint32_t features;                 /* 4: none defined yet */
    char client[IPC_NAME_BYTES];       /* 8 */
    uint64_t reserved;                 /* 72 */
};
struct ipc_welcome {                   /* 96 bytes */
    uint16_t version, reserved;        /* 0, 2 */
    uint32_t features;                 /* 4 */
    uint32_t payload_max, streams_max; /* 8, 12 */
    uint64_t pool_bytes_max;           /* 16 */
    char server[IPC_NAME_BYTES];       /* 24: "piped 0.1.0" */
    uint64_t instance;                 /* 88: changes with every start of the daemon */
};
struct ipc_open {               /* 96 bytes */
    char model[IPC_NAME_BYTES]; /* 0: "" is the only or the first model */
    uint32_t pixfmt, policy;    /* 64, 68 */
    uint32_t credits,
        priority;         /* 72: wanted, 0: as the server sees fit; 76: 0..3, 0 is the usual one */
    uint64_t deadline_ns; /* 80: for each frame from its arrival; 0: none */
    uint64_t reserved;    /* 88 */
};
struct ipc_tensor {             /* 128 bytes */
    char name[IPC_NAME_BYTES];  /* 0 */
    uint32_t dtype, rank;       /* 64, 68 */
    uint32_t dim[IPC_RANK_MAX]; /* 72 */
    uint64_t offset, bytes;     /* 104: from the start of the frame's input or output area; 112 */
    uint64_t reserved;          /* 120 */
};
struct ipc_opened { /* 48 bytes, then input_count + output_count times ipc_tensor; or text if status
                       is not OK */
    uint32_t credits,
        depth; /* 0, 4: frames that may be unanswered; frames that keep the pipeline full */
    uint32_t input_count, output_count; /* 8, 12 */
    uint64_t input_bytes, output_bytes; /* 16, 24: of one frame's areas (tensor form) */
    uint32_t image_width,
        image_height;  /* 32, 36: size that needs no resizing; 0: input 0 is no image */
    uint64_t reserved; /* 40 */
};
struct ipc_pool {            /* 16 bytes */
    uint32_t pool, reserved; /* 0: 0..IPC_POOLS_MAX-1 */
    uint64_t bytes;          /* 8: size of the memfd; sealed F_SEAL_SHRINK (and GROW) */
};
struct ipc_frame {           /* 64 bytes; FRAME and INLINE */
    uint32_t pool, reserved; /* 0: FRAME only */
    uint64_t in_offset,
        in_bytes; /* 8, 16: input area; INLINE: in_offset 0, in_bytes follow this struct */
    uint64_t out_offset,
        out_bytes; /* 24, 32: output area, at least output_bytes, 64-byte aligned; INLINE: 0 */
    uint64_t deadline_ns;       /* 40: absolute CLOCK_MONOTONIC, 0: as OPEN said */
    uint32_t width, height;     /* 48, 52: images; 0 for tensors */
    uint32_t stride, reserved2; /* 56 */
};
struct ipc_result { /* 48 bytes; then output bytes (answer to INLINE) or text (status not OK) */
    uint64_t queue_ns,
        service_ns;          /* 0: arrival to start of stage 0; 8: start to end of the last stage */
    uint64_t done_ns;        /* 16: CLOCK_MONOTONIC when the last stage was done */
    uint32_t credits, epoch; /* 24: credits this answer gives back; 28: plan it ran under */
    uint64_t out_bytes;      /* 32: output bytes written, or following here */
    uint64_t reserved;       /* 40 */
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

/* Encoders write exactly the sizes above into @b. */
void ipc_put_header(const struct ipc_header *h, uint8_t b[IPC_HEADER_BYTES]);
void ipc_put_hello(const struct ipc_hello *m, uint8_t b[IPC_HELLO_BYTES]);
void ipc_put_welcome(const struct ipc_welcome *m, uint8_t b[IPC_WELCOME_BYTES]);
void ipc_put_open(const struct ipc_open *m, uint8_t b[IPC_OPEN_BYTES]);
void ipc_put_tensor(const struct ipc_tensor *m, uint8_t b[IPC_TENSOR_BYTES]);
void ipc_put_opened(const struct ipc_opened *m, uint8_t b[IPC_OPENED_BYTES]);
void ipc_put_pool(const struct ipc_pool *m, uint8_t b[IPC_POOL_BYTES]);
void ipc_put_frame(const struct ipc_frame *m, uint8_t b[IPC_FRAME_BYTES]);
void ipc_put_result(const struct ipc_result *m, uint8_t b[IPC_RESULT_BYTES]);
void ipc_put_credit(const struct ipc_credit *m, uint8_t b[IPC_CREDIT_BYTES]);
void ipc_put_event(const struct ipc_event_msg *m, uint8_t b[IPC_EVENT_BYTES]);

/**
 * ipc_get_header() - decode and check what can be checked without knowing the connection
 * @b: exactly IPC_HEADER_BYTES. Return: 0; IPC_E_VERSION; IPC_E_TOO_BIG (length > IPC_PAYLOAD_MAX,
 * or more than the largest payload of that type); IPC_E_MALFORMED (unknown type without bit 15, too
 * many fds, length below that type's struct). The header is filled in every case.
 */
enum ipc_outcome { IPC_E_VERSION = 1, IPC_E_TOO_BIG = 2, IPC_E_MALFORMED = 3 };
int ipc_get_header(const uint8_t b[IPC_HEADER_BYTES], struct ipc_header *ret);

/* Decoders: @bytes of payload at @b; more than the struct's bytes are ignored. Return: 0, or
 * IPC_E_MALFORMED (too short; a string unterminated, not UTF-8 or with control characters; value
 * out of range; offset + bytes overflows; a tensor's bytes not those of its shape). The struct is
 * filled in every case but "too short", so that an answer may name the culprit. */
int ipc_get_hello(const uint8_t *b, size_t bytes, struct ipc_hello *ret);
int ipc_get_welcome(const uint8_t *b, size_t bytes, struct ipc_welcome *ret);
int ipc_get_open(const uint8_t *b, size_t bytes, struct ipc_open *ret);
int ipc_get_opened(const uint8_t *b, size_t bytes,
                   struct ipc_opened *ret); /* the struct; tensors by ipc_get_tensor */
int ipc_get_tensor(const uint8_t *b, size_t bytes, struct ipc_tensor *ret);
int ipc_get_pool(const uint8_t *b, size_t bytes, struct ipc_pool *ret);
int ipc_get_frame(const uint8_t *b, size_t bytes, struct ipc_frame *ret);
int ipc_get_result(const uint8_t *b, size_t bytes, struct ipc_result *ret);
int ipc_get_credit(const uint8_t *b, size_t bytes, struct ipc_credit *ret);
int ipc_get_event(const uint8_t *b, size_t bytes, struct ipc_event_msg *ret);

/** ipc_dtype_bytes() - bytes of one element, 0 for a number that is no enum ipc_dtype. */
size_t ipc_dtype_bytes(uint32_t dtype);

const char *ipc_status_name(enum ipc_status s); /* "ok", "invalid_argument", ... */
const char *ipc_type_name(uint16_t type);       /* "HELLO", ... or "unknown" */
