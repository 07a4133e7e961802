/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with constant weights over oneDNN: its inner product for one row; for several rows its
 * matrix product, which allows gaps between them. Outputs are divided into panels, each packed in
 * the library's layout and run by one primitive, which all panels but the last share. So the
 * members of a team of any width read one copy of the weights, whole panels each. The epilogue
 * follows while a panel is in cache.
 */
#include "kernels/common/planned.h"
#include "kernels/lib/onednn.h"

#define PANELS 24u /* at most; shared evenly by 2, 3, 4, 6, 8 and 12 */
#define PANEL 64u  /* outputs, and multiples of it */

struct panel {
    size_t outputs, bytes; /* bytes as packed, in whole cache lines */
    struct krn_dnnl_md weights;
    struct krn_dnnl product; /* made by prepare() */
};

struct problem {
    const struct mdl_model *m;
    const struct mdl_op *op;
    struct krn_product p;
    size_t full;              /* how many panels there are of the first kind */
    struct panel panel, last; /* last.outputs may be 0 */
};

static dnnl_dim_t dim(size_t n)
{
    return (dnnl_dim_t)n;
}

/* @plain: as krn_product_pack() writes them, [output][k]; else as the library likes */
static int weights_md(const struct krn_product *p, size_t outputs, bool plain,
                      struct krn_dnnl_md *ret)
{
    bool row = p->m == 1;
    dnnl_dims_t dims = {dim(row ? outputs : p->k), dim(row ? p->k : outputs)};
    dnnl_dims_t strides = {row ? dim(p->k) : 1, row ? 1 : dim(p->k)};

    return plain ? krn_dnnl_md_strides(ret, 2, dims, dnnl_f32, strides)
                 : krn_dnnl_md_tag(ret, 2, dims, dnnl_f32, dnnl_format_tag_any);
}

static dnnl_primitive_desc_t panel_pd(const struct krn_product *p, size_t outputs)
{
    dnnl_dims_t x_dims = {dim(p->m), dim(p->k)}, y_dims = {dim(p->m), dim(outputs)};
    dnnl_dims_t x_strides = {dim(p->m == 1 ? p->k : p->lda), 1};
    dnnl_dims_t y_strides = {dim(p->m == 1 ? outputs : p->ldy), 1};
    krn_dnnl_auto_md x = {0}, w = {0}, y = {0};
    struct krn_dnnl_tensors t = {.x = &x, .weights = &w, .y = &y};
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;

    if (krn_dnnl_md_strides(&x, 2, x_dims, dnnl_f32, x_strides) < 0 ||
        krn_dnnl_md_strides(&y, 2, y_dims, dnnl_f32, y_strides) < 0 ||
        weights_md(p, outputs, false, &w) < 0) {
        return NULL;
    }
    attr = krn_dnnl_attr(NULL, dnnl_fpmath_mode_strict);
    if (attr) {
        pd = p->m == 1 ? krn_dnnl_inner_product_pd(&t, attr) : krn_dnnl_matmul_pd(&t, attr);
    }
    dnnl_primitive_attr_destroy(attr);
    return krn_dnnl_if_fast(pd);
}

/* @made: with the primitive. Return: 0, -ENOMEM, -EOPNOTSUPP */
static int panel_init(const struct krn_product *p, size_t outputs, bool made, struct panel *ret)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS};
    dnnl_primitive_desc_t pd;
    int r;

    ret->outputs = outputs;
    if (outputs == 0) {
        return 0;
    }
    pd = panel_pd(p, outputs);
    if (!pd) {
        return -EOPNOTSUPP;
    }
    r = krn_dnnl_md_arg(&ret->weights, pd, DNNL_ARG_WEIGHTS);
    if (r == 0 && made) {
        r = krn_dnnl_init(&ret->product, pd, base_array_count(args), args);
    }
    ret->bytes = krn_dnnl_align(krn_dnnl_md_bytes(&ret->weights));
    dnnl_primitive_desc_destroy(pd);
    return r;
}

static void problem_deinit(struct problem *p)
{
    krn_dnnl_md_deinit(&p->panel.weights);
    krn_dnnl_md_deinit(&p->last.weights);
    krn_dnnl_deinit(&p->panel.product);
    krn_dnnl_deinit(&p->last.product);
}

#define auto_problem base_cleanup(problem_deinit) struct problem

/* Return: as panel_init(); deinitialise @p in any case */
static int problem_init(struct problem *p, const struct mdl_model *m, const struct mdl_op *op,
                        bool made)
{
    size_t outputs;
    int r;

    *p = (struct problem){.m = m, .op = op};
    if (!krn_product_of(m, op, &p->p) || !p->p.b_const || krn_epilogue_aliased(m, op) ||
        !krn_dnnl_alone() || !krn_dnnl_engine()) {
        return -EOPNOTSUPP;
    }
    outputs = base_min(base_align_up((p->p.n + PANELS - 1) / PANELS, PANEL), p->p.n);
    p->full = p->p.n / outputs;
    r = panel_init(&p->p, outputs, made, &p->panel);
    return r < 0 ? r : panel_init(&p->p, p->p.n % outputs, made, &p->last);
}

