/* SPDX-License-Identifier: Apache-2.0 */
/* pipedinfer: how long frames take, and which come too late. */
#include "apps/gstreamer/infer_element.h"

static GstClockTime frame_duration(PipedInfer *self)
{
    const GstVideoInfo *info = self->session ? &self->session->info : NULL;

    return info && GST_VIDEO_INFO_FPS_N(info) > 0
               ? gst_util_uint64_scale_int(GST_SECOND, GST_VIDEO_INFO_FPS_D(info),
                                           GST_VIDEO_INFO_FPS_N(info))
               : 0;
}

/* At least what a frame takes; at most what the frames in flight hold back. */
gboolean pgst_infer_latency(PipedInfer *self, GstQuery *query)
{
    guint fixed = pgst_infer_property(self, &self->latency_ms);
    GstClockTime least, most, own, hold;
    gboolean live;

    if (!gst_pad_peer_query(self->sink, query)) {
        return FALSE;
    }
    gst_query_parse_latency(query, &live, &least, &most);
    g_mutex_lock(&self->lock);
    self->live = live;
    own = fixed ? fixed * GST_MSECOND : self->measured;
    hold = self->in_flight * frame_duration(self);
    g_mutex_unlock(&self->lock);
    most = GST_CLOCK_TIME_IS_VALID(most) ? most + MAX(own, hold) : most;
    gst_query_set_latency(query, live, least + own, most);
    return TRUE;
}

/* A pipeline that is told of a new latency asks everybody again. */
void pgst_infer_took(PipedInfer *self, gint64 arrived_us)
{
    GstClockTime took = (GstClockTime)(g_get_monotonic_time() - arrived_us) * GST_USECOND;
    gboolean say = FALSE;

    if (pgst_infer_property(self, &self->latency_ms)) {
        return;
    }
    g_mutex_lock(&self->lock);
    if (took > self->measured) {
        self->measured = took + took / 4;
        say = self->live;
    }
    g_mutex_unlock(&self->lock);
    if (say) {
        gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
    }
}

/* As GstBaseTransform does: what was late by d is made up for by skipping 2 d. */
void pgst_infer_qos_event(PipedInfer *self, GstEvent *event)
{
    GstClockTimeDiff difference;
    GstClockTime timestamp;
    gdouble proportion;

    gst_event_parse_qos(event, NULL, &proportion, &difference, &timestamp);
    g_mutex_lock(&self->lock);
    self->proportion = proportion;
    if (!GST_CLOCK_TIME_IS_VALID(timestamp)) {
        self->earliest = GST_CLOCK_TIME_NONE;
    } else if (difference > 0) {
        self->earliest = timestamp + 2 * (GstClockTime)difference + frame_duration(self);
    } else {
        self->earliest = (GstClockTimeDiff)timestamp + difference > 0
                             ? timestamp - (GstClockTime)-difference
                             : 0;
    }
    g_mutex_unlock(&self->lock);
}

void pgst_infer_qos_reset(PipedInfer *self)
{
    self->earliest = GST_CLOCK_TIME_NONE;
    self->proportion = 1;
}

gboolean pgst_infer_is_late(PipedInfer *self, const GstBuffer *buffer)
{
    GstClockTime at;
    gboolean obey = (gboolean)pgst_infer_property(self, &self->qos);
    PGST_LOCKED(self);

    at = self->in.format == GST_FORMAT_TIME
             ? gst_segment_to_running_time(&self->in, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer))
             : GST_CLOCK_TIME_NONE;
    return obey && GST_CLOCK_TIME_IS_VALID(at) && GST_CLOCK_TIME_IS_VALID(self->earliest) &&
           at <= self->earliest;
}

void pgst_infer_say_qos(PipedInfer *self, const GstBuffer *buffer, const GstSegment *segment)
{
    GstClockTime pts = GST_BUFFER_PTS(buffer), running = GST_CLOCK_TIME_NONE, stream = running;
    GstMessage *message;

    if (segment->format == GST_FORMAT_TIME) {
        running = gst_segment_to_running_time(segment, GST_FORMAT_TIME, pts);
        stream = gst_segment_to_stream_time(segment, GST_FORMAT_TIME, pts);
    }
    g_mutex_lock(&self->lock);
    message = gst_message_new_qos(GST_OBJECT(self), self->live, running, stream, pts,
                                  GST_BUFFER_DURATION(buffer));
    gst_message_set_qos_values(message,
                               GST_CLOCK_TIME_IS_VALID(running) &&
                                       GST_CLOCK_TIME_IS_VALID(self->earliest)
                                   ? GST_CLOCK_DIFF(running, self->earliest)
                                   : 0,
                               self->proportion, 1000000);
    gst_message_set_qos_stats(message, GST_FORMAT_BUFFERS, self->answered,
                              self->late + self->dropped);
    g_mutex_unlock(&self->lock);
    gst_element_post_message(GST_ELEMENT(self), message);
}
