/* SPDX-License-Identifier: Apache-2.0 */
/* What it gains that a team takes several frames at once, of the chosen primitives. */
#include "base/base.h"
#include "daemon/models/choosing_private.h"
#include "daemon/models/memory.h"

#define SHARE 4u     /* of kernels.measure_ms that is spent on it: one part in so many */
#define FREE_PART 2u /* of what is free, one part in so many for weights to compare */

/* Times by which another primitive may be chosen: not if memory or examples decided, too. */
static const struct krn_times *times_of(const struct dmn_choose *c, size_t k)
{
    return c->measured && !c->examples && c->options.objective == KRN_LATENCY &&
                   c->options.packed_bytes_max == 0
               ? &c->known[k]
               : NULL;
}

bool dmn_choose_at_once(struct dmn_choose *c, const struct mdl_model *m)
{
    bool any = false;

    for (size_t k = 0; k < c->kind_count && c->ms > 0; k++) {
        struct krn_at_once_options o = {
            .cpu = c->kinds[k].cpu,
            .budget_ns = c->ms * BASE_NS_PER_MS / SHARE,
            .stop = &c->stop,
            .packed_max = dmn_memory_free() / FREE_PART,
        };
        double(*gains)[KRN_AT_ONCE];

        if (c->kinds[k].same != k || c->at_once[k] ||
            (!c->measured && !krn_at_once_any(m, &c->of[k].choice))) {
            continue;
        }
        gains = calloc(m->op_count + 1, sizeof(*gains));
        if (!gains || krn_measure_at_once(m, times_of(c, k), &o, &c->of[k], gains) < 0) {
            free(gains); /* the planner proposes no batches */
            continue;
        }
        c->at_once[k] = gains;
        any = true;
    }
    return any;
}

/* The unit's factor is the mean of its ops', weighted by their times. Return: it is known. */
static bool unit_gain(const struct mdl_unit *unit, const double *ns,
                      const double (*gains)[KRN_AT_ONCE], struct tun_at_once *ret)
{
    double sum = 0;

    *ret = (struct tun_at_once){0};
    for (size_t i = unit->first_op; i <= unit->last_op; i++) {
        sum += ns[i];
        for (size_t b = 0; b < KRN_AT_ONCE; b++) {
            ret->factor[b] += ns[i] * gains[i][b];
        }
    }
    for (size_t b = 0; b < KRN_AT_ONCE; b++) {
        ret->factor[b] /= sum;
    }
    tun_at_once_settle(ret);
    return sum > 0;
}

void dmn_choose_at_once_costs(const struct dmn_choose *c, const struct mdl_model *m,
                              struct tun_problem *p)
{
    for (size_t k = 0; c->chosen && k < c->kind_count && k < p->ep_count; k++) {
        size_t same = c->kinds[k].same;
        struct tun_at_once *all = c->at_once[same] ? tun_problem_at_once(p) : p->at_once;

        for (size_t u = 0; all && u < m->unit_count; u++) {
            struct tun_at_once *to = &all[k * p->unit_count + u], gain;

            if (c->measured) { /* what was learned may be of other primitives */
                *to = (struct tun_at_once){0};
            }
            if (!to->measured && c->at_once[same] &&
                unit_gain(&m->units[u], c->of[same].op_ns,
                          (const double(*)[KRN_AT_ONCE])c->at_once[same], &gain)) {
                *to = gain;
            }
        }
    }
}
