/* SPDX-License-Identifier: Apache-2.0 */
/* pipedinfer: the sink pad. Frames go to the daemon and into the queue. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "apps/gstreamer/infer_element.h"

#define TRY_AGAIN_US 20000

static void free_item(struct pgst_item *item)
{
    gst_mini_object_unref(item->object);
    g_free(item);
}

void pgst_infer_stop(PipedInfer *self)
{
    PGST_LOCKED(self);

    self->flushing = TRUE;
    g_cond_broadcast(&self->more);
    g_cond_broadcast(&self->room);
    eventfd_write(self->wake, 1);
}

void pgst_infer_go(PipedInfer *self)
{
    eventfd_t unused;
    PGST_LOCKED(self);

    self->flushing = FALSE;
    self->flow = GST_FLOW_OK;
    gst_flow_combiner_reset(self->combiner);
    eventfd_read(self->wake, &unused);
}

void pgst_infer_forget(PipedInfer *self)
{
    GQueue queue;
    struct pgst_session *session;
    struct pgst_item *item;

    g_mutex_lock(&self->lock);
    queue = self->queue;
    session = self->session;
    g_queue_init(&self->queue);
    self->session = NULL;
    self->frames = 0;
    g_mutex_unlock(&self->lock);
    while ((item = g_queue_pop_head(&queue))) {
        free_item(item);
    }
    pgst_session_unref(session);
}

static void append(PipedInfer *self, gpointer object, struct piped_frame *frame, gboolean copied)
{
    struct pgst_item *item = g_new(struct pgst_item, 1);

    *item = (struct pgst_item){.object = GST_MINI_OBJECT_CAST(object),
                               .frame = frame,
                               .copied = copied,
                               .arrived_us = g_get_monotonic_time()};
    g_mutex_lock(&self->lock);
    self->frames += GST_IS_BUFFER(object);
    g_queue_push_tail(&self->queue, item);
    g_cond_signal(&self->more);
    g_mutex_unlock(&self->lock);
}

/* Waits until a buffer may be added to the queue, or until all of it has left. */
static GstFlowReturn wait_for_room(PipedInfer *self, gboolean empty)
{
    PGST_LOCKED(self);

    while (!self->flushing && self->flow == GST_FLOW_OK &&
           (empty ? self->queue.length > 0 : self->frames >= self->in_flight)) {
        g_cond_wait(&self->room, &self->lock);
    }
    return self->flushing ? GST_FLOW_FLUSHING : self->flow;
}

/* The slot with the picture: the buffer's own memory, or a copy. Return: NULL: an error was said.
 */
static struct piped_frame *fill_slot(PipedInfer *self, GstBuffer *buffer, gboolean *ret_copied)
{
    struct pgst_session *s = self->session;
    struct pgst_slot *slot = pgst_session_slot_of(s, buffer);
    struct piped_frame *f;
    GstVideoFrame from;

    *ret_copied = !slot;
    if (slot) {
        slot->submitted = TRUE;
        return slot->frame;
    }
    if (!gst_video_frame_map(&from, &s->info, buffer, GST_MAP_READ)) {
        GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("A buffer does not hold a picture of its caps."),
                          ("gst_video_frame_map() failed"));
        return NULL;
    }
    if (pgst_session_acquire(s, &f) < 0) {
        GST_ELEMENT_ERROR(self, RESOURCE, FAILED, ("All slots of the stream are in use."), (NULL));
        f = NULL;
    } else {
        pgst_format_copy(s->format, &from, f->input, s->stride);
        pgst_colours_map(&s->colours, &s->info, s->format->pixfmt, f->input, s->stride);
    }
    gst_video_frame_unmap(&from);
    return f;
}

