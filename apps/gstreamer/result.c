/* SPDX-License-Identifier: Apache-2.0 */
/* Answers, shared by all buffers that have them; and as JSON. */
#include "apps/gstreamer/session.h"
#include "apps/show/decoded.h"
#include "base/base.h"
#include "base/json_text.h"

#define ALIGN 16u

/* One block of memory: this, then all that it points to. */
struct block {
    PipedResult result; /* first */
    gint references;
    struct piped_decoded decoded;
    struct piped_mask mask;
};

/* Written twice: without memory, which counts bytes, and into it. */
struct pack {
    uint8_t *base; /* NULL: count */
    size_t used;
};

static void *put(struct pack *p, const void *from, size_t bytes)
{
    size_t at = base_align_up(p->used, ALIGN);

    p->used = at + bytes;
    if (p->base && bytes) {
        memcpy(p->base + at, from, bytes);
    }
    return p->base ? p->base + at : NULL;
}

static const char *put_text(struct pack *p, const char *text)
{
    return text ? put(p, text, strlen(text) + 1) : NULL;
}

static void put_decoded(struct pack *p, const struct piped_decoded *d, struct block *b)
{
    struct piped_object *objects = put(p, d->objects, d->object_count * sizeof(*d->objects));

    b->decoded = *d;
    b->decoded.kind = put_text(p, d->kind);
    for (size_t i = 0; i < d->object_count; i++) {
        const char *label = put_text(p, d->objects[i].label);

        if (objects) {
            objects[i].label = label;
        }
    }
    b->decoded.objects = objects;
    b->decoded.points = put(p, d->points, d->point_count * sizeof(*d->points));
    b->decoded.text = put_text(p, d->text);
    if (d->mask) {
        b->mask = *d->mask;
        b->mask.classes = put(p, d->mask->classes, (size_t)d->mask->columns * d->mask->rows);
        b->decoded.mask = &b->mask;
    }
    b->result.decoded = &b->decoded;
}

static void put_outputs(struct pack *p, const struct piped_stream *s, const struct piped_frame *f,
                        struct block *b)
{
    const struct piped_stream_info *info = piped_stream_info(s);
    PipedOutput *outputs = put(p, NULL, 0);

    p->used += info->output_count * sizeof(*outputs);
    for (guint i = 0; i < info->output_count; i++) {
        const struct piped_tensor *t = &info->outputs[i];
        PipedOutput o = {.name = put_text(p, t->name),
                         .dtype = t->dtype,
                         .rank = t->rank,
                         .rows = piped_rows(s, f, i, NULL),
                         .data = put(p, (const uint8_t *)f->output + t->offset, (size_t)t->bytes),
                         .bytes = (size_t)t->bytes};

        memcpy(o.dim, t->dim, sizeof(o.dim));
        if (outputs) {
            outputs[i] = o;
        }
    }
    b->result.outputs = outputs;
    b->result.output_count = info->output_count;
}

PipedResult *pgst_result_new(const char *model, int status, const struct piped_stream *s,
                             const struct piped_frame *f, const struct piped_decoded *decoded,
                             gboolean raw)
{
    struct block *b = NULL;
    struct pack p = {NULL, 0};

    for (int pass = 0; pass < 2; pass++) {
        struct block counted;
        struct block *to = b ? b : &counted;

        *to = (struct block){.references = 1, .result = {.status = status}};
        p = (struct pack){(uint8_t *)b, sizeof(*b)};
        to->result.model = put_text(&p, model ? model : "");
        to->result.text = put_text(&p, f ? f->text : "");
        if (f) {
            to->result.epoch = f->epoch;
            to->result.queue_ns = f->queue_ns;
            to->result.service_ns = f->service_ns;
        }
        if (decoded) {
            put_decoded(&p, decoded, to);
        }
        if (raw && f && status == PIPED_OK) {
            put_outputs(&p, s, f, to);
        }
        b = b ? b : g_malloc(p.used);
    }
    return &b->result;
}

