/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a stream's slots, offered upstream: pixels are written where the daemon reads them. */
#include "apps/gstreamer/session.h"

typedef struct {
    GstBufferPool pool;
    struct pgst_session *session; /* a reference */
} PgstPool;
typedef struct {
    GstBufferPoolClass parent;
} PgstPoolClass;

static GType pgst_pool_get_type(void);
G_DEFINE_TYPE(PgstPool, pgst_pool, GST_TYPE_BUFFER_POOL)

static const gchar **get_options(GstBufferPool *pool)
{
    static const gchar *options[] = {GST_BUFFER_POOL_OPTION_VIDEO_META, NULL};

    return options;
}

/* Nothing is allocated ahead: the slots are there. */
static gboolean start(GstBufferPool *pool)
{
    return TRUE;
}

static GstFlowReturn acquire_buffer(GstBufferPool *pool, GstBuffer **ret,
                                    GstBufferPoolAcquireParams *params)
{
    struct pgst_session *s = ((PgstPool *)pool)->session;
    GstVideoInfo *info = &s->info;
    GstMemory *memory = pgst_session_memory(s);
    GstBuffer *buffer = gst_buffer_new();

    gst_buffer_append_memory(
        buffer, memory ? memory : gst_allocator_alloc(NULL, GST_VIDEO_INFO_SIZE(info), NULL));
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(info),
                                   (guint)GST_VIDEO_INFO_WIDTH(info),
                                   (guint)GST_VIDEO_INFO_HEIGHT(info),
                                   GST_VIDEO_INFO_N_PLANES(info), info->offset, info->stride);
    *ret = buffer;
    return GST_FLOW_OK;
}

/* It is not used again. */
static void release_buffer(GstBufferPool *pool, GstBuffer *buffer)
{
    gst_buffer_unref(buffer);
}

static void reset_buffer(GstBufferPool *pool, GstBuffer *buffer)
{
}

static void finalize(GObject *object)
{
    pgst_session_unref(((PgstPool *)object)->session);
    G_OBJECT_CLASS(pgst_pool_parent_class)->finalize(object);
}

static void pgst_pool_class_init(PgstPoolClass *class)
{
    GstBufferPoolClass *pool = GST_BUFFER_POOL_CLASS(class);

    G_OBJECT_CLASS(class)->finalize = finalize;
    pool->get_options = get_options;
    pool->start = start;
    pool->acquire_buffer = acquire_buffer;
    pool->release_buffer = release_buffer;
    pool->reset_buffer = reset_buffer;
}

static void pgst_pool_init(PgstPool *pool)
{
}

GstBufferPool *pgst_pool_new(struct pgst_session *s)
{
    PgstPool *pool = g_object_new(pgst_pool_get_type(), NULL);

    g_object_ref_sink(pool);
    pool->session = pgst_session_ref(s);
    return &pool->pool;
}
