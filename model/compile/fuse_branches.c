/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that are trained with parallel linear branches (RepVGG, MobileOne, FastViT) compute
 *
 *     y = W1 * x + W2 * x + scale x + ...  =  (W1 + W2 + diag(scale) + ...) * x
 *
 * with one convolution, if the window of one of them (the host) contains every tap of the others:
 * Ding et al., RepVGG, CVPR 2021, section 3.3. The taps of a smaller window lie where both read the
 * same pixel: host tap j reads o stride - pad + j dilation. */
#include "model/compile/passes.h"

/* One term of a sum: sign * (scale (W * x) + shift). */
struct branch {
    size_t x;
    struct mdl_ir_op *op; /* CONV or AFFINE; NULL: x itself */
    double sign;
};

static bool is_linear_conv(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    return op && mdl_match_const_weights(ir, op) && !op->op.quant &&
           ir->values[op->op.in[1]].dtype == MDL_F32;
}

static struct branch read_branch(struct mdl_ir *ir, size_t v, double sign)
{
    struct mdl_ir_op *conv = mdl_match_producer(ir, v, MDL_OP_CONV);
    struct mdl_ir_op *affine = mdl_match_producer(ir, v, MDL_OP_AFFINE);

    if (mdl_match_private(ir, v) && (affine || is_linear_conv(ir, conv))) {
        struct mdl_ir_op *op = affine ? affine : conv;

        return (struct branch){.x = op->op.in[0], .op = op, .sign = sign};
    }
    return (struct branch){.x = v, .sign = sign};
}

static bool is_conv(const struct branch *b)
{
    return b->op && b->op->kind == MDL_OP_CONV;
}

/* The window of a branch; one pixel unless it is a convolution. */
static struct mdl_window window_of(const struct branch *b, const struct mdl_window *host)
{
    struct mdl_window w = {.rank = host->rank};

    if (is_conv(b)) {
        return b->op->op.attr.conv.window;
    }
    for (size_t i = 0; i < w.rank; i++) {
        w.kernel[i] = w.stride[i] = w.dilation[i] = 1;
    }
    return w;
}

static size_t groups_of(const struct branch *b, size_t channels)
{
    return is_conv(b) ? b->op->op.attr.conv.groups : channels;
}

/* The tap of @host that reads what tap @i of @guest reads. Return: false if none does */
static bool tap_of(const struct mdl_window *host, const struct mdl_window *guest, size_t dim,
                   size_t i, size_t *ret)
{
    size_t at = host->pad_begin[dim] + i * guest->dilation[dim];

    if (at < guest->pad_begin[dim] || (at - guest->pad_begin[dim]) % host->dilation[dim] != 0) {
        return false;
    }
    *ret = (at - guest->pad_begin[dim]) / host->dilation[dim];
    return *ret < host->kernel[dim];
}

/* Return: whether the host can compute what @guest does, at no cost for itself. */
static bool contains(const struct mdl_ir *ir, const struct branch *host, const struct branch *guest)
{
    const struct mdl_window *a = &host->op->op.attr.conv.window;
    const struct mdl_ir_value *x = &ir->values[host->x];
    const struct mdl_ir_value *y = &ir->values[host->op->op.out[0]];
    const struct mdl_window b = window_of(guest, a);

    if (b.rank != a->rank || (!is_conv(guest) && x->dim[1] != y->dim[1]) ||
        groups_of(guest, x->dim[1]) % host->op->op.attr.conv.groups != 0) {
        return false;
    }
    for (size_t d = 0; d < a->rank; d++) {
        if (a->stride[d] != b.stride[d]) {
            return false;
        }
        for (size_t i = 0, j; i < b.kernel[d]; i++) {
            if (!tap_of(a, &b, d, i, &j)) {
                return false;
            }
        }
    }
    return true;
}

static size_t taps(const struct mdl_window *w)
{
    size_t n = 1;

    for (size_t i = 0; i < w->rank; i++) {
        n *= w->kernel[i];
    }
    return n;
}

/* The host's tap for tap @t of @guest, both as places in one channel's weights. */
static size_t place_of(const struct mdl_window *host, const struct mdl_window *guest, size_t t)
{
    size_t at[3] = {0}, place = 0;

    for (size_t d = guest->rank; d-- > 0; t /= guest->kernel[d]) {
        (void)tap_of(host, guest, d, t % guest->kernel[d], &at[d]);
    }
    for (size_t d = 0; d < host->rank; d++) {
        place = place * host->kernel[d] + at[d];
    }
    return place;
}

