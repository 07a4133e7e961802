/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that exist already: what they take, how sure they are, which of two is better. */
#include <math.h>

#include "base/base.h"
#include "kernels/select/choose_private.h"

/* Return: which of the times it is; SIZE_MAX: there is none. */
static size_t time_of(const struct krn_times *t, size_t op, const struct krn_primitive *p)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->times[i].op == op && t->times[i].primitive == p) {
            return i;
        }
    }
    return SIZE_MAX;
}

int krn_choose_by(const struct krn_times *t, const struct krn_choice *choice,
                  struct krn_chosen *ret)
{
    base_autofree size_t *times = calloc(t->op_count + 1, sizeof(*times));
    size_t count = 0;

    if (!times) {
        return -ENOMEM;
    }
    for (size_t op = 0; op < t->op_count; op++) {
        const struct krn_primitive *fused = choice->fused[op];

        times[count] = time_of(t, op, fused ? fused : choice->own[op]);
        if (times[count++] == SIZE_MAX) {
            return KRN_E_UNTIMED;
        }
        op += fused ? 1 : 0;
    }
    return krn_choose_times(t, times, count, ret);
}

double krn_chosen_doubt(const struct krn_chosen *c)
{
    double sum = 0;

    for (size_t op = 0; c->op_lose_ns && op < c->choice.op_count; op++) {
        sum += c->op_lose_ns[op];
    }
    return c->ns > 0 ? sum / c->ns : 0;
}

size_t krn_chosen_unsure(const struct krn_chosen *c, double share, bool *ret)
{
    double left = krn_chosen_doubt(c) * c->ns;
    size_t count = 0;

    for (size_t op = 0; op < c->choice.op_count; op++) {
        ret[op] = false;
    }
    while (count < c->choice.op_count && left > share * c->ns) {
        size_t most = SIZE_MAX;

        for (size_t op = 0; op < c->choice.op_count; op++) {
            if (!ret[op] && (most == SIZE_MAX || c->op_lose_ns[op] > c->op_lose_ns[most])) {
                most = op;
            }
        }
        ret[most] = true;
        left -= c->op_lose_ns[most];
        count++;
    }
    return count;
}

bool krn_chosen_beats(const struct krn_chosen *c, const struct krn_chosen *now)
{
    double variance = 0;

    for (size_t op = 0; op < c->choice.op_count; op++) {
        if (c->choice.own[op] != now->choice.own[op] ||
            c->choice.fused[op] != now->choice.fused[op]) {
            variance += c->op_sigma_ns[op] * c->op_sigma_ns[op] +
                        now->op_sigma_ns[op] * now->op_sigma_ns[op];
        }
    }
    return now->ns - c->ns > sqrt(variance);
}
