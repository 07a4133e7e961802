/* SPDX-License-Identifier: Apache-2.0 */
/* pipedinfer: its class, properties, pads and states. */
#include "apps/gstreamer/infer_element.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "apps/gstreamer/elements.h"

#define SIZES_ANY "width=[1,32768],height=[1,32768]"
#define SIZES_EVEN "width=[2,32768,2],height=[2,32768,2]"
#define CAPS                                                                                       \
    "video/x-raw,format={" PGST_SAME_ANY "," PGST_COPIED_ANY "}," SIZES_ANY ";"                    \
    "video/x-raw,format={" PGST_SAME_EVEN "," PGST_COPIED_EVEN "}," SIZES_EVEN

enum property {
    PROPERTY_SOCKET = 1,
    PROPERTY_MODEL,
    PROPERTY_POLICY,
    PROPERTY_DEADLINE,
    PROPERTY_PRIORITY,
    PROPERTY_IN_FLIGHT,
    PROPERTY_TIMEOUT,
    PROPERTY_LATENCY,
    PROPERTY_RAW,
    PROPERTY_MESSAGES,
    PROPERTY_QOS,
    PROPERTY_STATS
};

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS(CAPS));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS(CAPS));
static GstStaticPadTemplate json_template = GST_STATIC_PAD_TEMPLATE(
    "json", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS("application/x-json"));

G_DEFINE_FINAL_TYPE(PipedInfer, pgst_infer, GST_TYPE_ELEMENT)

static GType policy_type(void)
{
    static const GEnumValue values[] = {
        {PIPED_BLOCK, "Every frame is computed", "block"},
        {PIPED_LATEST, "A new frame takes the place of the one that waits", "latest"},
        {PIPED_REJECT, "A frame that finds no room is not computed", "reject"},
        {0, NULL, NULL}};
    static gsize type;

    if (g_once_init_enter(&type)) {
        g_once_init_leave(&type, g_enum_register_static("PipedPolicy", values));
    }
    return type;
}

/* Properties of the daemon's side take effect with the next format of the stream. */
static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
    PipedInfer *self = PGST_INFER(object);
    char *old = NULL;

    GST_OBJECT_LOCK(self);
    switch ((enum property)id) {
    case PROPERTY_SOCKET:
        old = self->settings.socket;
        self->settings.socket = g_value_dup_string(value);
        break;
    case PROPERTY_MODEL:
        old = self->settings.model;
        self->settings.model = g_value_dup_string(value);
        break;
    case PROPERTY_POLICY:
        self->settings.policy = (guint)g_value_get_enum(value);
        break;
    case PROPERTY_DEADLINE:
        self->settings.deadline_ms = g_value_get_uint(value);
        break;
    case PROPERTY_PRIORITY:
        self->settings.priority = g_value_get_uint(value);
        break;
    case PROPERTY_IN_FLIGHT:
        self->settings.in_flight = g_value_get_uint(value);
        break;
    case PROPERTY_TIMEOUT:
        self->settings.timeout_ms = g_value_get_uint(value);
        break;
    case PROPERTY_LATENCY:
        self->latency_ms = g_value_get_uint(value);
        break;
    case PROPERTY_RAW:
        self->raw_outputs = g_value_get_boolean(value);
        break;
    case PROPERTY_MESSAGES:
        self->post_messages = g_value_get_boolean(value);
        break;
    case PROPERTY_QOS:
        self->qos = g_value_get_boolean(value);
        break;
    default:
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
    GST_OBJECT_UNLOCK(self);
    g_free(old);
}

