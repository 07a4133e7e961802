/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/gstreamer/session.h"

#include "base/base.h"

/* Which a source, a sink and what is between may hold, beyond those in flight. */
#define HELD_MORE 6

static GQuark slot_quark(void)
{
    return g_quark_from_static_string("piped-slot");
}

/* Of the frame that was taken last: the daemon may serve another model by this name now. */
static void find_decoder(struct pgst_session *s)
{
    g_clear_pointer(&s->undecoded, g_free);
    if (piped_decoder_follow(&s->decoder, s->stream) < 0) {
        s->undecoded = g_strdup(piped_last_error());
    }
}

/* If there is not memory enough for slots of buffers, each picture is copied. */
static int open_stream(struct pgst_session *s, const struct pgst_settings *set)
{
    struct piped_stream_options o = {.size = sizeof(o),
                                     .model = set->model,
                                     .pixfmt = s->format->pixfmt,
                                     .policy = set->policy,
                                     .credits = set->in_flight,
                                     .priority = set->priority,
                                     .deadline_ns = (uint64_t)set->deadline_ms * 1000000u,
                                     .slots = set->in_flight,
                                     .width = (uint32_t)GST_VIDEO_INFO_WIDTH(&s->info),
                                     .height = (uint32_t)GST_VIDEO_INFO_HEIGHT(&s->info),
                                     .stride = s->stride};
    int rc = -EINVAL;

    if (s->format->same && s->colours.as_read) {
        s->pooled_most = set->in_flight + HELD_MORE;
        o.slots += s->pooled_most;
        rc = piped_stream_open(s->client, &o, &s->stream);
    }
    if (rc == -EINVAL || rc == -ENOMEM) {
        s->pooled_most = 0;
        o.slots = set->in_flight;
        rc = piped_stream_open(s->client, &o, &s->stream);
    }
    return rc;
}

int pgst_session_open(const struct pgst_settings *set, const GstVideoInfo *info,
                      struct pgst_session **ret)
{
    struct pgst_session *s = g_new0(struct pgst_session, 1);
    struct piped_options o = {.size = sizeof(o),
                              .path = set->socket && *set->socket ? set->socket : NULL,
                              .client = "pipedinfer",
                              .reconnect_ms = set->timeout_ms,
                              .answer_ms = set->timeout_ms};
    int rc;

    g_mutex_init(&s->lock);
    s->references = 1;
    s->info = *info;
    s->format = pgst_format_find(GST_VIDEO_INFO_FORMAT(info));
    s->stride = pgst_format_stride(s->format, info);
    pgst_colours_of(info, &s->colours);
    s->model = g_strdup(set->model);
    rc = piped_connect(&o, &s->client);
    rc = rc == -ENOENT ? -ECONNREFUSED : rc; /* as of a stream it means that there is no model */
    rc = rc < 0 ? rc : open_stream(s, set);
    if (rc < 0) {
        pgst_session_unref(s);
        return rc;
    }
    s->fd = piped_fd(s->client);
    find_decoder(s);
    *ret = s;
    return 0;
}

static struct pgst_session *pgst_session_ref(struct pgst_session *s)
{
    g_atomic_int_inc(&s->references);
    return s;
}

void pgst_session_unref(struct pgst_session *s)
{
    if (s && g_atomic_int_dec_and_test(&s->references)) {
        piped_decoder_free(s->decoder);
        piped_close(s->client);
        g_mutex_clear(&s->lock);
        g_free(s->undecoded);
        g_free(s->model);
        g_free(s);
    }
}

int pgst_session_acquire(struct pgst_session *s, struct piped_frame **ret)
{
    PGST_LOCKED(s);

    return piped_acquire(s->stream, ret);
}

int pgst_session_submit(struct pgst_session *s, struct piped_frame *f)
{
    PGST_LOCKED(s);

    return piped_submit(s->stream, f);
}

void pgst_session_cancel(struct pgst_session *s, struct piped_frame *f)
{
    PGST_LOCKED(s);

    piped_cancel(s->stream, f);
}

void pgst_session_release(struct pgst_session *s, struct piped_frame *f)
{
    PGST_LOCKED(s);

    piped_release(s->stream, f);
}