static bool problem_of(const struct mdl_model *m, const struct mdl_op *op, struct problem *p)
{
    return problem_init(p, m, op, false) == 0;
}

static size_t panels(const struct problem *p)
{
    return p->full + (p->last.outputs > 0);
}

KRN_SUPPORTS_BY(auto_problem, problem_of)
KRN_PACKED_BYTES_BY(auto_problem, problem_of, p.full *p.panel.bytes + p.last.bytes)

/* @count panels like @panel, the first of which begins with output @first */
static int pack(const struct problem *p, const struct panel *panel, size_t count, size_t first,
                uint8_t *dst)
{
    krn_dnnl_auto_md plain = {0};
    struct krn_dnnl reorder = {0};
    base_autofree float *src = malloc(panel->outputs * p->p.k * sizeof(float));
    base_autofree void *pad = NULL;
    int r = weights_md(&p->p, panel->outputs, true, &plain);

    if (r < 0) {
        return r;
    }
    r = src ? krn_dnnl_reorder(&reorder, &plain, &panel->weights) : -ENOMEM;
    if (r == 0) {
        pad = aligned_alloc(BASE_CACHE_LINE_BYTES, krn_dnnl_align(krn_dnnl_scratch(&reorder) + 1));
        r = pad ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        struct krn_range outputs = {first + i * panel->outputs, first + (i + 1) * panel->outputs};

        krn_product_pack(p->m, p->op, &p->p, outputs, src);
        krn_dnnl_run(&reorder, (void *[]){src, dst + i * panel->bytes, pad});
    }
    krn_dnnl_deinit(&reorder);
    return r;
}

KRN_RELEASE_BY(problem_deinit)

static int prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                   struct krn_prepared *ret)
{
    struct problem *p;
    int r;

    if (ret->object) { /* all widths have the same */
        return 0;
    }
    p = malloc(sizeof(*p));
    if (!p) {
        return -ENOMEM;
    }
    *ret = (struct krn_prepared){.object = p, .bytes = sizeof(*p)};
    r = problem_init(p, m, op, true);
    r = r < 0 ? r : pack(p, &p->panel, p->full, 0, packed);
    if (r == 0 && p->last.outputs > 0) {
        r = pack(p, &p->last, 1, p->full * p->panel.outputs,
                 (uint8_t *)packed + p->full * p->panel.bytes);
    }
    if (r < 0) {
        release(ret);
    }
    return r;
}

static size_t pad_bytes(const struct problem *p)
{
    return krn_dnnl_align(
        base_max(krn_dnnl_scratch(&p->panel.product), krn_dnnl_scratch(&p->last.product)));
}

static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)
{
    auto_problem p;

    return problem_init(&p, m, op, true) < 0 ? 0 : pad_bytes(&p) * base_min(width, panels(&p));
}

struct job {
    const struct krn_call *call;
    struct problem *problem;
    struct krn_epilogue epilogue;
    size_t parts;
};

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    struct problem *p = j->problem;
    struct krn_range at = krn_share_run(panels(p), 1, part, j->parts);
    const uint8_t *packed = j->call->packed;
    void *pad = j->call->scratch + part * pad_bytes(p);

    for (size_t i = at.begin; i < at.end; i++) {
        struct panel *panel = i < p->full ? &p->panel : &p->last;
        size_t first = i * p->panel.outputs;
        float *y = (float *)j->call->out[0] + first;

        krn_dnnl_run(&panel->product,
                     (void *[]){(void *)(uintptr_t)j->call->in[0], y,
                                (void *)(uintptr_t)(packed + i * p->panel.bytes), pad});
        if (!krn_epilogue_empty(&j->epilogue)) {
            krn_epilogue_run(&j->epilogue, y, p->p.ldy, 0, p->p.m, first, panel->outputs);
        }
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call, .problem = call->prepared, .epilogue = krn_epilogue_of(call)};

    j.parts = base_min(base_max(call->width, 1u), panels(j.problem));
    krn_parallel(call->pool, j.parts, part_run, &j);
}

#define PRIMITIVE(what, kind)                                                                      \
    KRN_PRIMITIVE(what##_f32__dnnl, kind, .supports = supports, .packed_bytes = packed_bytes,      \
                  .prepare = prepare, .release = release, .scratch_bytes = scratch_bytes,          \
                  .run = run);
KRN_PRODUCTS(PRIMITIVE)
