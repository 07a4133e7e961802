/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin that gst-inspect-1.0 piped shows. */
#include "apps/gstreamer/elements.h"

#define PACKAGE "piped"

static gboolean begin(GstPlugin *plugin)
{
    return gst_element_register(plugin, "pipedinfer", GST_RANK_NONE, pgst_infer_get_type()) &&
           gst_element_register(plugin, "pipedoverlay", GST_RANK_NONE, pgst_overlay_get_type());
}

/* The name of this licence is not one that GStreamer knows by itself. */
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, piped,
                  "Models that piped serves, for frames of a pipeline", begin, PIPED_VERSION,
                  "Apache 2.0", "piped", "Unknown package origin")
