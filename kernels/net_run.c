/* SPDX-License-Identifier: Apache-2.0 */
/* Frames run through a model's primitives. */
#include "base/base.h"
#include "kernels/net_private.h"

/* The primitive that runs op @i; a FUSED one, which also runs the next op, only if both are below
 * @end. */
static const struct krn_bound *bound_at(const struct krn_net *net, size_t kind, size_t i,
                                        size_t end)
{
    const struct krn_bound *fused = i + 1 < end ? krn_net_pair(net, kind, i) : NULL;

    return fused ? fused : krn_net_own(net, kind, i);
}

/* Return: whether the value between ops @i and @i + 1 stays in NCHW if one team runs ops @of of the
 * frame. The answer is the same for the run of either op. */
static bool stays(const struct krn_net *net, size_t kind, size_t i, struct krn_range of)
{
    if (i < of.begin || i + 1 >= of.end || !net->ops[i].may_stay) {
        return false;
    }
    /* pairs are not on NCHW */
    for (size_t k = base_max(i, of.begin + 1) - 1; k <= i + 1; k++) {
        if (k + 1 < of.end && krn_net_pair(net, kind, k)) {
            return false;
        }
    }
    return krn_net_own(net, kind, i)->primitive->nchw_out &&
           krn_net_own(net, kind, i + 1)->primitive->nchw_in;
}

/* The range of ops in which values may stay in NCHW, if ops @now run now. An image is converted to
 * the model's layout. */
static struct krn_range reach(const struct krn_net *net, struct krn_range now,
                              const struct krn_mem *mem, const struct krn_exec *exec)
{
    size_t entry = mem->image ? krn_image_entry(net->model) : MDL_NONE;

    if (exec->first_op <= now.begin && exec->last_op + 1 >= now.end) {
        now = (struct krn_range){exec->first_op, exec->last_op + 1};
    }
    now.begin = entry == MDL_NONE ? now.begin : base_max(now.begin, entry + 1);
    return now;
}

static void run_bound(const struct krn_net *net, const struct krn_bound *bound, size_t i,
                      struct krn_range of, const struct krn_mem *mem, const struct krn_exec *exec)
{
    krn_bound_run(bound,
                  &(struct krn_bound_run){.m = net->model,
                                          .op = i,
                                          .copies = net->const_copies,
                                          .mem = mem,
                                          .exec = exec,
                                          .in_nchw = i > 0 && stays(net, exec->kind, i - 1, of),
                                          .out_nchw = stays(net, exec->kind, i, of)});
}

/* Handles an image at op @at: passes it to the primitive that reads it, or converts it. Return: how
 * many ops that replaces. */
static size_t run_image(const struct krn_net *net, size_t at, size_t end, struct krn_range of,
                        const struct krn_mem *mem, const struct krn_exec *exec)
{
    const struct mdl_model *m = net->model;
    size_t reader = net->image_reader;

    if (reader < end && krn_image_is_plain(m, mem->image)) {
        size_t op = bound_at(net, exec->kind, at, end)->primitive->fused ? at : reader;
        const struct krn_bound *bound = bound_at(net, exec->kind, op, end);

        if (bound->primitive->from_image && bound->primitive->from_image(m, &m->ops[op])) {
            run_bound(net, bound, op, of, mem, exec);
            return op + 1 + bound->primitive->fused - at;
        }
    }
    krn_image_convert(m, mem, exec);
    return krn_image_entry(m) == MDL_NONE ? 0 : 1;
}

void krn_net_run_ops(const struct krn_net *net, size_t first, size_t last,
                     const struct krn_mem *mem, const struct krn_exec *exec)
{
    size_t end = base_min(last + 1, net->model->op_count);
    size_t image = mem->image ? krn_image_place(net->model) : MDL_NONE;
    struct krn_range of = reach(net, (struct krn_range){first, end}, mem, exec);
    struct krn_mem values = *mem; /* for ops that read the converted image */

    values.image = NULL;
    image = image < first ? MDL_NONE : image;
    for (size_t i = first; i < end;) {
        if (i == image) {
            i += run_image(net, i, end, of, mem, exec);
            image = MDL_NONE;
            continue;
        }
        const struct krn_bound *bound = bound_at(net, exec->kind, i, base_min(end, image));

        if (!net->ops[i].skip) {
            run_bound(net, bound, i, of, &values, exec);
        }
        i += bound->primitive->fused ? 2 : 1;
    }
}

/* Return: the first op from @i on, below @end, that @exec's team can compute for several frames at
 * once, or @end. */
static size_t next_at_once(const struct krn_net *net, size_t i, size_t end, size_t image,
                           const struct krn_exec *exec)
{
    while (i < end) {
        const struct krn_primitive *v = bound_at(net, exec->kind, i, end)->primitive;

        if (i != image && !net->ops[i].skip && v->frames_at_once &&
            v->frames_at_once(net->model, &net->model->ops[i])) {
            return i;
        }
        i += v->fused ? 2 : 1;
    }
    return end;
}

void krn_net_run_frames(const struct krn_net *net, struct krn_range ops,
                        const struct krn_mem *const *mems, size_t count,
                        const struct krn_exec *exec)
{
    size_t end = base_min(ops.end, net->model->op_count), image = MDL_NONE;

    for (size_t k = 0; k < count; k++) {
        image = mems[k]->image ? krn_image_place(net->model) : image;
    }
    for (size_t i = ops.begin; i < end; i++) {
        size_t at = count > 1 ? next_at_once(net, i, end, image, exec) : end;

        for (size_t k = 0; at > i && k < count; k++) {
            krn_net_run_ops(net, i, at - 1, mems[k], exec);
        }
        i = at;
        if (i < end) {
            krn_bound_run_frames(
                krn_net_own(net, exec->kind, i),
                &(struct krn_bound_run){
                    .m = net->model, .op = i, .copies = net->const_copies, .exec = exec},
                mems, count);
        }
    }
}
