/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gst_frames - runs a pipeline of GStreamer, step by step, for tests
 *
 * usage: gst_frames PIPELINE
 *
 * The pipeline has an appsink `out`, and maybe another, `text`. Each line of standard input is a
 * command, and is answered by lines of JSON:
 *
 *     pull N       the next N frames of `out`, with the answers on them; less at the end
 *     dump FILE    writes the bytes of the last frame
 *     text N       the next N buffers of `text`
 *     seek NS      a flushing seek
 *     qos NS DIFF  a QoS event from `out`: the frame at NS was late by DIFF
 *     latency      what the element `infer` answers to the query
 *     stats        the property of the element `infer`
 *     said         messages since the last time: piped-result, QoS, how often latency changed
 *     end          stops the pipeline
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gst/app/gstappsink.h>
#include <jansson.h>

#include "apps/gstreamer/piped_gst.h"
#include "ipc/decode/piped_decode.h"
#include "ipc/piped.h"

#define STEP (50 * GST_MSECOND)
#define STEPS_MOST 2400

static GMutex lock;
static json_t *said;      /* messages */
static char *error_text;  /* the first error */
static GstBuffer *latest; /* of `out` */

static void print(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);

    printf("%s\n", text);
    fflush(stdout);
    free(text);
    json_decref(line);
}

static json_t *message_json(GstMessage *m)
{
    GstFormat format;
    guint64 processed, dropped;

    switch (GST_MESSAGE_TYPE(m)) {
    case GST_MESSAGE_ELEMENT:
        return gst_message_has_name(m, "piped-result")
                   ? json_pack("{s:s}", "result",
                               gst_structure_get_string(gst_message_get_structure(m), "json"))
                   : NULL;
    case GST_MESSAGE_QOS:
        gst_message_parse_qos_stats(m, &format, &processed, &dropped);
        return json_pack("{s:s, s:I, s:I}", "qos", GST_MESSAGE_SRC_NAME(m), "processed",
                         (json_int_t)processed, "dropped", (json_int_t)dropped);
    case GST_MESSAGE_LATENCY:
        return json_pack("{s:s}", "latency", GST_MESSAGE_SRC_NAME(m));
    default:
        return NULL;
    }
}

/* In whichever thread posts. */
static GstBusSyncReply on_message(GstBus *bus, GstMessage *m, gpointer unused)
{
    json_t *j = message_json(m);

    g_mutex_lock(&lock);
    if (GST_MESSAGE_TYPE(m) == GST_MESSAGE_ERROR && !error_text) {
        GError *e;

        gst_message_parse_error(m, &e, NULL);
        error_text = g_strdup(e->message);
        g_error_free(e);
    }
    if (j) {
        json_array_append_new(said, j);
    }
    g_mutex_unlock(&lock);
    gst_message_unref(m);
    return GST_BUS_DROP;
}

static json_t *hex(const void *data, size_t bytes)
{
    char *text = g_malloc(2 * bytes + 1);
    json_t *j;

    text[0] = 0;
    for (size_t i = 0; i < bytes; i++) {
        snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)data)[i]);
    }
    j = json_string(text);
    g_free(text);
    return j;
}

static json_t *result_json(const PipedResult *r)
{
    json_t *objects = json_array(), *outputs = json_array();

    for (size_t i = 0; r->decoded && i < r->decoded->object_count; i++) {
        const struct piped_object *o = &r->decoded->objects[i];

        json_array_append_new(objects,
                              json_pack("{s:s?, s:f, s:f, s:f, s:f, s:f}", "label", o->label, "x",
                                        (double)o->x, "y", (double)o->y, "width", (double)o->width,
                                        "height", (double)o->height, "score", (double)o->score));
    }
    for (guint i = 0; i < r->output_count; i++) {
        json_array_append_new(outputs, hex(r->outputs[i].data, r->outputs[i].bytes));
    }
    return json_pack("{s:i, s:s, s:s, s:i, s:o, s:o, s:s?, s:b}", "status", r->status, "reason",
                     r->text, "model", r->model, "epoch", (int)r->epoch, "objects", objects,
                     "outputs", outputs, "text", r->decoded ? r->decoded->text : NULL, "decoded",
                     r->decoded != NULL);
}

static GstSample *pull(GstElement *sink)
{
    GstSample *sample = NULL;
    bool failed = false;

    for (int i = 0; !sample && !failed && i < STEPS_MOST; i++) {
        sample = gst_app_sink_try_pull_sample(GST_APP_SINK(sink), STEP);
        if (!sample && gst_app_sink_is_eos(GST_APP_SINK(sink))) {
            break;
        }
        g_mutex_lock(&lock);
        failed = !sample && error_text;
        g_mutex_unlock(&lock);
    }
    return sample;
}

/* Why there is no sample. */
static void print_end(GstElement *sink)
{
    bool eos = gst_app_sink_is_eos(GST_APP_SINK(sink));

    g_mutex_lock(&lock);
    print(json_pack("{s:b, s:s?}", "eos", eos, "error", error_text));
    g_mutex_unlock(&lock);
}

