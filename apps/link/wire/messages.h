/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/wire/messages.h - the messages between boards: bytes in, messages out
 *
 * A message is a first part and up to LNK_PARTS_MAX payload parts. The first part is a struct
 * lnk_header and the struct of its type; what follows them there is said at the type. Numbers are
 * little-endian, and a struct here is its bytes: no gaps, reserved members are sent as 0.
 *
 * It does no I/O, keeps no state and allocates nothing. Threads: any. Bytes may have any alignment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LNK_VERSION 1u
#define LNK_PARTS_MAX 16u              /* payload parts: one for each tensor */
#define LNK_PAYLOAD_MAX (256ull << 20) /* of all parts of a message */
#define LNK_NAME_BYTES 32u             /* of a board, with its NUL */
#define LNK_HASH_BYTES 32u
#define LNK_RANK_MAX 8u
#define LNK_TEXT_MAX 512u /* of an error, without NUL */
#define LNK_PLAN_TEXT_MAX 8192u
#define LNK_LEAVES_MAX 256u      /* of a WANT */
#define LNK_HOPS_MAX 16u         /* whose times a message tells */
#define LNK_LEAF_LIST UINT64_MAX /* the number of the list of all leaves */
/* The number of no leaf: the file cannot be had, and the part, at most LNK_TEXT_MAX, says why. */
#define LNK_LEAF_REFUSED (UINT64_MAX - 1)
#define LNK_BOARD_BYTES (256u << 10)
#define LNK_LEAF_BYTES (1u << 20)
#define LNK_PING_LARGE_BYTES (64u << 10) /* payload of a large PING; that of a small one is empty */

/* 11 is no type: what had this number was never sent. */
enum lnk_type {
    LNK_HELLO = 1,   /* first message after a link is up, both ways */
    LNK_PLAN = 2,    /* head: a segment of an epoch, or the end of epochs; lines follow */
    LNK_FRAME = 3,   /* tensor_count struct lnk_tensor follow, time_count times; a part a tensor */
    LNK_ANSWER = 4,  /* the same, of an answer */
    LNK_ERROR = 5,   /* a frame or a stream that failed; text_bytes of UTF-8 follow */
    LNK_CREDIT = 6,  /* frames that may be sent beyond those answered */
    LNK_PING = 7,    /* one part of LNK_PING_LARGE_BYTES, or none */
    LNK_PONG = 8,    /* the PING's struct, no parts */
    LNK_WANT = 9,    /* leaf_count uint64_t follow: numbers of leaves; none: their list */
    LNK_LEAF = 10,   /* one part: the leaf's bytes */
    LNK_BOARD = 12,  /* one part: what a board says of itself, ipc/boards/board_state.h as text */
    LNK_CANCEL = 13, /* head: nobody wants this frame any more; only after LNK_HELLO_CANCEL */
    LNK_TYPE_COUNT
};

enum lnk_dtype { LNK_F32 = 1, LNK_I32 = 2, LNK_I64 = 3, LNK_U8 = 4, LNK_I8 = 5, LNK_BOOL = 6 };

/* A struct is its bytes. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"
struct lnk_header {
    uint16_t type;
    uint8_t version; /* LNK_VERSION */
    uint8_t part_count;
    uint32_t body_bytes;    /* of the first part, after this struct */
    uint64_t payload_bytes; /* of all parts together */
};
#define LNK_HELLO_BACK 1u     /* it answers a HELLO */
#define LNK_HELLO_CANCEL 2u   /* it understands CANCEL */
#define LNK_HELLO_PICTURES 4u /* and pictures, and the line of a PLAN that tells of them */
/* The upper half of the features: how often the sender lost this board, and all that it had from
 * it, in 1 to 65535; 0: an older build, which does not tell. */
#define LNK_HELLO_LOST_SHIFT 16u
struct lnk_hello {
    uint16_t version_min, version_max;
    uint32_t features; /* LNK_HELLO_ bits; others are ignored */
    uint64_t instance; /* random, another after each start: a new one means a new process */
    char name[LNK_NAME_BYTES];
    uint8_t reserved[64];
};
/* Its text: the model's name at boards, the hops (brd_hops_text()), the leaves that the segment
 * needs ("": all), the primitives of the whole model for it, which may lack, and for the first hop
 * how pictures become the input, if boards shall take them. */