static GstFlowReturn send_frame(PipedInfer *self, GstBuffer *buffer)
{
    gboolean copied;
    struct piped_frame *f = fill_slot(self, buffer, &copied);

    if (!f) {
        gst_buffer_unref(buffer);
        return GST_FLOW_ERROR;
    }
    if (pgst_session_submit(self->session, f) < 0) {
        GST_ELEMENT_ERROR(self, RESOURCE, WRITE, ("%s", piped_last_error()), (NULL));
        if (copied) {
            pgst_session_release(self->session, f);
        }
        gst_buffer_unref(buffer);
        return GST_FLOW_ERROR;
    }
    g_mutex_lock(&self->lock);
    self->copies += copied;
    self->slots_used += !copied;
    g_mutex_unlock(&self->lock);
    append(self, buffer, f, copied);
    return GST_FLOW_OK;
}

GstFlowReturn pgst_infer_chain(GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
    PipedInfer *self = (PipedInfer *)parent;
    GstFlowReturn flow = self->session ? wait_for_room(self, FALSE) : GST_FLOW_NOT_NEGOTIATED;

    if (flow != GST_FLOW_OK) {
        gst_buffer_unref(buffer);
        return flow;
    }
    if (pgst_infer_is_late(self, buffer)) {
        append(self, buffer, NULL, FALSE);
        return GST_FLOW_OK;
    }
    return send_frame(self, buffer);
}

/* Return: FALSE: it is time to give up, or the element is stopped. */
static gboolean wait_to_try_again(PipedInfer *self, gint64 end_us)
{
    gint64 until_us = MIN(g_get_monotonic_time() + TRY_AGAIN_US, end_us);
    PGST_LOCKED(self);

    while (!self->flushing && self->flow == GST_FLOW_OK &&
           g_cond_wait_until(&self->room, &self->lock, until_us)) {
    }
    return !self->flushing && self->flow == GST_FLOW_OK && until_us < end_us;
}

/* An element that was connected looks for a daemon that went away for as long as libpiped does: a
 * new format may come during a restart. Without a daemon at the start it fails at once. */
static int open_session(PipedInfer *self, const struct pgst_settings *set, const GstVideoInfo *info,
                        struct pgst_session **ret)
{
    gint64 end_us = g_get_monotonic_time() + set->timeout_ms * G_TIME_SPAN_MILLISECOND;
    int rc = pgst_session_open(set, info, ret);

    while (rc == -ECONNREFUSED && self->session && wait_to_try_again(self, end_us)) {
        rc = pgst_session_open(set, info, ret);
    }
    return rc;
}

/* A new format: the frames of the old one leave first. Only this thread changes the session. */
static gboolean take_caps(PipedInfer *self, GstEvent *event)
{
    struct pgst_session *session = NULL, *before;
    struct pgst_settings set;
    GstVideoInfo info;
    GstCaps *caps;
    int rc;

    gst_event_parse_caps(event, &caps);
    if (!gst_video_info_from_caps(&info, caps) || !pgst_format_find(GST_VIDEO_INFO_FORMAT(&info))) {
        return FALSE;
    }
    if (self->session && gst_video_info_is_equal(&info, &self->session->info)) {
        return TRUE;
    }
    if (wait_for_room(self, TRUE) != GST_FLOW_OK) { /* also: it was refused before */
        return FALSE;
    }
    GST_OBJECT_LOCK(self);
    set = self->settings;
    set.socket = g_strdup(set.socket);
    set.model = g_strdup(set.model);
    GST_OBJECT_UNLOCK(self);
    rc = open_session(self, &set, &info, &session);
    if (rc < 0) {
        GST_ELEMENT_ERROR(self, RESOURCE, OPEN_READ_WRITE, ("%s", piped_last_error()),
                          ("model %s: %s", set.model ? set.model : "(the first)", g_strerror(-rc)));
        g_mutex_lock(&self->lock);
        self->flow = GST_FLOW_ERROR;
        g_mutex_unlock(&self->lock);
    } else {
        g_mutex_lock(&self->lock);
        before = self->session;
        self->reconnects += before ? pgst_session_reconnects(before) : 0;
        self->session = session;
        self->in_flight = set.in_flight;
        g_mutex_unlock(&self->lock);
        pgst_session_unref(before);
    }
    g_free(set.socket);
    g_free(set.model);
    return rc == 0;
}

