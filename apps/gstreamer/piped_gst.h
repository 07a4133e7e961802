/* SPDX-License-Identifier: Apache-2.0 */
/**
 * piped_gst.h - the answers that the GStreamer element pipedinfer puts on buffers
 *
 *     const PipedResult *r = piped_buffer_result(buffer);
 *     if (r && r->decoded) {
 *         r->decoded->objects[0].x, r->decoded->objects[0].label
 *     }
 *
 * Every buffer that has passed pipedinfer has one, also if the frame was not computed: its status
 * says why. It belongs to the buffer, is never written again, and goes along when the buffer is
 * copied, converted or scaled.
 *
 * Include piped.h for the numbers of status and dtype, and piped_decode.h to look into `decoded`.
 * There is nothing to link with but GStreamer. Threads: any.
 */
#ifndef PIPED_GST_H
#define PIPED_GST_H

#include <gst/gst.h>

G_BEGIN_DECLS

struct piped_decoded;

#define PIPED_RESULT_META_API "PipedResultMetaAPI"

/* Beside those of enum piped_status: the frame was too late for its time, so it was not sent. */
#define PIPED_GST_LATE (-1)

/* A tensor of the answer; only with the property raw-outputs. */
typedef struct {
    const gchar *name;
    guint32 dtype; /* enum piped_dtype */
    guint32 rank;
    guint32 dim[8];
    guint64 rows; /* valid ones, as of piped_rows() */
    gconstpointer data;
    gsize bytes;
} PipedOutput;

/* Later versions may add fields at the end. */
typedef struct {
    gint status;       /* enum piped_status, or PIPED_GST_LATE */
    const gchar *text; /* the reason if status is not PIPED_OK, else "" */
    const gchar *model;
    guint32 epoch;                       /* number of the plan */
    guint64 queue_ns, service_ns;        /* time it waited in the daemon; time it was computed */
    const struct piped_decoded *decoded; /* NULL: no answer, or the model does not say how */
    guint output_count;
    const PipedOutput *outputs;
} PipedResult;

typedef struct {
    GstMeta meta;
    const PipedResult *result;
} PipedResultMeta;

/** piped_buffer_result() - Return: the answer on a buffer, valid as long as it; NULL: it has none.
 */
static inline const PipedResult *piped_buffer_result(GstBuffer *buffer)
{
    GType api = g_type_from_name(PIPED_RESULT_META_API);
    PipedResultMeta *meta = api ? (PipedResultMeta *)gst_buffer_get_meta(buffer, api) : NULL;

    return meta ? meta->result : NULL;
}

G_END_DECLS

#endif
