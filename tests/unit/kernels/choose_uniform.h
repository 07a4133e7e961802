/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/kernels/choose_uniform.h - the choice that uses one library for everything
 */
#pragma once

#include <errno.h>
#include <stdlib.h>

#include "kernels/select/choose.h"

/* Return: whether another exact, unfused primitive of the op has one of the names. */
static inline bool choose_is_named(const struct krn_times *t, size_t op, const char *only)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct krn_primitive *p = t->times[i].primitive;

        if (t->times[i].op == op && !p->fused && !p->inexact && krn_primitive_named(p, only)) {
            return true;
        }
    }
    return false;
}

/** choose_uniform() - chooses for every op the fastest primitive whose name contains one of the
 * parts of @only, or the fastest of all if there is none. Return: as krn_choose(). */
static inline int choose_uniform(const struct krn_times *t, const char *only,
                                 struct krn_chosen *ret)
{
    struct krn_times some = *t;
    int r;

    some.times = malloc((t->count + 1) * sizeof(*some.times));
    some.count = 0;
    if (!some.times) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->count; i++) {
        const struct krn_primitive *p = t->times[i].primitive;

        if (!p->fused &&
            (krn_primitive_named(p, only) || !choose_is_named(t, t->times[i].op, only))) {
            some.times[some.count++] = t->times[i];
        }
    }
    r = krn_choose(&some, &(struct krn_choose_options){.exact = true}, ret);
    free(some.times);
    return r;
}
