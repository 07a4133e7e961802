/* SPDX-License-Identifier: Apache-2.0 */
/* pipedinfer: the task of the source pads. Takes what is ready from the queue, and pushes it. */
#include <poll.h>
#include <string.h>

#include "apps/gstreamer/infer_element.h"

/* Sleeps until there may be an answer, or a stop. Gives the lock back meanwhile. */
static void wait_for_answer(PipedInfer *self)
{
    struct pollfd fds[2] = {{.fd = self->session->fd, .events = POLLIN},
                            {.fd = self->wake, .events = POLLIN}};

    g_mutex_unlock(&self->lock);
    poll(fds, 2, -1);
    g_mutex_lock(&self->lock);
}

/* A service that fails to start may be mended within timeout-ms; who can mend it is told now.
 * Return: whether it was told; the lock was free meanwhile. */
static gboolean say_trouble(PipedInfer *self)
{
    char *why = pgst_session_trouble(self->session);

    if (!why) {
        return FALSE;
    }
    g_mutex_unlock(&self->lock);
    GST_ELEMENT_WARNING(self, RESOURCE, READ, ("waits: %s", why), (NULL));
    g_free(why);
    g_mutex_lock(&self->lock);
    return TRUE;
}

/* Return: the head of the queue when it is ready, with the answer if it is a frame; NULL: stop.
 * Behind the last frame the other thread may change the session. */
static struct pgst_item *next_ready(PipedInfer *self, PipedResult **ret)
{
    gboolean raw = (gboolean)pgst_infer_property(self, &self->raw_outputs);
    struct pgst_item *item = NULL;

    *ret = NULL;
    g_mutex_lock(&self->lock);
    while (!self->flushing) {
        item = g_queue_peek_head(&self->queue);
        if (!item) {
            g_cond_wait(&self->more, &self->lock);
        } else if (item->frame && !(*ret = pgst_session_next(self->session, raw))) {
            if (!say_trouble(self)) {
                wait_for_answer(self);
            }
        } else {
            break;
        }
    }
    if (self->flushing) {
        item = NULL;
    } else {
        if (item->copied) {
            pgst_session_release(self->session, item->frame);
        } else if (!item->frame && GST_IS_BUFFER(item->object)) {
            *ret = pgst_result_new(self->session->model, PIPED_GST_LATE, NULL, NULL, NULL, FALSE);
        }
        g_queue_pop_head(&self->queue);
        self->frames -= GST_IS_BUFFER(item->object);
        g_cond_broadcast(&self->room);
    }
    g_mutex_unlock(&self->lock);
    return item;
}

/* Whoever draws or reads objects would see none, frame after frame. Who wants the tensors knows. */
static void say_undecoded(PipedInfer *self)
{
    gboolean raw = (gboolean)pgst_infer_property(self, &self->raw_outputs);
    char *why = NULL;

    g_mutex_lock(&self->lock);
    if (!self->said_undecoded && !raw && self->session) {
        why = pgst_session_undecoded(self->session);
        self->said_undecoded = why != NULL;
    }
    g_mutex_unlock(&self->lock);
    if (why) {
        GST_ELEMENT_WARNING(self, STREAM, DECODE, ("nothing to draw: %s", why),
                            ("answers have no objects; raw-outputs=true gives the tensors"));
        g_free(why);
    }
}

/* Return: the flow of all source pads together. */
static GstFlowReturn combine(PipedInfer *self, GstPad *pad, GstFlowReturn flow)
{
    PGST_LOCKED(self);

    self->flow = gst_flow_combiner_update_pad_flow(self->combiner, pad, flow);
    if (self->flow != GST_FLOW_OK) {
        g_cond_broadcast(&self->room); /* the next frame is told */
    }
    return self->flow;
}

/* The pad of answers as text; the caller unrefs it. NULL: nobody wants it. Its stream begins with
 * the first answer. */
static GstPad *json_pad(PipedInfer *self)
{
    gboolean begin, segment;
    GstSegment out;
    GstPad *json;

    g_mutex_lock(&self->lock);
    json = self->json ? gst_object_ref(self->json) : NULL;
    begin = json && !self->json_begun;
    segment = json && (begin || self->json_segment_due) && self->out.format != GST_FORMAT_UNDEFINED;
    out = self->out;
    self->json_begun = self->json_begun || begin;
    self->json_segment_due = self->json_segment_due && !segment;
    g_mutex_unlock(&self->lock);
    if (begin) {
        char *id = gst_pad_create_stream_id(json, GST_ELEMENT(self), "json");

        gst_pad_push_event(json, gst_event_new_stream_start(id));
        gst_pad_push_event(json, gst_event_new_caps(gst_pad_get_pad_template_caps(json)));
        g_free(id);
    }
    if (segment) {
        gst_pad_push_event(json, gst_event_new_segment(&out));
    }
    return json;
}

