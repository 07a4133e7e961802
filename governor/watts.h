/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/watts.h - what a busy core of each group takes, learned from measured joules
 *
 * The power of the machine is a line in how many cores of each group are busy:
 *     joules / s = idle + sum_k watts_k * busy_k        busy_k: busy cores of group k, on average
 * It is fitted by least squares to windows of half a second or longer; old windows fade, by half in
 * 350. s^2 is the mean square of what the line misses, but at least of 1 % of the mean power, and
 *     sigma_k = s sqrt((X'X)^-1_kk)
 * how far watts_k may be off. A figure is known from GOV_WATTS_WINDOWS windows on, if it is
 * positive and sigma_k is within a tenth of it. So nothing is known of a group that is always or
 * never busy, nor of two that are always busy together: only changes of load tell cores from the
 * rest of the machine.
 *
 * Busy is what the kernel counts, whoever runs; the joules are the machine's, too. Windows count in
 * which the sources of the sum were the same all the time and each core was counted. Pure
 * functions, one thread at a time.
 */
#pragma once

#include "governor/machine_state.h"

#define GOV_WATTS_GROUPS 8u /* of more groups nothing is learned */
#define GOV_WATTS_TERMS (GOV_WATTS_GROUPS + 1)
#define GOV_WATTS_WINDOWS 12u

/* Zeroed before the first use. */
struct gov_watts {
    uint64_t state; /* of the machine; what was learned holds for that alone */
    size_t count;   /* groups */
    struct gov_watts_at {
        uint64_t at_ns; /* 0: no window is open */
        double joules;
        uint32_t sources; /* one bit for each that is counted */
        double busy_s[GOV_WATTS_GROUPS];
    } from;
    double windows;                                    /* seen, as far as they have not faded */
    double products[GOV_WATTS_TERMS][GOV_WATTS_TERMS]; /* X'X; the last term is idle */
    double right[GOV_WATTS_TERMS], squares, power;     /* X'y, y'y, sum of y */
    double known[GOV_WATTS_GROUPS];                    /* 0: not known */
};

/** gov_watts_add() - takes a snapshot. @state: of the machine (struct gov_machine_state.id);
 * another one begins anew. @cores: the groups, in the same order each time. */
void gov_watts_add(struct gov_watts *w, const struct gov_snapshot *s, uint64_t state,
                   const struct gov_cores *cores, size_t count);
/** gov_watts_known() - Return: watts of a busy core of @group above idle; 0: not known. */
static inline double gov_watts_known(const struct gov_watts *w, size_t group)
{
    return group < w->count ? w->known[group] : 0;
}
