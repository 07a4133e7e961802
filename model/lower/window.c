/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a window, and the sizes and pads that follow from them. */
#include "model/lower/lowering.h"

static void read_sizes(struct mdl_lower *l, const char *name, size_t spatial, int64_t lowest,
                       size_t fallback, size_t count, size_t *ret)
{
    int64_t value[6];
    size_t found;

    for (size_t i = 0; i < count; i++) {
        ret[i] = fallback;
    }
    if (!mdl_l_ints(l, name, value, 6, &found) || found == 0) {
        return;
    }
    mdl_bad_if(l, found != count, "%s has %zu values for %zu spatial dims", name, found, spatial);
    for (size_t i = 0; i < count; i++) {
        mdl_bad_if(l, value[i] < lowest || value[i] > INT32_MAX, "%s %lld is out of range", name,
                   (long long)value[i]);
        ret[i] = (size_t)value[i];
    }
}

static const struct mdl_l_word auto_pads[] = {
    {"NOTSET", MDL_PAD_NOTSET},         {"", MDL_PAD_NOTSET},
    {"SAME_UPPER", MDL_PAD_SAME_UPPER}, {"SAME_LOWER", MDL_PAD_SAME_LOWER},
    {"VALID", MDL_PAD_VALID},           {0},
};

void mdl_window_read(struct mdl_lower *l, size_t spatial, const size_t *kernel,
                     struct mdl_window *ret, int *ret_auto)
{
    struct mdl_window w = {.rank = spatial};
    size_t pads[6] = {0};

    mdl_unserved_if(l, spatial < 1 || spatial > 3,
                    "%zu spatial dims are not supported (1 to 3 are)", spatial);
    mdl_bad_if(l, !kernel && !mdl_l_attr(l, "kernel_shape"), "kernel_shape is missing");
    read_sizes(l, "kernel_shape", spatial, 1, 0, spatial, w.kernel);
    for (size_t i = 0; i < spatial; i++) {
        mdl_bad_if(l, kernel && w.kernel[i] && w.kernel[i] != kernel[i],
                   "kernel_shape says %zu, the weights have %zu", w.kernel[i], kernel[i]);
        w.kernel[i] = kernel ? kernel[i] : w.kernel[i];
        mdl_bad_if(l, w.kernel[i] == 0, "a kernel dimension is 0");
    }
    read_sizes(l, "strides", spatial, 1, 1, spatial, w.stride);
    read_sizes(l, "dilations", spatial, 1, 1, spatial, w.dilation);
    read_sizes(l, "pads", spatial, 0, 0, 2 * spatial, pads);
    *ret_auto = mdl_l_word(l, "auto_pad", "NOTSET", auto_pads);
    for (size_t i = 0; i < spatial; i++) {
        w.pad_begin[i] = *ret_auto == MDL_PAD_NOTSET ? pads[i] : 0;
        w.pad_end[i] = *ret_auto == MDL_PAD_NOTSET ? pads[spatial + i] : 0;
    }
    *ret = w;
}

void mdl_window_of(struct mdl_lower *l, size_t spatial, const size_t *kernel, bool ceil_mode,
                   const size_t *in, struct mdl_window *w, size_t *ret_out, size_t *ret_end)
{
    int auto_pad;

    mdl_window_read(l, spatial, kernel, w, &auto_pad);
    for (size_t i = 0; i < w->rank; i++) {
        /* all below 2^31 each, so nothing here overflows 64 bits */
        size_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, padded, last;

        mdl_bad_if(l, in[i] == 0 || in[i] > INT32_MAX, "a spatial dimension of the input is %zu",
                   in[i]);
        if (auto_pad == MDL_PAD_SAME_UPPER || auto_pad == MDL_PAD_SAME_LOWER) {
            size_t out = (in[i] + w->stride[i] - 1) / w->stride[i];
            size_t need = (out - 1) * w->stride[i] + reach, total;

            total = need > in[i] ? need - in[i] : 0;
            w->pad_begin[i] = auto_pad == MDL_PAD_SAME_UPPER ? total / 2 : total - total / 2;
            w->pad_end[i] = total - w->pad_begin[i];
        }
        if (ret_end) {
            ret_end[i] = w->pad_end[i];
        }
        padded = in[i] + w->pad_begin[i] + w->pad_end[i];
        mdl_bad_if(l, padded < reach, "kernel extent %zu is larger than the input's %zu", reach,
                   padded);
        ret_out[i] = (padded - reach) / w->stride[i] + 1;
        if (ceil_mode && (padded - reach) % w->stride[i]) {
            /* one more window, unless it would start in the padding behind the input */
            if (ret_out[i] * w->stride[i] < in[i] + w->pad_begin[i]) {
                ret_out[i]++;
            }
        }
        last = (ret_out[i] - 1) * w->stride[i] + reach;
        if (last > padded) {
            w->pad_end[i] += last - padded;
        }
    }
}

void mdl_window_image(struct mdl_lower *l, size_t least, size_t most)
{
    size_t rank = mdl_l_value(l, l->in[0])->rank;

    mdl_unserved_if(l, rank < least || rank > most,
                    "input of rank %zu is not supported (%zu to %zu are)", rank, least, most);
}

void mdl_window_pool(struct mdl_lower *l, struct mdl_ir_op *op, size_t *ret_dim)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    struct mdl_window *w = &op->op.attr.pool.window;
    size_t *end = op->op.attr.pool.pad_end_model;

    mdl_window_image(l, 3, 5);
    mdl_window_of(l, x->rank - 2, NULL, mdl_l_int(l, "ceil_mode", 0) != 0, x->dim + 2, w,
                  ret_dim + 2, end);
    for (size_t i = 0; i < w->rank; i++) {
        size_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        size_t pad = base_max(w->pad_begin[i], end[i]);

        mdl_bad_if(l, pad >= reach, "pads %zu leave windows without any input", pad);
    }
    ret_dim[0] = x->dim[0];
    ret_dim[1] = x->dim[1];
}
