/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/http/decoded.h"

static bool find_decoder(struct web_place *place, enum web_form form, struct piped_decoder **ret,
                         struct web_reply *r)
{
    int rc = web_place_decoder(place, form, ret);

    if (rc == -ENODATA) {
        web_fail(r, 400, "%s", piped_last_error());
    } else if (rc < 0) {
        web_fail(r, 500, "the outputs cannot be decoded: %s", piped_last_error());
    }
    return rc == 0;
}

bool web_decoded_ready(struct web_place *place, enum web_form form, struct web_reply *r)
{
    struct piped_decoder *d;

    return find_decoder(place, form, &d, r);
}

bool web_decoded(struct web_place *place, enum web_form form, const struct piped_stream *s,
                 const struct piped_frame *f, const struct piped_decoded **ret, struct web_reply *r)
{
    struct piped_decoder *d;

    if (!find_decoder(place, form, &d, r)) {
        return false;
    }
    if (piped_decode_frame(d, s, f, ret) < 0) {
        web_fail(r, 500, "the outputs cannot be decoded: %s", piped_last_error());
        return false;
    }
    return true;
}
