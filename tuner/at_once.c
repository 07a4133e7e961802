/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/at_once.h"

#include <math.h>

#include "base/base.h"

double tun_at_once_factor(const struct tun_at_once *a, double frames)
{
    double from = 1, from_t = 1;

    if (!a || !(frames > 1)) {
        return 1;
    }
    for (size_t i = 0; i < TUN_AT_ONCE; i++) {
        double to = 2 * from, to_t = to * (a->factor[i] > 0 ? a->factor[i] : 1);

        if (frames == to) {
            return to_t / to; /* as it is given, to the last bit */
        }
        if (frames < to) {
            return (from_t + (frames - from) * (to_t - from_t) / (to - from)) / frames;
        }
        from = to;
        from_t = to_t;
    }
    return from_t / from;
}

void tun_at_once_settle(struct tun_at_once *a)
{
    double before = 1;

    for (size_t i = 0; i < TUN_AT_ONCE; i++) {
        double *f = &a->factor[i];

        *f = isfinite(*f) && *f > 0 ? base_max(before / 2, base_min(before, *f)) : before;
        before = *f;
    }
}

bool tun_at_once_gains(const struct tun_at_once *a)
{
    return a && tun_at_once_factor(a, 8) <= 1 - TUN_AT_ONCE_LEAST;
}