/* Adds the weights of @b to @sum, [out][in / groups of the host][taps of the host]. */
static void add_weights(struct mdl_ir *ir, const struct branch *b, const struct mdl_ir_op *host,
                        float *sum)
{
    const struct mdl_window *hw = &host->op.attr.conv.window;
    const struct mdl_window bw = window_of(b, hw);
    const struct mdl_ir_value *weights = is_conv(b) ? &ir->values[b->op->op.in[1]] : NULL;
    size_t in = ir->values[b->x].dim[1], out = ir->values[host->op.out[0]].dim[1];
    size_t groups = groups_of(b, in), host_groups = host->op.attr.conv.groups;
    size_t each = in / groups, host_each = in / host_groups, n = taps(&bw), host_n = taps(hw);
    size_t *place = mdl_ir_alloc(ir, n, sizeof(*place));

    for (size_t t = 0; t < n; t++) {
        place[t] = place_of(hw, &bw, t);
    }
    for (size_t o = 0; o < out; o++) {
        double scale = b->sign * (b->op && b->op->op.scale ? (double)b->op->op.scale[o] : 1);
        size_t first = o / (out / groups) * each - o / (out / host_groups) * host_each;

        for (size_t i = 0; i < each; i++) {
            float *to = sum + (o * host_each + first + i) * host_n;

            for (size_t t = 0; t < n; t++) {
                double w = weights ? mdl_const_real(weights, (o * each + i) * n + t) : 1;

                to[place[t]] = (float)((double)to[place[t]] + scale * w);
            }
        }
    }
}

static double shift_of(const struct branch *b, size_t channel)
{
    return b->op && b->op->op.shift ? b->sign * (double)b->op->op.shift[channel] : 0;
}

/* Gives the convolution of @host the weights of both. Return: false: that is too much to compute
 * while the model is loaded. */
static bool merge(struct mdl_ir *ir, const struct branch *host, const struct branch *guest)
{
    struct mdl_op *op = &host->op->op;
    struct mdl_ir_value w = ir->values[op->in[1]];
    size_t channels = ir->values[op->out[0]].dim[1], v;
    float *shift;
    void *sum;

    if (mdl_ir_bytes(&w) > ir->fold_bytes_left ||
        !mdl_ir_fold_work(ir, 2 * (double)mdl_ir_elements(&w))) {
        return false;
    }
    v = mdl_ir_value_new(ir, MDL_F32, w.rank, w.dim);
    sum = mdl_const_make(ir, v);
    shift = mdl_ir_alloc(ir, channels, sizeof(*shift));
    add_weights(ir, host, host->op, sum);
    add_weights(ir, guest, host->op, sum);
    for (size_t i = 0; i < channels; i++) {
        shift[i] = (float)(shift_of(host, i) + shift_of(guest, i));
    }
    ir->values[v].name = w.name;
    op->in[1] = v;
    op->scale = NULL;
    op->shift = shift;
    op->channels = channels;
    return true;
}

void mdl_fuse_branches(struct mdl_ir *ir, size_t k)
{
    struct mdl_op *sum = &ir->ops[k].op;
    enum mdl_binary which = sum->attr.binary;
    struct branch both[2], *host = NULL, *guest = NULL;

    if ((which != MDL_BIN_ADD && which != MDL_BIN_SUB) || sum->act != MDL_ACT_NONE || sum->quant ||
        sum->in[0] == sum->in[1] || ir->values[sum->out[0]].dtype != MDL_F32 ||
        !mdl_ir_same_dims(&ir->values[sum->in[0]], &ir->values[sum->in[1]])) {
        return;
    }
    both[0] = read_branch(ir, sum->in[0], 1);
    both[1] = read_branch(ir, sum->in[1], which == MDL_BIN_SUB ? -1 : 1);
    for (size_t i = 0; i < 2; i++) {
        if (is_conv(&both[i]) && both[1 - i].x == both[i].x &&
            contains(ir, &both[i], &both[1 - i])) {
            host = &both[i];
            guest = &both[1 - i];
            break;
        }
    }
    if (!host || !merge(ir, host, guest)) {
        return;
    }
    if (guest->op) {
        guest->op->dead = true;
    }
    ir->values[host->x].uses--;
    mdl_ir_absorb(ir, host->op, k);
}
