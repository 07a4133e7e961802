/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN 3: descriptions are objects, and a primitive has one alone. */
#include "kernels/lib/onednn.h"

int krn_dnnl_md_tag(struct krn_dnnl_md *ret, int rank, const dnnl_dims_t dims,
                    dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return krn_dnnl_error(dnnl_memory_desc_create_with_tag(&ret->d, rank, dims, type, tag));
}

int krn_dnnl_md_strides(struct krn_dnnl_md *ret, int rank, const dnnl_dims_t dims,
                        dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return krn_dnnl_error(dnnl_memory_desc_create_with_strides(&ret->d, rank, dims, type, strides));
}

int krn_dnnl_md_arg(struct krn_dnnl_md *ret, const_dnnl_primitive_desc_t pd, int arg)
{
    const_dnnl_memory_desc_t d = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);

    return d ? krn_dnnl_error(dnnl_memory_desc_clone(&ret->d, d)) : -EOPNOTSUPP;
}

size_t krn_dnnl_md_bytes(const struct krn_dnnl_md *md)
{
    return md->d ? dnnl_memory_desc_get_size(md->d) : 0;
}

void krn_dnnl_md_deinit(struct krn_dnnl_md *md)
{
    if (md->d) {
        dnnl_memory_desc_destroy(md->d);
    }
    *md = (struct krn_dnnl_md){0};
}

bool krn_dnnl_append_eltwise(dnnl_post_ops_t post, dnnl_alg_kind_t kind, float alpha, float beta)
{
    if (kind == dnnl_eltwise_hardswish) { /* here its line is given, x * clip(alpha x + beta) */
        alpha = 1.0f / 6;
        beta = 0.5f;
    }
    return dnnl_post_ops_append_eltwise(post, kind, alpha, beta) == dnnl_success;
}

bool krn_dnnl_append_sum(dnnl_post_ops_t post)
{
    return dnnl_post_ops_append_sum(post, 1, 0, dnnl_data_type_undef) == dnnl_success;
}

dnnl_primitive_desc_t krn_dnnl_conv_pd(dnnl_alg_kind_t kind, const struct krn_dnnl_tensors *t,
                                       const struct krn_dnnl_window *w,
                                       const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t pd;

    return dnnl_convolution_forward_primitive_desc_create(
               &pd, krn_dnnl_engine(), dnnl_forward_inference, kind, t->x->d, t->weights->d,
               t->bias ? t->bias->d : NULL, t->y->d, w->strides, w->dilates, w->pad_begin,
               w->pad_end, attr) == dnnl_success
               ? pd
               : NULL;
}

dnnl_primitive_desc_t krn_dnnl_inner_product_pd(const struct krn_dnnl_tensors *t,
                                                const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t pd;

    return dnnl_inner_product_forward_primitive_desc_create(
               &pd, krn_dnnl_engine(), dnnl_forward_inference, t->x->d, t->weights->d,
               t->bias ? t->bias->d : NULL, t->y->d, attr) == dnnl_success
               ? pd
               : NULL;
}

dnnl_primitive_desc_t krn_dnnl_matmul_pd(const struct krn_dnnl_tensors *t,
                                         const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t pd;

    return dnnl_matmul_primitive_desc_create(&pd, krn_dnnl_engine(), t->x->d, t->weights->d,
                                             t->bias ? t->bias->d : NULL, t->y->d,
                                             attr) == dnnl_success
               ? pd
               : NULL;
}