struct lnk_plan {
    uint32_t stream, epoch;
    uint32_t first_unit, last_unit;
    uint16_t hop, hop_count; /* the segment's place; count 0: epochs before this one are over */
    uint32_t text_bytes;
    uint8_t model[LNK_HASH_BYTES], border[LNK_HASH_BYTES];
};
struct lnk_frame {
    uint32_t stream, epoch;
    uint64_t frame;
    uint64_t left_ns; /* until the deadline, when sent; 0: none. Clocks are not shared. */
    uint16_t hop;     /* that computes it */
    uint8_t tensor_count;
    uint8_t time_count; /* uint64_t follow: ns that each hop before computed it */
    uint32_t way;       /* of the head's ledger */
};
struct lnk_tensor {
    uint8_t dtype, rank;
    /* 1: a picture instead of the model's only input, only after LNK_HELLO_PICTURES: U8, of dim
     * [pixel format][height][width], without gaps between rows; else 0 */
    uint8_t is_picture;
    uint8_t reserved;
    uint32_t reserved2;
    uint32_t dim[LNK_RANK_MAX];
    uint64_t bytes;
};
struct lnk_answer {
    uint32_t stream, epoch;
    uint64_t frame;
    uint64_t queue_ns, service_ns; /* of the last hop */
    uint16_t hop;
    uint8_t tensor_count, time_count; /* as of a frame */
    uint32_t way;
};
struct lnk_error {
    uint32_t stream, epoch;
    uint64_t frame; /* 0: the stream */
    uint16_t hop, status;
    uint16_t text_bytes;
    uint16_t way; /* of the frame */
};
struct lnk_credit {
    uint32_t stream, epoch;
    uint16_t hop, depth; /* depth: frames that keep the board busy */
    uint32_t credits;
    uint64_t frame_bytes; /* of a frame's tensors, as they are sent there */
};
struct lnk_ping {
    uint64_t id, reserved;
};
struct lnk_want {
    uint8_t model[LNK_HASH_BYTES];
    uint32_t leaf_count, reserved;
};
struct lnk_leaf {
    uint8_t model[LNK_HASH_BYTES];
    uint64_t leaf;
};
struct lnk_cancel {
    uint32_t stream, epoch;
    uint64_t frame;
};
#pragma GCC diagnostic pop

struct lnk_bytes; /* apps/link/transport/transport.h */

/* A message as it was read. Pointers go into the first part. */
struct lnk_message {
    struct lnk_header header;
    union {
        struct lnk_hello hello;
        struct lnk_plan plan;
        struct lnk_frame frame;
        struct lnk_answer answer;
        struct lnk_error error;
        struct lnk_credit credit;
        struct lnk_ping ping;
        struct lnk_want want;
        struct lnk_leaf leaf;
        struct lnk_cancel cancel;
    };
    struct lnk_tensor tensor[LNK_PARTS_MAX]; /* FRAME, ANSWER */
    const uint8_t *tail; /* the text of PLAN and ERROR, the numbers of WANT, FRAME and ANSWER */
    size_t tail_bytes;
    const struct lnk_bytes *part; /* payload: set by who received it, valid until it is taken */
};

enum lnk_outcome { LNK_E_VERSION = 1, LNK_E_TOO_BIG = 2, LNK_E_MALFORMED = 3 };

/**
 * lnk_get() - reads a message
 * @first: the first part
 * @part_bytes: sizes of the @parts payload parts
 *
 * Return: 0; LNK_E_VERSION; LNK_E_TOO_BIG: more parts or bytes than a message may have;
 * LNK_E_MALFORMED: anything else that its sender must not write. @ret is set only by 0;
 * part is then NULL.
 */
int lnk_get(const void *first, size_t first_bytes, const size_t *part_bytes, size_t parts,
            struct lnk_message *ret);

/* No first part is longer than that. */
#define LNK_FIRST_MAX (sizeof(struct lnk_header) + sizeof(struct lnk_plan) + LNK_PLAN_TEXT_MAX)

/**
 * lnk_put() - writes the first part of @m into @ret
 *
 * Reads the type, the union, the tensors that it counts, and the tail; works out version, sizes and
 * counts of the header, and the counts of tail bytes in the struct. PING, PONG, LEAF and BOARD have
 * no tensors: @payload_bytes is that of their part. Return: bytes written; 0: not a valid message.
 */
size_t lnk_put(const struct lnk_message *m, uint64_t payload_bytes, uint8_t ret[LNK_FIRST_MAX]);

/** lnk_count_tail() - sets the count of tail bytes in the struct, as lnk_put() does. */
void lnk_count_tail(struct lnk_message *m);
/** lnk_tensor_bytes() - bytes by shape. Return: false: no valid type, or too big. */
bool lnk_tensor_bytes(const struct lnk_tensor *t, uint64_t *ret);
/** lnk_number() - number @i of the tail: a leaf of a WANT, the ns of a hop of a FRAME or an ANSWER.
 */
uint64_t lnk_number(const struct lnk_message *m, size_t i);
