/* SPDX-License-Identifier: Apache-2.0 */
/* pipedinfer: its class, properties, pads and states. */
#include "apps/gstreamer/infer_element.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define SIZES_ANY "width=[1,32768],height=[1,32768]"
#define SIZES_EVEN "width=[2,32768,2],height=[2,32768,2]"
#define CAPS                                                                                       \
    "video/x-raw,format={" PGST_SAME_ANY "," PGST_COPIED_ANY "}," SIZES_ANY ";"                    \
    "video/x-raw,format={" PGST_SAME_EVEN "," PGST_COPIED_EVEN "}," SIZES_EVEN

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

enum value { TEXT, POLICY, NUMBER, SWITCH };

/* The properties; their ids count from 1. Those of the daemon's side take effect with the next
 * format of the stream. */
#define AT(member) offsetof(PipedInfer, member)
static const struct {
    const char *name, *text;
    enum value value;
    size_t at;
    guint preset, least, most; /* limits: of numbers */
} properties[] = {
    {"socket", "The daemon's frames socket; empty: the default", TEXT, AT(settings.socket)},
    {"model", "Name of the model; empty: the default", TEXT, AT(settings.model)},
    {"policy", "What happens when frames come faster than answers", POLICY, AT(settings.policy),
     PIPED_BLOCK},
    {"deadline-ms", "After that a frame is not computed; 0: no deadline", NUMBER,
     AT(settings.deadline_ms), 0, 0, G_MAXINT},
    {"priority", "Of the stream, in the daemon", NUMBER, AT(settings.priority), 0, 0, 3},
    {"in-flight", "Frames that may wait for answers at once", NUMBER, AT(settings.in_flight), 8, 1,
     256},
    {"timeout-ms",
     "How long to wait for an answer at the start, and to look for a daemon that "
     "went away",
     NUMBER, AT(settings.timeout_ms), 30000, 1, G_MAXINT},
    {"latency-ms", "Answer to the query for latency; 0: as measured", NUMBER, AT(latency_ms), 0, 0,
     G_MAXINT},
    {"raw-outputs", "Answers have the model's output tensors, too", SWITCH, AT(raw_outputs), FALSE},
    {"post-messages", "Post each answer as element message piped-result", SWITCH, AT(post_messages),
     FALSE},
    {"qos", "Frames that would be dropped later are not computed", SWITCH, AT(qos), TRUE},
};
#define PROPERTY_STATS (G_N_ELEMENTS(properties) + 1)

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
    void *at = (char *)object + properties[id - 1].at;
    char *old = NULL;

    GST_OBJECT_LOCK(object);
    switch (properties[id - 1].value) {
    case TEXT:
        old = *(char **)at;
        *(char **)at = g_value_dup_string(value);
        break;
    case POLICY:
        *(guint *)at = (guint)g_value_get_enum(value);
        break;
    case NUMBER:
        *(guint *)at = g_value_get_uint(value);
        break;
    case SWITCH:
        *(gboolean *)at = g_value_get_boolean(value);
        break;
    }
    GST_OBJECT_UNLOCK(object);
    g_free(old);
}

static GstStructure *stats(PipedInfer *self)
{
    PGST_LOCKED(self);

    return gst_structure_new(
        "piped-stats", "answered", G_TYPE_UINT64, self->answered, "dropped", G_TYPE_UINT64,
        self->dropped, "late", G_TYPE_UINT64, self->late, "failed", G_TYPE_UINT64, self->failed,
        "copied", G_TYPE_UINT64, self->copies, "in-place", G_TYPE_UINT64, self->slots_used,
        "reconnects", G_TYPE_UINT64,
        self->reconnects + (self->session ? pgst_session_reconnects(self->session) : 0), NULL);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec)
{
    const void *at;

    if (id == PROPERTY_STATS) {
        g_value_take_boxed(value, stats(PGST_INFER(object)));
        return;
    }
    at = (char *)object + properties[id - 1].at;
    GST_OBJECT_LOCK(object);
    switch (properties[id - 1].value) {
    case TEXT:
        g_value_set_string(value, *(char *const *)at);
        break;
    case POLICY:
        g_value_set_enum(value, *(const gint *)at);
        break;
    case NUMBER:
        g_value_set_uint(value, *(const guint *)at);
        break;
    case SWITCH:
        g_value_set_boolean(value, *(const gboolean *)at);
        break;
    }
    GST_OBJECT_UNLOCK(object);
}

static GParamSpec *property_spec(size_t i)
{
    const GParamFlags both = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;
    const char *name = properties[i].name, *text = properties[i].text;
    guint preset = properties[i].preset;

    switch (properties[i].value) {
    case TEXT:
        return g_param_spec_string(name, name, text, NULL, both);
    case POLICY:
        return g_param_spec_enum(name, name, text, policy_type(), (gint)preset, both);
    case NUMBER:
        return g_param_spec_uint(name, name, text, properties[i].least, properties[i].most, preset,
                                 both);
    default:
        return g_param_spec_boolean(name, name, text, (gboolean)preset, both);
    }
}

static void install_properties(GObjectClass *class)
{
    for (guint i = 0; i < G_N_ELEMENTS(properties); i++) {
        g_object_class_install_property(class, i + 1, property_spec(i));
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
    PGST_LOCKED(self);

    gst_segment_init(&self->in, GST_FORMAT_UNDEFINED);
    gst_segment_init(&self->out, GST_FORMAT_UNDEFINED);
    pgst_infer_qos_reset(self);
    self->json_begun = self->json_segment_due = self->said_undecoded = FALSE;
    self->measured = 0;
    self->live = FALSE;
    self->number = self->answered = self->dropped = self->late = self->failed = 0;
    self->copies = self->slots_used = self->reconnects = 0;
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
