/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN 2: descriptions are structs, and an operation has one before its primitive has. */
#include "kernels/lib/onednn.h"

int krn_dnnl_md_tag(struct krn_dnnl_md *ret, int rank, const dnnl_dims_t dims,
                    dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return krn_dnnl_error(dnnl_memory_desc_init_by_tag(&ret->d, rank, dims, type, tag));
}

int krn_dnnl_md_strides(struct krn_dnnl_md *ret, int rank, const dnnl_dims_t dims,
                        dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return krn_dnnl_error(dnnl_memory_desc_init_by_strides(&ret->d, rank, dims, type, strides));
}

int krn_dnnl_md_arg(struct krn_dnnl_md *ret, const_dnnl_primitive_desc_t pd, int arg)
{
    const dnnl_memory_desc_t *d = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);

    if (!d) {
        return -EOPNOTSUPP;
    }
    ret->d = *d;
    return 0;
}

size_t krn_dnnl_md_bytes(const struct krn_dnnl_md *md)
{
    return dnnl_memory_desc_get_size(&md->d);
}

void krn_dnnl_md_deinit(struct krn_dnnl_md *md)
{
    *md = (struct krn_dnnl_md){0};
}

bool krn_dnnl_append_eltwise(dnnl_post_ops_t post, dnnl_alg_kind_t kind, float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(post, 1, kind, alpha, beta) == dnnl_success;
}

bool krn_dnnl_append_sum(dnnl_post_ops_t post)
{
    return dnnl_post_ops_append_sum(post, 1) == dnnl_success;
}

static dnnl_primitive_desc_t pd_of(const_dnnl_op_desc_t desc, const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t pd;

    return dnnl_primitive_desc_create(&pd, desc, attr, krn_dnnl_engine(), NULL) == dnnl_success
               ? pd
               : NULL;
}

dnnl_primitive_desc_t krn_dnnl_conv_pd(dnnl_alg_kind_t kind, const struct krn_dnnl_tensors *t,
                                       const struct krn_dnnl_window *w,
                                       const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t desc;

    return dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, kind, &t->x->d,
                                                      &t->weights->d, t->bias ? &t->bias->d : NULL,
                                                      &t->y->d, w->strides, w->dilates,
                                                      w->pad_begin, w->pad_end) == dnnl_success
               ? pd_of(&desc, attr)
               : NULL;
}

dnnl_primitive_desc_t krn_dnnl_inner_product_pd(const struct krn_dnnl_tensors *t,
                                                const_dnnl_primitive_attr_t attr)
{
    dnnl_inner_product_desc_t desc;

    return dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_inference, &t->x->d,
                                                &t->weights->d, t->bias ? &t->bias->d : NULL,
                                                &t->y->d) == dnnl_success
               ? pd_of(&desc, attr)
               : NULL;
}

dnnl_primitive_desc_t krn_dnnl_matmul_pd(const struct krn_dnnl_tensors *t,
                                         const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t desc;

    return dnnl_matmul_desc_init(&desc, &t->x->d, &t->weights->d, t->bias ? &t->bias->d : NULL,
                                 &t->y->d) == dnnl_success
               ? pd_of(&desc, attr)
               : NULL;
}
