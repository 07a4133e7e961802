/* SPDX-License-Identifier: Apache-2.0 */
/* pipedoverlay: draws the answers that pipedinfer put on buffers, into the frames; and the plugin,
 * which gst-inspect-1.0 shows as piped. */
#include <gst/video/gstvideofilter.h>
#include <gst/video/video.h>

#include "apps/gstreamer/infer_element.h"
#include "apps/show/canvas.h"
#include "apps/show/decoded.h"

#define PACKAGE "piped"
#define CAPS                                                                                       \
    GST_VIDEO_CAPS_MAKE("{ RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, GRAY8, "      \
                        "NV12, NV21, I420, YV12, Y42B, Y444, YUY2, UYVY }")

typedef struct {
    GstVideoFilter filter;
} PipedOverlay;
typedef struct {
    GstVideoFilterClass parent;
} PipedOverlayClass;

static GType pgst_overlay_get_type(void);
G_DEFINE_TYPE(PipedOverlay, pgst_overlay, GST_TYPE_VIDEO_FILTER)

static struct canvas canvas_of(GstVideoFrame *frame)
{
    struct canvas_part parts[3] = {{0}};
    guint count = MIN(GST_VIDEO_FRAME_N_COMPONENTS(frame), 3);

    for (guint i = 0; i < count; i++) {
        parts[i] = (struct canvas_part){
            .first = GST_VIDEO_FRAME_COMP_DATA(frame, i),
            .stride = (size_t)GST_VIDEO_FRAME_COMP_STRIDE(frame, i),
            .step = (uint32_t)GST_VIDEO_FRAME_COMP_PSTRIDE(frame, i),
            .across = GST_VIDEO_FORMAT_INFO_W_SUB(frame->info.finfo, i),
            .down = GST_VIDEO_FORMAT_INFO_H_SUB(frame->info.finfo, i),
        };
    }
    return canvas_on((uint32_t)GST_VIDEO_FRAME_WIDTH(frame),
                     (uint32_t)GST_VIDEO_FRAME_HEIGHT(frame), parts, count,
                     !GST_VIDEO_INFO_IS_RGB(&frame->info));
}

static GstFlowReturn transform(GstVideoFilter *filter, GstVideoFrame *frame)
{
    const PipedResult *r = piped_buffer_result(frame->buffer);
    struct canvas c = canvas_of(frame);

    if (r && r->decoded) {
        shw_draw(&c, r->decoded);
    }
    return GST_FLOW_OK;
}

static void pgst_overlay_class_init(PipedOverlayClass *class)
{
    GstElementClass *element = GST_ELEMENT_CLASS(class);
    GstCaps *caps = gst_caps_from_string(CAPS);

    GST_VIDEO_FILTER_CLASS(class)->transform_frame_ip = transform;
    gst_element_class_add_pad_template(
        element, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
    gst_element_class_add_pad_template(
        element, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
    gst_element_class_set_static_metadata(element, "piped overlay", "Filter/Editor/Video",
                                          "Draws the answers of pipedinfer into frames",
                                          "the piped authors");
}

static void pgst_overlay_init(PipedOverlay *self)
{
}

/* The plugin that gst-inspect-1.0 piped shows. */
static gboolean plugin_begin(GstPlugin *plugin)
{
    return gst_element_register(plugin, "pipedinfer", GST_RANK_NONE, pgst_infer_get_type()) &&
           gst_element_register(plugin, "pipedoverlay", GST_RANK_NONE, pgst_overlay_get_type());
}

/* The name of this licence is not one that GStreamer knows by itself. */
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, piped,
                  "Models that piped serves, for frames of a pipeline", plugin_begin, PIPED_VERSION,
                  "Apache 2.0", "piped", "Unknown package origin")