static GstStructure *stats(PipedInfer *self)
{
    GstStructure *s;

    g_mutex_lock(&self->lock);
    s = gst_structure_new(
        "piped-stats", "answered", G_TYPE_UINT64, self->answered, "dropped", G_TYPE_UINT64,
        self->dropped, "late", G_TYPE_UINT64, self->late, "failed", G_TYPE_UINT64, self->failed,
        "copied", G_TYPE_UINT64, self->copies, "in-place", G_TYPE_UINT64, self->slots_used,
        "reconnects", G_TYPE_UINT64,
        self->reconnects + (self->session ? pgst_session_reconnects(self->session) : 0), NULL);
    g_mutex_unlock(&self->lock);
    return s;
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec)
{
    PipedInfer *self = PGST_INFER(object);

    if (id == PROPERTY_STATS) {
        g_value_take_boxed(value, stats(self));
        return;
    }
    GST_OBJECT_LOCK(self);
    switch ((enum property)id) {
    case PROPERTY_SOCKET:
        g_value_set_string(value, self->settings.socket);
        break;
    case PROPERTY_MODEL:
        g_value_set_string(value, self->settings.model);
        break;
    case PROPERTY_POLICY:
        g_value_set_enum(value, (gint)self->settings.policy);
        break;
    case PROPERTY_DEADLINE:
        g_value_set_uint(value, self->settings.deadline_ms);
        break;
    case PROPERTY_PRIORITY:
        g_value_set_uint(value, self->settings.priority);
        break;
    case PROPERTY_IN_FLIGHT:
        g_value_set_uint(value, self->settings.in_flight);
        break;
    case PROPERTY_TIMEOUT:
        g_value_set_uint(value, self->settings.timeout_ms);
        break;
    case PROPERTY_LATENCY:
        g_value_set_uint(value, self->latency_ms);
        break;
    case PROPERTY_RAW:
        g_value_set_boolean(value, self->raw_outputs);
        break;
    case PROPERTY_MESSAGES:
        g_value_set_boolean(value, self->post_messages);
        break;
    case PROPERTY_QOS:
        g_value_set_boolean(value, self->qos);
        break;
    default:
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
    GST_OBJECT_UNLOCK(self);
}

static void install_properties(GObjectClass *class)
{
    const GParamFlags both = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;
    const struct {
        guint id;
        const char *name, *text;
        guint least, most, preset;
    } numbers[] = {
        {PROPERTY_DEADLINE, "deadline-ms", "After that a frame is not computed; 0: no deadline", 0,
         G_MAXINT, 0},
        {PROPERTY_PRIORITY, "priority", "Of the stream, in the daemon", 0, 3, 0},
        {PROPERTY_IN_FLIGHT, "in-flight", "Frames that may wait for answers at once", 1, 256, 8},
        {PROPERTY_TIMEOUT, "timeout-ms",
         "How long to wait for an answer at the start, and to look for a daemon that went away", 1,
         G_MAXINT, 30000},
        {PROPERTY_LATENCY, "latency-ms", "Answer to the query for latency; 0: as measured", 0,
         G_MAXINT, 0},
    };
    const struct {
        guint id;
        const char *name, *text;
        gboolean preset;
    } switches[] = {
        {PROPERTY_RAW, "raw-outputs", "Answers have the model's output tensors, too", FALSE},
        {PROPERTY_MESSAGES, "post-messages", "Post each answer as element message piped-result",
         FALSE},
        {PROPERTY_QOS, "qos", "Frames that would be dropped later are not computed", TRUE},
    };

    g_object_class_install_property(
        class, PROPERTY_SOCKET,
        g_param_spec_string("socket", "socket", "The daemon's frames socket; empty: the default",
                            NULL, both));
    g_object_class_install_property(
        class, PROPERTY_MODEL,
        g_param_spec_string("model", "model", "Name of the model; empty: the first", NULL, both));
    g_object_class_install_property(
        class, PROPERTY_POLICY,
        g_param_spec_enum("policy", "policy", "What happens when frames come faster than answers",
                          policy_type(), PIPED_BLOCK, both));
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        g_object_class_install_property(
            class, numbers[i].id,
            g_param_spec_uint(numbers[i].name, numbers[i].name, numbers[i].text, numbers[i].least,
                              numbers[i].most, numbers[i].preset, both));
    }
    for (guint i = 0; i < G_N_ELEMENTS(switches); i++) {
        g_object_class_install_property(class, switches[i].id,
                                        g_param_spec_boolean(switches[i].name, switches[i].name,
                                                             switches[i].text, switches[i].preset,
                                                             both));
    }
    g_object_class_install_property(
        class, PROPERTY_STATS,
        g_param_spec_boxed("stats", "stats", "Frames by what became of them", GST_TYPE_STRUCTURE,
                           G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
    gst_type_mark_as_plugin_api(policy_type(), 0);
}

/* Frames go from sink to src; the text goes beside. */
static GstIterator *links(GstPad *pad, GstObject *parent)
{
    PipedInfer *self = PGST_INFER(parent);
    GstIterator *links;
    GValue value = G_VALUE_INIT;

    g_value_init(&value, GST_TYPE_PAD);
    g_value_set_object(&value, pad == self->sink ? self->src : self->sink);
    links = gst_iterator_new_single(GST_TYPE_PAD, &value);
    g_value_unset(&value);
    return links;
}

static gboolean src_event(GstPad *pad, GstObject *parent, GstEvent *event)
{
    if (GST_EVENT_TYPE(event) == GST_EVENT_QOS) {
        pgst_infer_qos_event(PGST_INFER(parent), event);
    }
    return gst_pad_event_default(pad, parent, event);
}

static gboolean src_query(GstPad *pad, GstObject *parent, GstQuery *query)
{
    return GST_QUERY_TYPE(query) == GST_QUERY_LATENCY
               ? pgst_infer_latency(PGST_INFER(parent), query)
               : gst_pad_query_default(pad, parent, query);
}

static gboolean activate_src(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
    PipedInfer *self = PGST_INFER(parent);

    if (mode != GST_PAD_MODE_PUSH) {
        return FALSE;
    }
    if (active) {
        pgst_infer_go(self);
        return gst_pad_start_task(pad, pgst_infer_loop, self, NULL);
    }
    pgst_infer_stop(self);
    return gst_pad_stop_task(pad);
}

static gboolean activate_sink(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
    if (mode == GST_PAD_MODE_PUSH && !active) {
        pgst_infer_stop(PGST_INFER(parent));
    }
    return mode == GST_PAD_MODE_PUSH;
}

static GstPad *request_pad(GstElement *element, GstPadTemplate *template, const gchar *name,
                           const GstCaps *caps)
{
    PipedInfer *self = PGST_INFER(element);
    GstPad *pad = gst_pad_new_from_template(template, "json");

    gst_pad_set_iterate_internal_links_function(pad, links);
    gst_pad_use_fixed_caps(pad);
    g_mutex_lock(&self->lock);
    if (self->json) {
        g_mutex_unlock(&self->lock);
        gst_object_unref(gst_object_ref_sink(pad));
        return NULL;
    }
    self->json = gst_object_ref(pad);
    self->json_begun = FALSE;
    gst_flow_combiner_add_pad(self->combiner, pad);
    g_mutex_unlock(&self->lock);
    gst_pad_set_active(pad, TRUE);
    gst_element_add_pad(element, pad);
    return pad;
}

static void release_pad(GstElement *element, GstPad *pad)
{
    PipedInfer *self = PGST_INFER(element);

    g_mutex_lock(&self->lock);
    gst_flow_combiner_remove_pad(self->combiner, pad);
    self->json = NULL;
    g_mutex_unlock(&self->lock);
    gst_pad_set_active(pad, FALSE);
    gst_element_remove_pad(element, pad);
    gst_object_unref(pad);
}

static void begin(PipedInfer *self)
{
    g_mutex_lock(&self->lock);
    gst_segment_init(&self->in, GST_FORMAT_UNDEFINED);
    gst_segment_init(&self->out, GST_FORMAT_UNDEFINED);
    pgst_infer_qos_reset(self);
    self->json_begun = self->json_segment_due = self->said_undecoded = FALSE;
    self->measured = 0;
    self->live = FALSE;
    self->number = self->answered = self->dropped = self->late = self->failed = 0;
    self->copies = self->slots_used = self->reconnects = 0;
    g_mutex_unlock(&self->lock);
}

/* After the parent's change, no streaming thread runs. */
static GstStateChangeReturn change_state(GstElement *element, GstStateChange change)
{
    GstStateChangeReturn done;

    if (change == GST_STATE_CHANGE_NULL_TO_READY && PGST_INFER(element)->wake < 0) {
        GST_ELEMENT_ERROR(element, RESOURCE, FAILED, ("eventfd() failed: no descriptor is free."),
                          (NULL));
        return GST_STATE_CHANGE_FAILURE;
    }
    if (change == GST_STATE_CHANGE_READY_TO_PAUSED) {
        begin(PGST_INFER(element));
    }
    done = GST_ELEMENT_CLASS(pgst_infer_parent_class)->change_state(element, change);
    if (change == GST_STATE_CHANGE_PAUSED_TO_READY) {
        pgst_infer_forget(PGST_INFER(element));
    }
    return done;
}

static void finalize(GObject *object)
{
    PipedInfer *self = PGST_INFER(object);

    pgst_infer_forget(self);
    gst_flow_combiner_free(self->combiner);
    if (self->json) {
        gst_object_unref(self->json);
    }
    if (self->wake >= 0) {
        close(self->wake);
    }
    g_cond_clear(&self->more);
    g_cond_clear(&self->room);
    g_mutex_clear(&self->lock);
    g_free(self->settings.socket);
    g_free(self->settings.model);
    G_OBJECT_CLASS(pgst_infer_parent_class)->finalize(object);
}

static void pgst_infer_class_init(PipedInferClass *class)
{
    GObjectClass *object = G_OBJECT_CLASS(class);
    GstElementClass *element = GST_ELEMENT_CLASS(class);

    object->set_property = set_property;
    object->get_property = get_property;
    object->finalize = finalize;
    install_properties(object);
    element->change_state = change_state;
    element->request_new_pad = request_pad;
    element->release_pad = release_pad;
    gst_element_class_add_static_pad_template(element, &sink_template);
    gst_element_class_add_static_pad_template(element, &src_template);
    gst_element_class_add_static_pad_template(element, &json_template);
    gst_element_class_set_static_metadata(element, "piped inference", "Filter/Analyzer/Video",
                                          "Puts the answers of a model that piped serves on frames",
                                          "the piped authors");
}

static void pgst_infer_init(PipedInfer *self)
{
    g_mutex_init(&self->lock);
    g_cond_init(&self->more);
    g_cond_init(&self->room);
    g_queue_init(&self->queue);
    self->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    self->settings = (struct pgst_settings){.in_flight = 8, .timeout_ms = 30000};
    self->qos = TRUE;
    self->sink = gst_pad_new_from_static_template(&sink_template, "sink");
    self->src = gst_pad_new_from_static_template(&src_template, "src");
    gst_pad_set_chain_function(self->sink, pgst_infer_chain);
    gst_pad_set_event_function(self->sink, pgst_infer_sink_event);
    gst_pad_set_query_function(self->sink, pgst_infer_sink_query);
    gst_pad_set_activatemode_function(self->sink, activate_sink);
    gst_pad_set_iterate_internal_links_function(self->sink, links);
    gst_pad_set_event_function(self->src, src_event);
    gst_pad_set_query_function(self->src, src_query);
    gst_pad_set_activatemode_function(self->src, activate_src);
    gst_pad_set_iterate_internal_links_function(self->src, links);
    GST_PAD_SET_PROXY_CAPS(self->sink);
    GST_PAD_SET_PROXY_CAPS(self->src);
    gst_element_add_pad(GST_ELEMENT(self), self->sink);
    gst_element_add_pad(GST_ELEMENT(self), self->src);
    self->combiner = gst_flow_combiner_new();
    gst_flow_combiner_add_pad(self->combiner, self->src);
}
