/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/record.h - one frame from its message to its answer: its bytes and its outcome
 *
 * A record belongs to one stream for good. It is in the stream's ring from dmn_ring_take() until
 * it is answered, otherwise in its free list. Its states follow in the order of the enum; each but
 * RUNNING may go to DONE at once, by dmn_record_fail(). What is prepared is READING again. RUNNING
 * ends only when the pipeline, or the place elsewhere, returns the frame, even if its client is
 * gone: a team may be writing to its output. A frame that elsewhere did not compute goes back to
 * QUEUED, once.
 *
 * Threads: the loop thread. While RUNNING, teams use the bytes behind input and output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/frames/clients.h"
#include "daemon/frames/peer.h"
#include "daemon/models/elsewhere.h"
#include "daemon/models/models.h"
#include "ipc/description.h"
#include "ipc/server/frame_rules.h"
#include "ipc/server/mapped_memory.h"
#include "ipc/wire.h"
#include "kernels/kernels.h"
#include "pipeline/pipeline.h"

struct dmn_stream;

enum dmn_record_state {
    DMN_RECORD_READING,   /* checked; the rest of an inline frame may still have to come */
    DMN_RECORD_PREPARING, /* its image becomes the model's input (preparing.c); dmn_stream.running
                           * counts it */
    DMN_RECORD_QUEUED,    /* waits for room in the pipeline; its stream's queue counts it */
    DMN_RECORD_RUNNING,   /* inside the pipeline or elsewhere; dmn_stream.running counts it */
    DMN_RECORD_DONE       /* waits for its turn to be answered */
};

struct dmn_record {
    struct dmn_frame_owner owner; /* while RUNNING: of its pipeline's frame */
    struct dmn_record *next_free;
    struct dmn_stream *stream;   /* its owner */
    enum dmn_record_state state; /* written by record.c */
    bool here;                /* only for the model's own pipeline: it came back from elsewhere */
    bool admitted;            /* its stream's model counts it as admitted; written by submit.c */
    struct ipc_answer answer; /* complete once DONE */
    enum dmn_no_result why;   /* DONE: why there is no result; NONE: there is one */
    uint64_t arrival_ns, deadline_ns;
    struct ipc_description *described; /* RUNNING, DONE with an output: how it is decoded; a
                                        * reference, or NULL; written by submit.c */
    uint64_t cost_ns;          /* that its turn was expected to cost, see dmn_admission_taken() */
    struct ipc_memory *memory; /* a reference, or NULL */
    /* each in memory or in buffer. As the client has it; as the model does, the same bytes unless
     * they are converted */
    const uint8_t *input_there, *input;
    uint8_t *output_there, *output;
    /* where the input's bytes are still to be converted to; NULL: they are not */
    uint8_t *converted;
    uint8_t *buffer; /* owned, kept for the next frame; what an inline frame sends comes first */
    size_t buffer_bytes;
    /* whose buffer it is, and whose room: both borrowed while there is a buffer */
    struct dmn_account *account;
    struct dmn_frames *frames;
    struct krn_image image;
    /* an image that is prepared beside the pipeline; written by preparing.c */
    bool beside;                         /* it is to be; written by record.c */
    const struct dmn_elsewhere *goes_to; /* frames go there, when it came; written by handlers.c */
    bool others;     /* another user had a stream of the model then; written by handlers.c */
    bool for_boards; /* but only because frames go elsewhere, as tensors; written by record.c */
    bool prepared;   /* input is what prepared_by made of it */
    struct mdl_preproc prepared_by; /* of the rows done */
    size_t rows_done;
    struct dmn_model *preparing_for; /* while PREPARING; counts it in dmn_model.running */
    enum dmn_no_result give_up;      /* PREPARING: stop for this; NONE: go on */
    uint64_t prepare_ns;             /* that preparing it has taken */
    struct pl_frame *running;        /* borrowed from the pipeline while RUNNING there */
    struct dmn_far_frame far;        /* far.at: RUNNING elsewhere */
    struct {                         /* for a trace; written by submit.c */
        uint32_t pipeline;           /* that computed it: pl_trace_id() */
        uint64_t number, admitted_ns, done_ns;
    } traced;
};

