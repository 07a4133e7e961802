/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: the tensors of a frame between a segment's slots and the wire. */
#include "apps/link/hop/hop_private.h"

/* Does a tensor of the wire fit the segment's input? */
static bool fits(const struct lnk_tensor *wire, const struct piped_tensor *t,
                 const struct piped_frame *f)
{
    return wire->dtype == t->dtype && !wire->is_picture && wire->bytes == t->bytes &&
           t->offset <= f->input_size && t->bytes <= f->input_size - t->offset;
}

int hop_border_take(const struct piped_stream_info *info, const struct lnk_message *m,
                    struct piped_frame *f)
{
    if (m->frame.tensor_count != info->input_count) {
        return PIPED_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct piped_tensor *t = &info->inputs[i];

        if (!fits(&m->tensor[i], t, f) || m->part[i].bytes != t->bytes) {
            return PIPED_INVALID_ARGUMENT;
        }
        memcpy((uint8_t *)f->input + t->offset, m->part[i].data, t->bytes);
    }
    return 0;
}

int hop_border_picture(const struct lnk_message *m, struct piped_frame *f)
{
    const struct lnk_tensor *wire = &m->tensor[0];

    if (m->frame.tensor_count != 1 || m->part[0].bytes != wire->bytes ||
        wire->bytes > f->input_size) {
        return PIPED_INVALID_ARGUMENT;
    }
    memcpy(f->input, m->part[0].data, wire->bytes);
    f->height = wire->dim[1];
    f->width = wire->dim[2];
    return 0;
}

size_t hop_border_put(const struct piped_stream_info *info, const struct piped_frame *f,
                      struct lnk_message *m, struct lnk_bytes *ret)
{
    size_t count = base_min(info->output_count, LNK_PARTS_MAX);

    for (size_t i = 0; i < count; i++) {
        const struct piped_tensor *t = &info->outputs[i];
        struct lnk_tensor *wire = &m->tensor[i];

        *wire = (struct lnk_tensor){
            .dtype = (uint8_t)t->dtype, .rank = (uint8_t)t->rank, .bytes = t->bytes};
        memcpy(wire->dim, t->dim, t->rank * sizeof(t->dim[0]));
        ret[i] = (struct lnk_bytes){(const uint8_t *)f->output + t->offset, t->bytes};
    }
    return count;
}
