/* SPDX-License-Identifier: Apache-2.0 */
/** apps/gstreamer/elements.h - the types of the plugin's elements */
#pragma once

#include <gst/gst.h>

GType pgst_infer_get_type(void);
GType pgst_overlay_get_type(void);
