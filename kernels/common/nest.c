/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/nest.h"

#include "base/base.h"

#define ROW_STEP 256u /* parts share a single row in whole cache lines */

static ptrdiff_t magnitude(ptrdiff_t s)
{
    return s < 0 ? -s : s;
}

void krn_nest_swap(struct krn_nest *n, size_t a, size_t b)
{
    size_t d = n->dim[a];

    n->dim[a] = n->dim[b];
    n->dim[b] = d;
    for (size_t t = 0; t < n->tensors; t++) {
        ptrdiff_t s = n->stride[t][a];

        n->stride[t][a] = n->stride[t][b];
        n->stride[t][b] = s;
    }
}

/* Return: whether dims d and d + 1 can be merged. */
static bool nests(const struct krn_nest *n, size_t d)
{
    for (size_t t = 0; t < n->tensors; t++) {
        if (n->stride[t][d] != n->stride[t][d + 1] * (ptrdiff_t)n->dim[d + 1]) {
            return false;
        }
    }
    return true;
}

static void merge(struct krn_nest *n)
{
    for (size_t d = n->dims - 1; d-- > 0;) {
        if (!nests(n, d)) {
            continue;
        }
        n->dim[d] *= n->dim[d + 1];
        for (size_t t = 0; t < n->tensors; t++) {
            n->stride[t][d] = n->stride[t][d + 1];
        }
        for (size_t e = d + 1; e + 1 < n->dims; e++) {
            n->dim[e] = n->dim[e + 1];
            for (size_t t = 0; t < n->tensors; t++) {
                n->stride[t][e] = n->stride[t][e + 1];
            }
        }
        n->dims--;
    }
}

bool krn_nest_of(const struct mdl_tensor *const *t, size_t tensors, struct krn_nest *ret)
{
    struct krn_nest n = {.tensors = tensors, .rows = 1};

    for (size_t i = 1; i < tensors; i++) {
        if (t[i]->rank != t[0]->rank) {
            return false;
        }
    }
    for (size_t d = 0; d < t[0]->rank; d++) {
        for (size_t i = 0; i < tensors; i++) {
            if (t[i]->dim[d] != t[0]->dim[d]) {
                return false;
            }
        }
        if (t[0]->dim[d] == 0 || (t[0]->dim[d] > 1 && t[0]->stride[d] == 0)) {
            return false;
        }
        if (t[0]->dim[d] > 1) {
            n.dim[n.dims] = t[0]->dim[d];
            for (size_t i = 0; i < tensors; i++) {
                n.stride[i][n.dims] = t[i]->stride[d];
            }
            n.dims++;
        }
    }
    for (size_t a = 1; a < n.dims; a++) {
        for (size_t b = a; b > 0 && magnitude(n.stride[0][b]) > magnitude(n.stride[0][b - 1]);
             b--) {
            krn_nest_swap(&n, b, b - 1);
        }
    }
    if (n.dims == 0) {
        n.dims = 1;
        n.dim[0] = 1;
        for (size_t i = 0; i < tensors; i++) {
            n.stride[i][0] = 1;
        }
    }
    merge(&n);
    for (size_t d = 0; d + 1 < n.dims; d++) {
        n.rows *= n.dim[d];
    }
    *ret = n;
    return true;
}

void krn_nest_run(const struct krn_nest *nest, size_t part, size_t parts, krn_nest_fn *fn,
                  void *arg)
{
    size_t outer = nest->dims - 1, index[MDL_RANK_MAX] = {0};
    ptrdiff_t at[KRN_NEST_TENSORS] = {0};
    struct krn_range rows = {0, 1}, row = {0, nest->dim[outer]};
    size_t left;

    if (nest->rows > 1) {
        rows = krn_share_run(nest->rows, 1, part, parts);
    } else {
        row = krn_share_run(row.end, ROW_STEP, part, parts);
    }
    if (rows.begin >= rows.end || row.begin >= row.end) {
        return;
    }
    left = rows.begin;
    for (size_t d = outer; d-- > 0;) {
        index[d] = left % nest->dim[d];
        left /= nest->dim[d];
    }
    for (size_t t = 0; t < nest->tensors; t++) {
        at[t] = (ptrdiff_t)row.begin * nest->stride[t][outer];
        for (size_t d = 0; d < outer; d++) {
            at[t] += (ptrdiff_t)index[d] * nest->stride[t][d];
        }
    }
    for (size_t r = rows.begin; r < rows.end; r++) {
        fn(arg, at, row.end - row.begin);
        for (size_t d = outer; d-- > 0;) {
            bool wraps = ++index[d] == nest->dim[d];
            ptrdiff_t steps = wraps ? 1 - (ptrdiff_t)nest->dim[d] : 1;

            for (size_t t = 0; t < nest->tensors; t++) {
                at[t] += steps * nest->stride[t][d];
            }
            if (!wraps) {
                break;
            }
            index[d] = 0;
        }
    }
}

struct shared {
    const struct krn_nest *nest;
    size_t parts;
    krn_nest_fn *fn;
    void *arg;
};

static void part_run(void *arg, size_t part)
{
    const struct shared *s = arg;

    krn_nest_run(s->nest, part, s->parts, s->fn, s->arg);
}

void krn_nest_share(const struct krn_nest *nest, pthreadpool_t pool, size_t width, krn_nest_fn *fn,
                    void *arg)
{
    struct shared s = {.nest = nest, .parts = base_max(width, 1u), .fn = fn, .arg = arg};

    krn_parallel(pool, s.parts, part_run, &s);
}
