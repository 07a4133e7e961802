/* SPDX-License-Identifier: Apache-2.0 */
/* Times of primitives: of a model as it is, and of one whose operators have mixed data types. */
#include "base/base.h"
#include "base/leaves/load_work.h"
#include "kernels/int8cal/quantise_private.h"

int krn_quantise_measure(const struct krn_quantise *j, const struct mdl_model *m, size_t kind,
                         struct krn_measure_options by, struct krn_times *ret)
{
    int r;

    by.cpu = j->o->cpu_count ? j->o->cpus[kind] : -1;
    by.stop = j->o->stop;
    r = krn_quantise_stopped(j) ? -ECANCELED : krn_measure(m, &by, ret);
    if (r < 0 && r != -ECANCELED) {
        snprintf(j->error, MDL_ERROR_MAX, "its primitives could not be measured: %s", strerror(-r));
    }
    return r;
}

/* What is told is the front's passes, not each model. */
static int measure_quietly(const struct krn_quantise *j, const struct mdl_model *m, size_t kind,
                           struct krn_measure_options by, struct krn_times *ret)
{
    struct mdl_progress *told = mdl_progress_by(NULL);
    int r = krn_quantise_measure(j, m, kind, by, ret);

    (void)mdl_progress_by(told);
    return r;
}

void krn_dtype_times_deinit(struct krn_dtype_times *t)
{
    for (size_t k = 0; k < t->kinds; k++) {
        if (t->real) {
            krn_times_deinit(&t->real[k]);
        }
        if (t->bytes) {
            krn_times_deinit(&t->bytes[k]);
        }
    }
    free(t->real);
    free(t->bytes);
    mdl_free(t->whole);
    *t = KRN_DTYPE_TIMES_NULL;
}

int krn_dtype_times_init(struct krn_quantise *j, uint64_t budget_ns, struct krn_dtype_times *ret)
{
    struct mdl_load_options load = j->load;
    int r;

    *ret = (struct krn_dtype_times){.kinds = base_max(j->o->cpu_count, (size_t)1)};
    ret->real = calloc(ret->kinds, sizeof(*ret->real));
    ret->bytes = calloc(ret->kinds, sizeof(*ret->bytes));
    load.calibration = j->q.calibration;
    r = ret->real && ret->bytes ? mdl_load(j->path, &load, j->error, &ret->whole)
                                : krn_quantise_no_memory(j);
    for (size_t k = 0; r == 0 && k < ret->kinds; k++) {
        struct krn_measure_options o = {.budget_ns = budget_ns, .inexact = true};

        r = measure_quietly(j, j->m, k, o, &ret->real[k]);
        o.inexact = false;
        r = r < 0 ? r : measure_quietly(j, ret->whole, k, o, &ret->bytes[k]);
    }
    return r;
}

/* Takes over what both tables have. @ret_wanted: [m->op_count]; *@ret_some: not all is known. */
static int take_known(const struct krn_quantise *j, const struct krn_dtype_times *t, size_t kind,
                      const struct mdl_model *m, struct krn_times *ret, bool *ret_wanted,
                      bool *ret_some)
{
    base_autofree bool *also = calloc(m->op_count + 1, sizeof(*also));
    struct krn_times more = KRN_TIMES_NULL;
    int r = also ? krn_times_like(&t->real[kind], j->m, m, ret, ret_wanted) : -ENOMEM;

    r = r < 0 ? r : krn_times_like(&t->bytes[kind], t->whole, m, &more, also);
    r = r < 0 ? r : krn_times_join(ret, &more);
    krn_times_deinit(&more);
    for (size_t op = 0; r == 0 && op < m->op_count; op++) {
        ret_wanted[op] &= also[op];
        *ret_some |= ret_wanted[op];
    }
    return r < 0 ? krn_quantise_no_memory(j) : 0;
}

int krn_dtype_times_of(const struct krn_quantise *j, const struct krn_dtype_times *t, size_t kind,
                       const struct mdl_model *m, struct krn_measure_options by,
                       struct krn_times *ret)
{
    base_autofree bool *wanted = calloc(m->op_count + 1, sizeof(*wanted));
    struct krn_times newer = KRN_TIMES_NULL;
    bool some = false;
    int r = wanted ? take_known(j, t, kind, m, ret, wanted, &some) : krn_quantise_no_memory(j);

    if (r == 0 && some) {
        by.known = ret;
        by.wanted = wanted;
        r = measure_quietly(j, m, kind, by, &newer);
        if (r == 0 && krn_times_join(ret, &newer) < 0) {
            r = krn_quantise_no_memory(j);
        }
        krn_times_deinit(&newer);
    }
    return r;
}
