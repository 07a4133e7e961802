/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower/window.h"

static int read_sizes(struct mdl_lower *l, const char *name, size_t spatial, int64_t lowest,
                      size_t fallback, size_t count, size_t *ret)
{
    int64_t value[6];
    size_t found;

    for (size_t i = 0; i < count; i++) {
        ret[i] = fallback;
    }
    if (!mdl_l_ints(l, name, value, 6, &found) || found == 0) {
        return l->error;
    }
    if (found != count) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "%s has %zu values for %zu spatial dims", name, found,
                             spatial);
    }
    for (size_t i = 0; i < count; i++) {
        if (value[i] < lowest || value[i] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "%s %lld is out of range", name,
                                 (long long)value[i]);
        }
        ret[i] = (size_t)value[i];
    }
    return 0;
}

static int read_auto_pad(struct mdl_lower *l, int *ret)
{
    const char *s = mdl_l_string(l, "auto_pad", "NOTSET");

    *ret = strcmp(s, "SAME_UPPER") == 0   ? MDL_PAD_SAME_UPPER
           : strcmp(s, "SAME_LOWER") == 0 ? MDL_PAD_SAME_LOWER
           : strcmp(s, "VALID") == 0      ? MDL_PAD_VALID
                                          : MDL_PAD_NOTSET;
    if (*ret == MDL_PAD_NOTSET && s[0] && strcmp(s, "NOTSET") != 0) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "auto_pad %s is not supported", s);
    }
    return l->error;
}

int mdl_window_read(struct mdl_lower *l, size_t spatial, const size_t *kernel,
                    struct mdl_window *ret, int *ret_auto)
{
    struct mdl_window w = {.rank = spatial};
    size_t pads[6] = {0};
    int r;

    if (spatial < 1 || spatial > 3) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "%zu spatial dims are not supported (1 to 3 are)",
                             spatial);
    }
    if (!kernel && !mdl_l_attr(l, "kernel_shape")) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "kernel_shape is missing");
    }
    r = read_sizes(l, "kernel_shape", spatial, 1, 0, spatial, w.kernel);
    for (size_t i = 0; r == 0 && kernel && i < spatial; i++) {
        if (w.kernel[i] && w.kernel[i] != kernel[i]) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "kernel_shape says %zu, the weights have %zu",
                                 w.kernel[i], kernel[i]);
        }
        w.kernel[i] = kernel[i];
    }
    for (size_t i = 0; r == 0 && i < spatial; i++) {
        if (w.kernel[i] == 0) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "a kernel dimension is 0");
        }
    }
    r = r < 0 ? r : read_sizes(l, "strides", spatial, 1, 1, spatial, w.stride);
    r = r < 0 ? r : read_sizes(l, "dilations", spatial, 1, 1, spatial, w.dilation);
    r = r < 0 ? r : read_sizes(l, "pads", spatial, 0, 0, 2 * spatial, pads);
    r = r < 0 ? r : read_auto_pad(l, ret_auto);
    for (size_t i = 0; i < spatial; i++) {
        w.pad_begin[i] = *ret_auto == MDL_PAD_NOTSET ? pads[i] : 0;
        w.pad_end[i] = *ret_auto == MDL_PAD_NOTSET ? pads[spatial + i] : 0;
    }
    *ret = w;
    return r;
}

int mdl_window_resolve(struct mdl_lower *l, struct mdl_window *w, int auto_pad, bool ceil_mode,
                       const size_t *in, size_t *ret_out, size_t *ret_pad_end_model)
{
    for (size_t i = 0; i < w->rank; i++) {
        /* all below 2^31 each, so nothing here overflows 64 bits */
        size_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, padded, last;

        if (in[i] == 0 || in[i] > INT32_MAX) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "a spatial dimension of the input is %zu", in[i]);
        }
        if (auto_pad == MDL_PAD_SAME_UPPER || auto_pad == MDL_PAD_SAME_LOWER) {
            size_t out = (in[i] + w->stride[i] - 1) / w->stride[i];
            size_t need = (out - 1) * w->stride[i] + reach, total;

            total = need > in[i] ? need - in[i] : 0;
            w->pad_begin[i] = auto_pad == MDL_PAD_SAME_UPPER ? total / 2 : total - total / 2;
            w->pad_end[i] = total - w->pad_begin[i];
        }
        ret_pad_end_model[i] = w->pad_end[i];
        padded = in[i] + w->pad_begin[i] + w->pad_end[i];
        if (padded < reach) {
            return mdl_ir_refuse(l->ir, -EBADMSG,
                                 "kernel extent %zu is larger than the input's %zu", reach, padded);
        }
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
    return 0;
}
