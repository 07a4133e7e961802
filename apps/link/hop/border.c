/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/hop/border.h"

#include "base/base.h"

_Static_assert((int)BRD_AS_IS == LNK_AS_IS && (int)BRD_AS_F16 == LNK_AS_F16 &&
                   (int)BRD_AS_I8 == LNK_AS_I8,
               "encodings have the numbers of the wire");

void hop_border_next(struct hop_border *b)
{
    b->encoded = false;
    b->came_as_is = 0;
}

void hop_border_deinit(struct hop_border *b)
{
    free(b->bytes);
    *b = (struct hop_border){0};
}

/* Does a tensor of the wire fit the segment's input? */
static bool fits(const struct lnk_tensor *wire, const struct piped_tensor *t, enum brd_encoding may,
                 const struct piped_frame *f)
{
    if (wire->dtype != t->dtype || t->offset > f->input_size ||
        t->bytes > f->input_size - t->offset) {
        return false;
    }
    if (wire->encoding == LNK_AS_IS) {
        return wire->bytes == t->bytes;
    }
    return wire->encoding == (uint8_t)may && t->dtype == PIPED_F32 &&
           wire->bytes == brd_encoded_bytes(may, t->bytes / sizeof(float));
}

int hop_border_take(struct hop_border *b, const struct piped_stream_info *info,
                    const struct lnk_message *m, enum brd_encoding may, struct piped_frame *f)
{
    if (m->frame.tensor_count != info->input_count) {
        return PIPED_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct lnk_tensor *wire = &m->tensor[i];
        const struct piped_tensor *t = &info->inputs[i];
        uint8_t *to = (uint8_t *)f->input + t->offset;

        if (!fits(wire, t, may, f) || m->part[i].bytes != wire->bytes) {
            return PIPED_INVALID_ARGUMENT;
        }
        if (wire->encoding == LNK_AS_IS) {
            b->came_as_is |= 1u << i;
            memcpy(to, m->part[i].data, t->bytes);
        } else {
            brd_decode(may, m->part[i].data, t->bytes / sizeof(float), wire->scale, wire->zero, to);
        }
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

/* Return: the segment hands on @t, which came as it is. */
static bool passes_as_is(const struct hop_border *b, const struct piped_stream_info *info,
                         const struct piped_tensor *t)
{
    for (uint32_t i = 0; i < info->input_count; i++) {
        if (b->came_as_is >> i & 1 && info->inputs[i].bytes == t->bytes &&
            strcmp(info->inputs[i].name, t->name) == 0) {
            return true;
        }
    }
    return false;
}

static bool encodes(const struct hop_border *b, const struct piped_stream_info *info,
                    const struct piped_tensor *t)
{
    return t->dtype == PIPED_F32 && !passes_as_is(b, info, t);
}

/* Each tensor lies at half its place in the answer. */
static bool encode(struct hop_border *b, const struct piped_stream_info *info,
                   const struct piped_frame *f, enum brd_encoding as, size_t count)
{
    b->bytes = b->bytes ? b->bytes : malloc(base_max(info->output_bytes / 2, (uint64_t)1));
    for (size_t i = 0; b->bytes && i < count; i++) {
        const struct piped_tensor *t = &info->outputs[i];

        if (encodes(b, info, t)) {
            brd_encode(as, (const uint8_t *)f->output + t->offset, t->bytes / sizeof(float),
                       b->bytes + t->offset / 2, &b->scale[i], &b->zero[i]);
        }
    }
    return b->bytes != NULL;
}

size_t hop_border_put(struct hop_border *b, const struct piped_stream_info *info,
                      const struct piped_frame *f, enum brd_encoding as, struct lnk_message *m,
                      struct lnk_bytes *ret)
{
    size_t count = base_min(info->output_count, LNK_PARTS_MAX);

    if (as != BRD_AS_IS && !b->encoded) {
        b->encoded = encode(b, info, f, as, count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct piped_tensor *t = &info->outputs[i];
        struct lnk_tensor *wire = &m->tensor[i];

        *wire = (struct lnk_tensor){
            .dtype = (uint8_t)t->dtype, .rank = (uint8_t)t->rank, .bytes = t->bytes};
        memcpy(wire->dim, t->dim, t->rank * sizeof(t->dim[0]));
        ret[i] = (struct lnk_bytes){(const uint8_t *)f->output + t->offset, t->bytes};
        if (as != BRD_AS_IS && b->encoded && encodes(b, info, t)) {
            wire->encoding = (uint8_t)as;
            wire->bytes = brd_encoded_bytes(as, t->bytes / sizeof(float));
            wire->scale = as == BRD_AS_I8 ? b->scale[i] : 0;
            wire->zero = as == BRD_AS_I8 ? b->zero[i] : 0;
            ret[i] = (struct lnk_bytes){b->bytes + t->offset / 2, wire->bytes};
        }
    }
    return count;
}
