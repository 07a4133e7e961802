/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder and a stream; the rest of ipc/decode needs no connection. */
#include <errno.h>
#include <string.h>

#include "ipc/decode/decoder.h"

int piped_decoder_follow(struct piped_decoder **d, const struct piped_stream *s)
{
    const struct piped_stream_info *info = piped_stream_info(s);
    const char *said = piped_stream_description(s);

    if (*d && strcmp((*d)->description, said) == 0) {
        return 0;
    }
    *d = piped_decoder_free(*d);
    return piped_decoder_new(said, info->outputs, info->output_count, d);
}

int piped_decode_frame(struct piped_decoder *d, const struct piped_stream *s,
                       const struct piped_frame *f, const struct piped_decoded **ret)
{
    const struct piped_stream_info *info = piped_stream_info(s);
    bool picture = s->open.pixfmt != PIPED_TENSOR;
    uint64_t rows[DECODE_TENSORS_MAX];

    if (f->status != PIPED_OK || !f->output || info->output_count != d->tensor_count) {
        return ipc_client_error(-EINVAL, "the frame has no answer of this decoder's model");
    }
    for (uint32_t i = 0; i < info->output_count; i++) {
        uint32_t dim;

        rows[i] = piped_rows(s, f, i, &dim);
        rows[i] = dim == UINT32_MAX ? UINT64_MAX : rows[i];
    }
    return piped_decode(d, f->output, rows, picture ? f->width : 0, picture ? f->height : 0, ret);
}