PipedResult *pgst_session_next(struct pgst_session *s, gboolean raw)
{
    const struct piped_decoded *decoded = NULL;
    struct piped_frame *f;
    PGST_LOCKED(s);

    if (piped_next(s->stream, &f) < 0) {
        piped_dispatch(s->client, 0); /* a connection that is lost for good answers all frames */
        if (piped_next(s->stream, &f) < 0) {
            return NULL;
        }
    }
    if (f->status == PIPED_OK) {
        find_decoder(s);
    }
    if (f->status == PIPED_OK && s->decoder &&
        piped_decode_frame(s->decoder, s->stream, f, &decoded) < 0) {
        decoded = NULL;
        g_free(s->undecoded);
        s->undecoded = g_strdup(piped_last_error());
    }
    return pgst_result_new(s->model, f->status, s->stream, f, decoded, raw);
}

char *pgst_session_undecoded(struct pgst_session *s)
{
    PGST_LOCKED(s);

    return g_steal_pointer(&s->undecoded);
}

char *pgst_session_trouble(struct pgst_session *s)
{
    PGST_LOCKED(s);
    const char *why = piped_trouble(s->client);
    char *told = *why && !s->said_trouble ? g_strdup(why) : NULL;

    s->said_trouble = *why;
    return told;
}

guint64 pgst_session_reconnects(struct pgst_session *s)
{
    PGST_LOCKED(s);

    return piped_reconnects(s->client);
}

/* ---- slots that are the memory of buffers ---- */

/* Nobody has the memory any more. */
static void free_slot(gpointer data)
{
    struct pgst_slot *slot = data;
    struct pgst_session *s = slot->session;

    g_mutex_lock(&s->lock);
    piped_release(s->stream, slot->frame);
    s->pooled--;
    g_mutex_unlock(&s->lock);
    pgst_session_unref(s);
    g_free(slot);
}

/* Return: memory that is a slot; NULL: none is free for it. */
static GstMemory *slot_memory(struct pgst_session *s)
{
    struct piped_frame *f = NULL;
    struct pgst_slot *slot;
    GstMemory *memory;

    g_mutex_lock(&s->lock);
    if (s->pooled < s->pooled_most && piped_acquire(s->stream, &f) == 0) {
        s->pooled++;
    }
    g_mutex_unlock(&s->lock);
    if (!f) {
        return NULL;
    }
    slot = g_new0(struct pgst_slot, 1);
    slot->session = pgst_session_ref(s);
    slot->frame = f;
    memory = gst_memory_new_wrapped(0, f->input, f->input_size, 0,
                                    base_min(f->input_size, GST_VIDEO_INFO_SIZE(&s->info)), slot,
                                    free_slot);
    gst_mini_object_set_qdata(GST_MINI_OBJECT(memory), slot_quark(), slot, NULL);
    return memory;
}

/* Planes are where the default layout has them. */
static gboolean default_layout(const struct pgst_session *s, GstBuffer *buffer)
{
    const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);

    for (guint i = 0; meta && i < meta->n_planes; i++) {
        if (meta->stride[i] != GST_VIDEO_INFO_PLANE_STRIDE(&s->info, i) ||
            meta->offset[i] != GST_VIDEO_INFO_PLANE_OFFSET(&s->info, i)) {
            return FALSE;
        }
    }
    return TRUE;
}

struct pgst_slot *pgst_session_slot_of(struct pgst_session *s, GstBuffer *buffer)
{
    GstMemory *memory = gst_buffer_n_memory(buffer) == 1 ? gst_buffer_peek_memory(buffer, 0) : NULL;
    struct pgst_slot *slot =
        memory ? gst_mini_object_get_qdata(GST_MINI_OBJECT(memory), slot_quark()) : NULL;

    return slot && slot->session == s && !slot->submitted && memory->offset == 0 &&
                   memory->size >= GST_VIDEO_INFO_SIZE(&s->info) && default_layout(s, buffer)
               ? slot
               : NULL;
}

/* ---- a pool of such buffers, offered upstream ---- */

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
    GstMemory *memory = slot_memory(s);
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
