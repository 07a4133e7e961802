/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/http/open.h"

#include <string.h>

static int open_client(const struct web_options *o, struct piped **ret)
{
    struct piped_options p = {
        .size = sizeof(p),
        .path = o->frames_path,
        .client = "piped-http",
        .reconnect_ms = (uint32_t)(o->reconnect_s * 1e3),
        .answer_ms = (uint32_t)(o->answer_s * 1e3),
        .fail_fast = 1,
    };

    return piped_connect(&p, ret);
}

int web_open_stream(const struct web_options *o, const char *model, enum web_form form,
                    const struct web_need *need, struct piped **client, struct piped_stream **ret)
{
    static const uint32_t pixfmt[] = {PIPED_TENSOR, PIPED_TENSOR, PIPED_RGB24, PIPED_GRAY8};
    struct piped_stream_options s = {
        .size = sizeof(s),
        .model = model,
        .pixfmt = pixfmt[form],
        .policy = strcmp(o->policy, "reject") == 0 ? PIPED_REJECT : PIPED_BLOCK,
        .credits = 1,
        .slots = 1,
        .width = need->width,
        .height = need->height,
        .input_dtype = form == WEB_FORM_HALF ? PIPED_F16 : 0,
    };
    int rc = *client ? 0 : open_client(o, client);

    return rc < 0 ? rc : piped_stream_open(*client, &s, ret);
}
