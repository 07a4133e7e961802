/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/model/fused_blocks.h"

#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/unit/model/run_model.h"

struct mdl_model *fused(struct gb *g, double bound)
{
    struct mdl_load_options plain = {.no_fusion = true, .const_eval = krn_const_eval};
    struct mdl_model *m = gb_compile(g, NULL), *single;
    struct run_model a, b;
    double worst = 0;

    if (!m) {
        fprintf(stderr, "%s\n", g->error);
        return NULL;
    }
    single = gb_compile(g, &plain);
    run_model_init(&a, m);
    run_model_init(&b, single);
    if (!run_model_go(&a, 1) || !run_model_go(&b, 1)) {
        worst = INFINITY;
    }
    for (size_t i = 0; i < m->output_count; i++) {
        worst = fmax(worst, run_model_distance(&a, &b, i));
    }
    run_model_deinit(&a);
    run_model_deinit(&b);
    mdl_free(single);
    if (!(worst <= bound)) {
        fprintf(stderr, "fused and single operators differ by %g\n", worst);
        m = mdl_free(m);
    }
    return m;
}

bool becomes(struct gb *g, enum mdl_op_kind kind, size_t count, size_t ops)
{
    struct mdl_model *m = fused(g, 1e-5);
    bool ok = m && gb_count_ops(m, kind) == count && m->op_count == ops;

    if (m && !ok) {
        fprintf(stderr, "%zu of %zu ops are %s\n", gb_count_ops(m, kind), m->op_count,
                mdl_op_kind_name(kind));
        for (size_t i = 0; i < m->op_count; i++) {
            fprintf(stderr, "  %s %s\n", mdl_op_kind_name(m->ops[i].kind), m->ops[i].name);
        }
    }
    mdl_free(m);
    gb_free(g);
    return ok;
}

bool refused(struct gb *g, const char *why)
{
    struct mdl_model *m = gb_compile(g, NULL);
    bool ok = !m && strstr(g->error, why);

    if (!ok) {
        fprintf(stderr, "%s where \"%s\" was expected\n", m ? "accepted" : g->error, why);
    }
    mdl_free(m);
    gb_free(g);
    return ok;
}

const float *answer(struct gb *g, struct run_model *r, struct mdl_model **m)
{
    *m = gb_compile(g, NULL);
    if (!*m) {
        fprintf(stderr, "%s\n", g->error);
        return NULL;
    }
    run_model_init(r, *m);
    return run_model_go(r, 3) ? r->outputs[0] : NULL;
}
