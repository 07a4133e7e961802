/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/gstreamer/infer_element.h - the inside of the element pipedinfer
 *
 * Two streaming threads: that of the sink pad hands frames to the daemon and appends them to a
 * queue, with what must stay between them (events, frames that were not sent). The task of the
 * source pads takes from its head what is ready, in order: it waits for answers, and pushes. So
 * several frames are in flight, and a frame leaves as soon as its answer is there.
 *
 * The lock guards all but the properties, which the object's own lock guards. Nobody holds it
 * while he waits for the daemon, pushes, or drops a buffer that the daemon may have. The lock of
 * the session is taken last.
 */
#pragma once

#include <gst/base/gstflowcombiner.h>

#include "apps/gstreamer/session.h"

/* What waits in the queue, in order. */
struct pgst_item {
    GstMiniObject *object;     /* owned: a buffer or an event */
    struct piped_frame *frame; /* NULL: nothing to wait for */
    gboolean copied;           /* the slot is released with the answer, else with the memory */
    gboolean discard;          /* after a flush: not to be pushed */
    gint64 arrived_us;
};

struct _PipedInfer {
    GstElement element;
    GstPad *sink, *src;
    int wake; /* readable: the task is to look at `flushing` */
    /* properties */
    struct pgst_settings settings;
    guint latency_ms; /* 0: as measured */
    gboolean raw_outputs, post_messages, qos;
    /* the rest: under the lock */
    GMutex lock;
    GCond more, room; /* the queue grew; it shrank */
    GQueue queue;     /* of struct pgst_item */
    guint frames;     /* buffers in it */
    gboolean flushing;
    GstFlowReturn flow; /* of the last push */
    struct pgst_session *session;
    guint in_flight; /* of the session */
    GstPad *json;    /* NULL: not requested */
    GstFlowCombiner *combiner;
    gboolean json_begun, json_segment_due;
    gboolean said_undecoded; /* a warning told that there is nothing to draw */
    guint64 number;          /* of the next frame that leaves */
    GstSegment in, out;
    GstClockTime earliest; /* running time; earlier frames are too late */
    gdouble proportion;
    gboolean live;
    GstClockTime measured; /* the longest way through us so far, and a quarter */
    guint64 answered, dropped, late, failed, copies, slots_used, reconnects;
};
G_DECLARE_FINAL_TYPE(PipedInfer, pgst_infer, PGST, INFER, GstElement)

/** pgst_infer_property() - Return: a property as it is now. @at: a number or a switch of @self. */
static inline guint pgst_infer_property(PipedInfer *self, const void *at)
{
    guint value;

    GST_OBJECT_LOCK(self);
    value = *(const guint *)at;
    GST_OBJECT_UNLOCK(self);
    return value;
}

/* infer_in.c: the sink pad */
GstFlowReturn pgst_infer_chain(GstPad *pad, GstObject *parent, GstBuffer *buffer);
gboolean pgst_infer_sink_event(GstPad *pad, GstObject *parent, GstEvent *event);
gboolean pgst_infer_sink_query(GstPad *pad, GstObject *parent, GstQuery *query);
/** pgst_infer_stop() - lets both threads return, and waits for nothing. */
void pgst_infer_stop(PipedInfer *self);
void pgst_infer_go(PipedInfer *self); /* the opposite */
/** pgst_infer_forget() - frees the queue and leaves the session; no thread runs. */
void pgst_infer_forget(PipedInfer *self);

/* infer_out.c: the source pads */
void pgst_infer_loop(gpointer self);

/* infer_time.c: latency and quality of service */
gboolean pgst_infer_latency(PipedInfer *self, GstQuery *query);
void pgst_infer_took(PipedInfer *self, gint64 arrived_us); /* without the lock */
void pgst_infer_qos_event(PipedInfer *self, GstEvent *event);
void pgst_infer_qos_reset(PipedInfer *self);
/** pgst_infer_is_late() - Return: downstream would drop the buffer. */
gboolean pgst_infer_is_late(PipedInfer *self, const GstBuffer *buffer);
/** pgst_infer_say_qos() - posts that a buffer has no answer. Without the lock. */
void pgst_infer_say_qos(PipedInfer *self, const GstBuffer *buffer, const GstSegment *segment);