/* How a frame's inputs, or its outputs, lie with the client, and how they lie here.
 *
 * Models compute f32. A stream may have its f32 tensors travel as f16, IEEE binary16: they are
 * converted once, where frames enter and leave, so neither the pipeline nor other boards know of
 * it. f16 to f32 is exact; f32 to f16 rounds to nearest even, beyond its range to infinity. Other
 * tensors travel as they are. Both sides have their tensors back to back, each at a multiple of 64.
 */
struct dmn_travel {
    bool converts; /* some travel as f16; else both sides are the same bytes */
    size_t count, here_bytes, there_bytes;
    struct dmn_travel_tensor {
        size_t here, there; /* offsets */
        size_t bytes;       /* here; with the client half of it if f16 */
        bool f16;
    } tensor[PL_FRAME_IO_MAX];
};

/* The layout of every frame of a stream. Constant: a hot swap moves a stream only to a model with
 * frames that look the same. */
struct dmn_frame_format {
    enum ipc_pixfmt pixfmt; /* IPC_PIX_TENSOR: the model's own inputs */
    struct dmn_travel input, output;
};

/** dmn_record_free() - must not be RUNNING. Gives its buffer back to the counts. Return: NULL. */
struct dmn_record *dmn_record_free(struct dmn_record *r);
/** dmn_record_turn() - the next state, which must be one that may follow. The caller keeps the
 * counts of the state that ends and of the one that begins. */
void dmn_record_turn(struct dmn_record *r, enum dmn_record_state to);
/** dmn_record_reset() - a new frame arrives, READING; keeps the buffer. ipc_frame_take() begins its
 * answer. */
void dmn_record_reset(struct dmn_record *r);

/**
 * dmn_record_place() - finds a place for the frame's bytes: in client memory, or in the buffer, for
 * an inline frame and for what is converted
 *
 * @memory: the memory of a shared frame's number, borrowed; NULL: there is none. Takes a reference.
 * @p: counts the buffers' bytes against DMN_KEY_LIMIT_INLINE_MIB and
 * DMN_KEY_LIMIT_INLINE_TOTAL_MIB. Allocates only when the buffer is too small. A frame that does
 * not fit becomes DONE, with the reason. Return: bytes of an inline frame's input to read to
 * r->buffer; 0: there are none to read, or the record is DONE.
 */
size_t dmn_record_place(struct dmn_record *r, const struct dmn_frame_format *format,
                        const struct ipc_header *h, const struct ipc_frame *f,
                        struct ipc_memory *memory, struct dmn_peer *p);

/** dmn_record_refused() - its answer has a status and a text: sets DONE; releases its bytes. The
 * caller takes a QUEUED record out of its queue, see dmn_stream_unqueue(). */
void dmn_record_refused(struct dmn_record *r, enum dmn_no_result why);
/** dmn_record_fail() - as dmn_record_refused(), with status and text of @why, which has a text. */
void dmn_record_fail(struct dmn_record *r, enum dmn_no_result why);
/** dmn_record_cancel() - asks whoever has the RUNNING frame not to compute it. */
void dmn_record_cancel(struct dmn_record *r);
/** dmn_record_release() - releases its bytes; the buffer stays. */
void dmn_record_release(struct dmn_record *r);

/** dmn_travel_plan() - @ios: @count inputs or outputs of @m     @here: their offsets
 *     @f16: f32 tensors travel as f16 */
void dmn_travel_plan(const struct mdl_model *m, const struct mdl_io *ios, size_t count,
                     const size_t *here, size_t here_bytes, bool f16, struct dmn_travel *ret);
/** dmn_travel_bytes() - Return: bytes of tensor @i with the client. */
static inline size_t dmn_travel_bytes(const struct dmn_travel *t, size_t i)
{
    return t->tensor[i].f16 ? t->tensor[i].bytes / 2 : t->tensor[i].bytes;
}
/** dmn_travel_in() - the client's @there_bytes at @there become @here_bytes at @here; apart. */
void dmn_travel_in(const struct dmn_travel *t, const uint8_t *there, uint8_t *here);
/** dmn_travel_out() - the reverse. */
void dmn_travel_out(const struct dmn_travel *t, const uint8_t *here, uint8_t *there);
