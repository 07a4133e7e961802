/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the way to find ranges with the smallest error. */
#include <assert.h>

#include "base/base.h"
#include "kernels/int8cal/quantise_private.h"

#define EQUALISED_WORTH 0.8 /* of the mean square error */

struct krn_answers krn_quantise_ranked(const struct krn_quantise *j)
{
    struct krn_answers some = j->learned; /* the same arrays */

    some.count = base_min(some.count, (size_t)KRN_RANKED_EXAMPLES);
    return some;
}

/* Makes the calibration by one way; *ret_square: squared error of its answers against f32. */
static int try_way(struct krn_quantise *j, enum krn_calibrate_method method, bool equalised,
                   double *ret_square)
{
    struct krn_answers some = krn_quantise_ranked(j);
    struct krn_judgement of;
    int r =
        krn_calibrate_finish(j->ranges, method, j->o->symmetric, &j->q.zeros, &j->q.calibration);

    if (r < 0) {
        return r;
    }
    j->q.calibration->equalised = equalised;
    r = krn_quantise_judge(j, &some, &of);
    *ret_square = of.square;
    return r;
}

int krn_quantise_ranges(struct krn_quantise *j)
{
    static const struct {
        enum krn_calibrate_method method;
        bool equalised;
        double worth;
    } ways[] = {{KRN_CALIBRATE_MINMAX, false, 1},
                {KRN_CALIBRATE_KL, false, 1},
                {KRN_CALIBRATE_MINMAX, true, EQUALISED_WORTH}};
    double least = 0, square;
    size_t best = 0, done = 0, count = 0;
    bool any = false;
    int r = 0;

    for (size_t i = 0; i < KRN_QUANTISE_WAYS; i++) {
        count += j->o->either || ways[i].method == j->o->method;
    }
    static_assert(base_array_count(ways) == KRN_QUANTISE_WAYS, "each has its place");
    for (size_t i = 0; r == 0 && i < KRN_QUANTISE_WAYS; i++) {
        if (!j->o->either && ways[i].method != j->o->method) {
            continue;
        }
        krn_quantise_pass(j, "comparing ranges by examples", done++, count);
        r = try_way(j, ways[i].method, ways[i].equalised, &square);
        j->ways[i].calibration = base_take(j->q.calibration);
        j->ways[i].method = ways[i].method;
        if (r == 0 && (!any || square < ways[i].worth * least)) {
            least = square;
            best = i;
            any = true;
        }
    }
    j->q.calibration = r == 0 ? base_take(j->ways[best].calibration) : NULL;
    j->q.method = ways[best].method;
    return r;
}