/* The answer as text: to the pad, and to the application. */
static GstFlowReturn push_text(PipedInfer *self, const PipedResult *r, GstBuffer *frame)
{
    GstPad *json = json_pad(self);
    GstFlowReturn flow = GST_FLOW_OK;
    gboolean post = (gboolean)pgst_infer_property(self, &self->post_messages);
    char *text;

    text = json || post ? pgst_result_json(r, self->number, frame) : NULL;
    if (post) {
        GstStructure *s = gst_structure_new(
            "piped-result", "pts", G_TYPE_UINT64, GST_BUFFER_PTS(frame), "status", G_TYPE_STRING,
            pgst_result_status(r), "json", G_TYPE_STRING, text, NULL);

        gst_element_post_message(GST_ELEMENT(self), gst_message_new_element(GST_OBJECT(self), s));
    }
    if (json) {
        char *line = g_strconcat(text, "\n", NULL);
        GstBuffer *b = gst_buffer_new_wrapped(line, strlen(line));

        gst_buffer_copy_into(b, frame, GST_BUFFER_COPY_TIMESTAMPS, 0, 0);
        flow = combine(self, json, gst_pad_push(json, b));
        gst_object_unref(json);
    }
    g_free(text);
    return flow;
}

/* Return: the answer means that no frame will be computed any more. */
static gboolean is_final(int status)
{
    switch (status) {
    case PIPED_OK:
    case PIPED_GST_LATE:
    case PIPED_RESOURCE_EXHAUSTED:
    case PIPED_DEADLINE_EXCEEDED:
    case PIPED_CANCELLED:
    case PIPED_DROPPED:
        return FALSE;
    default:
        return TRUE;
    }
}

static void count(PipedInfer *self, int status)
{
    PGST_LOCKED(self);

    self->answered += status == PIPED_OK;
    self->late += status == PIPED_GST_LATE;
    self->failed += is_final(status);
    self->dropped += status != PIPED_OK && status != PIPED_GST_LATE && !is_final(status);
}

/* Takes the buffer and the answer. */
static GstFlowReturn push_frame(PipedInfer *self, GstBuffer *buffer, PipedResult *r,
                                gint64 arrived_us)
{
    int status = r->status;
    GstFlowReturn flow;

    count(self, status);
    if (status == PIPED_OK) {
        pgst_infer_took(self, arrived_us);
        say_undecoded(self);
    } else if (!is_final(status)) {
        pgst_infer_say_qos(self, buffer, &self->out);
    } else {
        GST_ELEMENT_ERROR(self, RESOURCE, READ, ("%s", r->text),
                          ("a frame was answered %s", pgst_result_status(r)));
        gst_buffer_unref(buffer);
        pgst_result_unref(r);
        return combine(self, self->src, GST_FLOW_ERROR);
    }
    buffer = gst_buffer_make_writable(buffer);
    pgst_result_put(buffer, r);
    flow = push_text(self, r, buffer);
    self->number++;
    if (flow != GST_FLOW_OK) {
        gst_buffer_unref(buffer);
        return flow;
    }
    return combine(self, self->src, gst_pad_push(self->src, buffer));
}

static void push_event(PipedInfer *self, GstEvent *event)
{
    GstPad *json = NULL;

    switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_SEGMENT:
        g_mutex_lock(&self->lock);
        gst_event_copy_segment(event, &self->out);
        self->json_segment_due = TRUE;
        g_mutex_unlock(&self->lock);
        break;
    case GST_EVENT_EOS:
    case GST_EVENT_GAP:
        json = json_pad(self);
        break;
    default:
        break;
    }
    if (json) {
        gst_pad_push_event(json, gst_event_ref(event));
        gst_object_unref(json);
    }
    gst_pad_push_event(self->src, event);
}

/* What happens to a stream that cannot go on is said once, by whoever finds out. */
static void end(PipedInfer *self, GstFlowReturn flow)
{
    if (flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS) {
        if (flow != GST_FLOW_ERROR) {
            GST_ELEMENT_FLOW_ERROR(self, flow);
        }
        push_event(self, gst_event_new_eos());
    }
    gst_pad_pause_task(self->src);
}

void pgst_infer_loop(gpointer data)
{
    PipedInfer *self = data;
    GstFlowReturn flow = GST_FLOW_OK;
    PipedResult *r;
    struct pgst_item *item = next_ready(self, &r);

    if (!item) {
        gst_pad_pause_task(self->src);
        return;
    }
    if (item->discard) {
        gst_mini_object_unref(item->object);
        pgst_result_unref(r);
    } else if (GST_IS_EVENT(item->object)) {
        push_event(self, GST_EVENT_CAST(item->object));
    } else {
        flow = push_frame(self, GST_BUFFER_CAST(item->object), r, item->arrived_us);
    }
    g_free(item);
    if (flow != GST_FLOW_OK) {
        end(self, flow);
    }
}
