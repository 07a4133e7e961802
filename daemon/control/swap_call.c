/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/swap_call.h"

static void failed(struct dmn_hot_swap *r, const struct dmn_outcome *why)
{
    const struct dmn_swap_call *of = r->of;

    dmn_call_refuse(of->call, why);
}

struct dmn_hot_swap *dmn_swap_call_new(struct dmn_call *c, struct dmn_model *m,
                                       enum dmn_cause cause, size_t bytes)
{
    struct dmn_outcome why;
    struct dmn_hot_swap *r = dmn_hot_swap_new(m, cause, &why);
    struct dmn_swap_call *of;

    if (!r) {
        dmn_call_refuse(c, &why);
        return NULL;
    }
    r->of = of = calloc(1, bytes);
    if (!of) {
        dmn_hot_swap_free(r);
        dmn_call_error(c, "LoadFailed", "why", "out of memory");
        return NULL;
    }
    of->call = c;
    r->failed = failed;
    return r;
}
