/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped: the state of a stream, what it sends, and its list of submitted frames. */
#include "base/base.h"
#include "base/pixfmt.h"
#include "base/shown_text.h"
#include "ipc/client/client.h"

/* The numbers of piped.h are those of the table. */
#define SAME(ID, ...) _Static_assert((int)PIPED_##ID == PIXFMT_##ID, #ID);
PIXFMT_LIST(SAME)

int ipc_stream_start(struct piped_stream *s)
{
    struct ipc_header h = {.type = IPC_OPEN, .stream = s->id};

    if ((s->open.input_dtype || s->open.output_dtype) && !(s->client->features & IPC_FEATURE_F16)) {
        ipc_client_error(0, "the daemon, %s, is too old for f16 tensors; send f32",
                         s->client->server);
        ipc_stream_fail(s, IPC_UNSUPPORTED, -EOPNOTSUPP, piped_last_error());
        return 0;
    }
    s->state = IPC_STREAM_OPENING;
    free(base_take(s->coming)); /* the next daemon may say something else, or nothing */
    ipc_description_hold(&s->told, NULL);
    return ipc_client_queue(s->client, &h, &s->open, sizeof(s->open), NULL, 0, -1);
}

static int queue_frame(struct piped_stream *s, struct ipc_slot *slot)
{
    struct piped_frame *f = &slot->frame;
    struct ipc_header h = {.type = s->inline_frames ? IPC_INLINE : IPC_FRAME,
                           .stream = s->id,
                           .frame = f->number,
                           .time_ns = f->time_ns};
    struct ipc_frame m = {.in_bytes = f->input_bytes,
                          .deadline_ns = f->deadline_ns,
                          .width = f->width,
                          .height = f->height,
                          .stride = f->stride};

    if (!s->inline_frames) {
        m.in_offset = slot->in_offset;
        m.out_offset = slot->out_offset;
        m.out_bytes = s->output_size;
    }
    return ipc_client_queue(s->client, &h, &m, sizeof(m), s->inline_frames ? f->input : NULL,
                            s->inline_frames ? f->input_bytes : 0, -1);
}

int ipc_stream_pump(struct piped_stream *s)
{
    struct ipc_slot *slot;

    if (s->state != IPC_STREAM_READY || s->client->state != IPC_CLIENT_UP || s->client->draining) {
        return 0;
    }
    STAILQ_FOREACH(slot, &s->submitted, linked)
    {
        int rc;

        if (s->credits == 0) {
            break;
        }
        if (slot->state != IPC_SLOT_QUEUED) {
            continue;
        }
        if (slot->cancelled) {
            ipc_slot_cancelled(s, slot);
            continue;
        }
        rc = queue_frame(s, slot);
        if (rc < 0) {
            return rc;
        }
        s->stats.resent += slot->was_sent;
        slot->was_sent = true;
        slot->state = IPC_SLOT_SENT;
        s->credits--;
    }
    return 0;
}

void ipc_slot_answer(struct piped_stream *s, struct ipc_slot *slot, int status, const char *text,
                     size_t text_bytes)
{
    text_bytes = base_min(text_bytes, (size_t)IPC_TEXT_MAX);
    if (text_bytes) {
        memcpy(slot->text, text, text_bytes);
    }
    slot->text[text_bytes] = 0;
    shown_clean(slot->text, "\n\t"); /* it may be cut within a character */
    slot->frame.text = slot->text;
    slot->frame.status = status;
    slot->frame.answered_ns = base_now_ns();
    slot->state = IPC_SLOT_ANSWERED;
    s->stats.answered++;
}

void ipc_slot_cancelled(struct piped_stream *s, struct ipc_slot *slot)
{
    static const char text[] = "cancelled before it was sent";

    ipc_slot_answer(s, slot, IPC_CANCELLED, text, sizeof(text) - 1);
}

void ipc_stream_fail(struct piped_stream *s, int status, int error, const char *text)
{
    struct ipc_slot *slot;

    s->state = IPC_STREAM_FAILED;
    s->error = error;
    STAILQ_FOREACH(slot, &s->submitted, linked)
    {
        if (slot->state == IPC_SLOT_QUEUED || slot->state == IPC_SLOT_SENT) {
            ipc_slot_answer(s, slot, status, text, strlen(text));
        }
    }
}

void ipc_stream_disconnected(struct piped_stream *s)
{
    struct ipc_slot *slot;

    s->credits = 0;
    if (s->state != IPC_STREAM_FAILED) {
        s->state = IPC_STREAM_NEW;
    }
    STAILQ_FOREACH(slot, &s->submitted, linked)
    {
        if (slot->state == IPC_SLOT_SENT) {
            slot->state = IPC_SLOT_QUEUED;
        }
    }
}

void ipc_stream_free(struct piped_stream *s)
{
    LIST_REMOVE(s, linked);
    for (size_t i = 0; i < s->slot_count; i++) {
        ipc_description_hold(&s->slots[i].description, NULL);
    }
    ipc_stream_deallocate(s);
    free(s->coming);
    ipc_description_hold(&s->told, NULL);
    ipc_description_hold(&s->description, NULL);
    free(s);
}
