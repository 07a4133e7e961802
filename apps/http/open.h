/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/open.h - opens streams to the daemon. Threads: any, one at a time for a client. */
#pragma once

#include "apps/http/options.h"
#include "ipc/piped.h"

/* In which frames come. */
enum web_form { WEB_FORM_TENSOR, WEB_FORM_HALF, WEB_FORM_RGB, WEB_FORM_GRAY, WEB_FORMS };

/* What a request needs of a stream. */
struct web_need {
    uint32_t width, height; /* of a picture; else 0 */
    size_t work_bytes;      /* beside the slot, until web_place_worked() */
    uint64_t until_ns;      /* so long it waits for memory */
};

/** web_open_stream() - a stream with one slot. @client: connected first if it is NULL. Return: 0;
 * -errno of piped_connect() or piped_stream_open(), with piped_last_error(). */
int web_open_stream(const struct web_options *o, const char *model, enum web_form form,
                    const struct web_need *need, struct piped **client, struct piped_stream **ret);