/* What stays of the queue are frames that the daemon has: their answers are thrown away. Other
 * sticky events than those of a stream's place in time stay on the pad. */
static void flush_queue(PipedInfer *self)
{
    GQueue kept = G_QUEUE_INIT;
    struct pgst_item *item;
    PGST_LOCKED(self);

    self->frames = 0;
    while ((item = g_queue_pop_head(&self->queue))) {
        GstEvent *event = GST_IS_EVENT(item->object) ? GST_EVENT_CAST(item->object) : NULL;

        if (event && GST_EVENT_IS_STICKY(event) && GST_EVENT_TYPE(event) != GST_EVENT_SEGMENT &&
            GST_EVENT_TYPE(event) != GST_EVENT_EOS) {
            gst_pad_store_sticky_event(self->src, event);
        }
        if (!item->frame) {
            free_item(item);
            continue;
        }
        pgst_session_cancel(self->session, item->frame);
        item->discard = TRUE;
        self->frames++;
        g_queue_push_tail(&kept, item);
    }
    self->queue = kept;
    gst_segment_init(&self->in, GST_FORMAT_UNDEFINED);
    self->json_segment_due = TRUE;
    pgst_infer_qos_reset(self);
}

static gboolean push_both(PipedInfer *self, GstEvent *event)
{
    GstPad *json;

    g_mutex_lock(&self->lock);
    json = self->json && self->json_begun ? gst_object_ref(self->json) : NULL;
    g_mutex_unlock(&self->lock);
    if (json) {
        gst_pad_push_event(json, gst_event_ref(event));
        gst_object_unref(json);
    }
    return gst_pad_push_event(self->src, event);
}

gboolean pgst_infer_sink_event(GstPad *pad, GstObject *parent, GstEvent *event)
{
    PipedInfer *self = (PipedInfer *)parent;
    gboolean good;

    switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_FLUSH_START:
        good = push_both(self, event);
        pgst_infer_stop(self);
        gst_pad_pause_task(self->src);
        return good;
    case GST_EVENT_FLUSH_STOP:
        flush_queue(self);
        pgst_infer_go(self);
        good = push_both(self, event);
        gst_pad_start_task(self->src, pgst_infer_loop, self, NULL);
        return good;
    case GST_EVENT_CAPS:
        if (!take_caps(self, event)) {
            gst_event_unref(event);
            return FALSE;
        }
        break;
    case GST_EVENT_SEGMENT:
        g_mutex_lock(&self->lock);
        gst_event_copy_segment(event, &self->in);
        g_mutex_unlock(&self->lock);
        break;
    default:
        break;
    }
    if (!GST_EVENT_IS_SERIALIZED(event)) {
        return gst_pad_event_default(pad, parent, event);
    }
    append(self, event, NULL, FALSE);
    return TRUE;
}

/* What the source should write to. Elements behind us see what passes through. */
static gboolean propose(PipedInfer *self, GstQuery *query)
{
    GstBufferPool *pool;
    GstCaps *caps = NULL;
    GstVideoInfo info;
    gboolean want_pool;

    gst_query_parse_allocation(query, &caps, &want_pool);
    if (!caps || !self->session || !gst_video_info_from_caps(&info, caps) ||
        !gst_video_info_is_equal(&info, &self->session->info)) {
        return FALSE;
    }
    if (self->session->pooled_most > 0) {
        pool = pgst_pool_new(self->session);
        gst_query_add_allocation_pool(query, pool, (guint)GST_VIDEO_INFO_SIZE(&info), 0, 0);
        gst_object_unref(pool);
    }
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL);
    return TRUE;
}

gboolean pgst_infer_sink_query(GstPad *pad, GstObject *parent, GstQuery *query)
{
    PipedInfer *self = (PipedInfer *)parent;

    if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) {
        return propose(self, query);
    }
    if (GST_QUERY_TYPE(query) == GST_QUERY_DRAIN &&
        wait_for_room(self, TRUE) == GST_FLOW_FLUSHING) {
        return FALSE;
    }
    return gst_pad_query_default(pad, parent, query);
}
