/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/server/frame_rules.h - what a frames server decides about a frame, OPEN and POOL
 *
 * Shared by the servers, the daemon and piped-link, so that both refuse the same frames with the
 * same words. A stream embeds struct ipc_flow, the record of a frame struct ipc_answer. A function
 * that refuses a frame writes the reason into its answer. Nothing here but ipc_pool_take()
 * allocates or does I/O.
 *
 * Threads: the one that serves.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/server/mapped_memory.h"
#include "ipc/wire.h"

/* What the frames of a stream are held to. */
struct ipc_flow {
    uint32_t credits;     /* granted */
    uint32_t unanswered;  /* frames with credit; the server lowers it by has_credit of an answer */
    uint64_t deadline_ns; /* for frames without a deadline, after arrival; 0: none */
    uint64_t last_frame;  /* the highest number, if `numbered` */
    bool numbered;
};

/** ipc_flow_burst() - Return: so many frames fill a stream of @credits, or nearly. */
static inline uint32_t ipc_flow_burst(uint32_t credits)
{
    return credits - credits / 4;
}

/* What a client is told of its frame. */
struct ipc_answer {
    enum ipc_status status;
    uint32_t epoch;
    uint32_t depth; /* frames that keep the pipeline full now; 0: not told */
    bool is_inline, has_credit;
    uint64_t frame, time_ns; /* the client's */
    uint64_t queue_ns, service_ns, done_ns;
    char text[160]; /* the reason, if status is not OK */
};

/* The areas of a stream's frames. */
struct ipc_areas {
    size_t input_bytes, output_bytes; /* of tensors */
    bool image; /* the input is an image: the server checks its size, and it may lie anywhere */
};

/* A message for a client, as ipc_outgoing_add() takes it. */
struct ipc_reply {
    struct ipc_header h;
    uint8_t payload[IPC_RESULT_BYTES];
    size_t bytes;
    const void *tail; /* borrowed from what it was made of */
    size_t tail_bytes;
};

/**
 * ipc_frame_take() - begins the answer of a FRAME or INLINE and counts the frame
 *
 * @payload: its fixed part
 *
 * Return: true with @ret_f set; false: it has no credit, its number is not above the last one, or
 * @payload makes no sense. Areas of a frame that is taken end below 2^64.
 */
bool ipc_frame_take(struct ipc_flow *flow, struct ipc_answer *a, const struct ipc_header *h,
                    const uint8_t *payload, struct ipc_frame *ret_f);

/** ipc_frame_deadline() - Return: the frame's own, else its stream's, saturating, in ns of
 * CLOCK_MONOTONIC; 0: none. */
static inline uint64_t ipc_frame_deadline(const struct ipc_flow *flow, const struct ipc_frame *f,
                                          uint64_t arrival_ns)
{
    uint64_t deadline;

    if (f->deadline_ns || !flow->deadline_ns) {
        return f->deadline_ns;
    }
    return __builtin_add_overflow(arrival_ns, flow->deadline_ns, &deadline) ? UINT64_MAX : deadline;
}

/**
 * ipc_frame_fits_memory() - checks where a taken FRAME lies in client memory
 *
 * @m: the memory of the frame's number; NULL: there is none
 *
 * Return: false: refused.
 */
bool ipc_frame_fits_memory(struct ipc_answer *a, const struct ipc_frame *f,
                           const struct ipc_memory *m, const struct ipc_areas *areas);
/** ipc_frame_fits_message() - checks the sizes of a taken INLINE. Return: false: refused. */
bool ipc_frame_fits_message(struct ipc_answer *a, const struct ipc_header *h,
                            const struct ipc_frame *f, const struct ipc_areas *areas);

/** ipc_answer_refuse() - the frame is answered with @status, not OK, and a reason. */
__attribute__((format(printf, 3, 4))) void
ipc_answer_refuse(struct ipc_answer *a, enum ipc_status status, const char *format, ...);
__attribute__((format(printf, 3, 0))) void
ipc_answer_vrefuse(struct ipc_answer *a, enum ipc_status status, const char *format, va_list args);

/** ipc_answer_reply() - the RESULT of a frame. @output: sent if an INLINE was computed. @ret: valid
 * while @a and @output are. */
void ipc_answer_reply(const struct ipc_answer *a, uint32_t stream, const uint8_t *output,
                      size_t output_bytes, struct ipc_reply *ret);

/* ---- OPEN and POOL, which are always answered, with a status ---- */

/* What OPEN meets on its connection. */
struct ipc_open_place {
    bool in_use;             /* a stream of its number is open */
    const char *unavailable; /* why nothing is opened now; NULL: something is */
    size_t streams, streams_max;
    uint32_t features; /* those both sides have */
};

/**
 * ipc_open_check() - decodes OPEN and checks what does not concern its model
 *
 * input_dtype and output_dtype of @ret are then 0 or IPC_F16.
 *
 * @payload: IPC_OPEN_BYTES     @ret_text: a static text, or @unavailable
 *
 * Return: IPC_OK; else what ipc_open_refusal() says.
 */
enum ipc_status ipc_open_check(const struct ipc_header *h, const uint8_t *payload,
                               const struct ipc_open_place *place, struct ipc_open *ret,
                               const char **ret_text);
/** ipc_open_refusal() - OPENED with @status, not OK. @text: borrowed while @ret is used. */
void ipc_open_refusal(const struct ipc_header *h, enum ipc_status status, const char *text,
                      struct ipc_reply *ret);

/* Where a POOL goes. */
struct ipc_pool_place {
    struct ipc_memory **memory; /* IPC_POOLS_MAX of the stream; NULL: no such stream */
    size_t *total, total_max;   /* see ipc_memory_map() */
    const char *over;           /* what is told beyond total_max; borrowed for the reply */
};

/** ipc_pool_take() - maps the memory of POOL, or refuses it. @payload: IPC_POOL_BYTES; @fd: stays
 * the caller's; -1: none came. @ret: POOLED, with a text that is static or place->over. */
void ipc_pool_take(const struct ipc_header *h, const uint8_t *payload, int fd,
                   const struct ipc_pool_place *place, struct ipc_reply *ret);