static void do_pull(GstElement *sink, int count, bool text)
{
    for (int i = 0; i < count; i++) {
        GstSample *sample = pull(sink);
        GstBuffer *b = sample ? gst_sample_get_buffer(sample) : NULL;
        const PipedResult *r = b ? piped_buffer_result(b) : NULL;
        GstMapInfo map;
        json_t *j;

        if (!b) {
            print_end(sink);
            return;
        }
        j = json_pack("{s:I}", "pts", (json_int_t)GST_BUFFER_PTS(b));
        if (r) {
            json_object_set_new(j, "result", result_json(r));
        }
        if (text && gst_buffer_map(b, &map, GST_MAP_READ)) {
            json_object_set_new(j, "json", json_stringn((const char *)map.data, map.size));
            gst_buffer_unmap(b, &map);
        }
        print(j);
        if (!text) {
            gst_buffer_replace(&latest, b);
        }
        gst_sample_unref(sample); /* appsink wants it alone at a flush */
    }
}

static void do_dump(const char *path)
{
    GstMapInfo map;

    if (gst_buffer_map(latest, &map, GST_MAP_READ)) {
        g_file_set_contents(path, (const char *)map.data, (gssize)map.size, NULL);
        gst_buffer_unmap(latest, &map);
    }
    print(json_pack("{s:I}", "bytes", (json_int_t)gst_buffer_get_size(latest)));
}

static void do_qos(GstElement *sink, gint64 at, gint64 late)
{
    GstPad *pad = gst_element_get_static_pad(sink, "sink");

    print(json_pack("{s:b}", "done",
                    gst_pad_push_event(pad, gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, late,
                                                              (GstClockTime)at))));
    gst_object_unref(pad);
}

static void do_latency(GstElement *pipeline)
{
    GstQuery *q = gst_query_new_latency();
    GstElement *infer = gst_bin_get_by_name(GST_BIN(pipeline), "infer");
    GstPad *src = gst_element_get_static_pad(infer, "src");
    bool good = gst_pad_query(src, q);
    GstClockTime least = 0, most = 0;
    gboolean live = FALSE;

    gst_query_parse_latency(q, &live, &least, &most);
    print(json_pack("{s:b, s:b, s:I, s:I}", "done", good, "live", live, "min", (json_int_t)least,
                    "max", (json_int_t)most));
    gst_query_unref(q);
    gst_object_unref(src);
    gst_object_unref(infer);
}

static void do_stats(GstElement *pipeline)
{
    GstElement *infer = gst_bin_get_by_name(GST_BIN(pipeline), "infer");
    GstStructure *s;
    json_t *j = json_object();

    g_object_get(infer, "stats", &s, NULL);
    for (gint i = 0; i < gst_structure_n_fields(s); i++) {
        const char *name = gst_structure_nth_field_name(s, (guint)i);
        guint64 value = 0;

        gst_structure_get_uint64(s, name, &value);
        json_object_set_new(j, name, json_integer((json_int_t)value));
    }
    print(j);
    gst_structure_free(s);
    gst_object_unref(infer);
}

static void do_said(void)
{
    g_mutex_lock(&lock);
    print(said);
    said = json_array();
    g_mutex_unlock(&lock);
}

static void command(GstElement *pipeline, GstElement *out, GstElement *text, const char *line)
{
    gint64 a = 0, b = 0;
    char word[16] = "", rest[512] = "";

    if (sscanf(line, "%15s %511s", word, rest) < 1) {
        return;
    }
    sscanf(line, "%*s %" G_GINT64_FORMAT " %" G_GINT64_FORMAT, &a, &b);
    if (strcmp(word, "pull") == 0) {
        do_pull(out, (int)a, false);
    } else if (strcmp(word, "text") == 0) {
        do_pull(text, (int)a, true);
    } else if (strcmp(word, "dump") == 0) {
        do_dump(rest);
    } else if (strcmp(word, "seek") == 0) {
        print(
            json_pack("{s:b}", "done",
                      gst_element_seek_simple(pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, a)));
    } else if (strcmp(word, "qos") == 0) {
        do_qos(out, a, b);
    } else if (strcmp(word, "latency") == 0) {
        do_latency(pipeline);
    } else if (strcmp(word, "stats") == 0) {
        do_stats(pipeline);
    } else {
        do_said();
    }
}

int main(int argc, char **argv)
{
    GError *wrong = NULL;
    GstElement *pipeline, *out, *text;
    GstBus *bus;
    char line[600];

    gst_init(&argc, &argv);
    pipeline = argc == 2 ? gst_parse_launch(argv[1], &wrong) : NULL;
    if (!pipeline || wrong) {
        fprintf(stderr, "gst_frames: %s\n", wrong ? wrong->message : "needs one PIPELINE");
        return 2;
    }
    said = json_array();
    out = gst_bin_get_by_name(GST_BIN(pipeline), "out");
    text = gst_bin_get_by_name(GST_BIN(pipeline), "text");
    bus = gst_element_get_bus(pipeline);
    gst_bus_set_sync_handler(bus, on_message, NULL, NULL);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3) != 0) {
        command(pipeline, out, text, line);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_buffer_replace(&latest, NULL);
    g_clear_object(&out);
    g_clear_object(&text);
    gst_object_unref(bus);
    gst_object_unref(pipeline);
    json_decref(said);
    g_free(error_text);
    gst_deinit();
    return 0;
}