static PipedResult *ref(const PipedResult *r)
{
    struct block *b = (struct block *)r;

    g_atomic_int_inc(&b->references);
    return &b->result;
}

void pgst_result_unref(PipedResult *r)
{
    struct block *b = (struct block *)r;

    if (b && g_atomic_int_dec_and_test(&b->references)) {
        g_free(b);
    }
}

const char *pgst_result_status(const PipedResult *r)
{
    return r->status == PIPED_GST_LATE ? "late" : piped_status_name(r->status);
}

static json_t *outputs_json(const PipedResult *r)
{
    json_t *list = json_array();

    for (guint i = 0; i < r->output_count; i++) {
        const PipedOutput *o = &r->outputs[i];
        json_t *shape = json_array();

        for (guint k = 0; k < o->rank; k++) {
            json_array_append_new(shape, json_integer(o->dim[k]));
        }
        json_array_append_new(list, json_pack("{s:s, s:o, s:I}", "name", o->name, "shape", shape,
                                              "rows", (json_int_t)o->rows));
    }
    return list;
}

char *pgst_result_json(const PipedResult *r, guint64 number, const GstBuffer *buffer)
{
    GstClockTime pts = GST_BUFFER_PTS(buffer);
    json_t *j =
        json_pack("{s:I, s:o, s:s, s:s}", "frame", (json_int_t)number, "pts",
                  GST_CLOCK_TIME_IS_VALID(pts) ? json_integer((json_int_t)pts) : json_null(),
                  "model", r->model, "status", pgst_result_status(r));
    char *text, *copy;

    if (r->status != PIPED_OK) {
        json_object_set_new(j, "reason", json_string(r->text));
    } else {
        json_object_update_new(j, json_pack("{s:I, s:f, s:f}", "epoch", (json_int_t)r->epoch,
                                            "queue_ms", (double)r->queue_ns / 1e6, "service_ms",
                                            (double)r->service_ns / 1e6));
    }
    if (r->decoded) {
        shw_json(j, r->decoded);
    }
    if (r->output_count) {
        json_object_set_new(j, "outputs", outputs_json(r));
    }
    text = json_text(j, JSON_COMPACT | JSON_REAL_PRECISION(9));
    copy = g_strdup(text ? text : "{}");
    free(text);
    json_decref(j);
    return copy;
}

static gboolean meta_init(GstMeta *meta, gpointer params, GstBuffer *buffer)
{
    ((PipedResultMeta *)meta)->result = NULL;
    return TRUE;
}

static void meta_free(GstMeta *meta, GstBuffer *buffer)
{
    pgst_result_unref((PipedResult *)((PipedResultMeta *)meta)->result);
}

/* Copies and other sizes and formats of a picture have the same answer: it knows the size of the
 * picture that its coordinates are of. */
static gboolean meta_transform(GstBuffer *to, GstMeta *meta, GstBuffer *from, GQuark type,
                               gpointer data)
{
    const PipedResult *r = ((PipedResultMeta *)meta)->result;

    if (r) {
        pgst_result_put(to, ref(r));
    }
    return TRUE;
}

static const GstMetaInfo *meta_info(void)
{
    static gsize once;
    static const GstMetaInfo *info;
    static const gchar *tags[] = {NULL};

    if (g_once_init_enter(&once)) {
        GType api = gst_meta_api_type_register(PIPED_RESULT_META_API, tags);

        info = gst_meta_register(api, "PipedResultMeta", sizeof(PipedResultMeta), meta_init,
                                 meta_free, meta_transform);
        g_once_init_leave(&once, 1);
    }
    return info;
}

void pgst_result_put(GstBuffer *buffer, PipedResult *r)
{
    const GstMetaInfo *info = meta_info();
    PipedResultMeta *meta = (PipedResultMeta *)gst_buffer_get_meta(buffer, info->api);

    if (meta) {
        pgst_result_unref((PipedResult *)meta->result);
    } else {
        meta = (PipedResultMeta *)gst_buffer_add_meta(buffer, info, NULL);
    }
    meta->result = r;
}
