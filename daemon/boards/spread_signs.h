/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_signs.h - have costs or links changed so much that routes are worth another
 * thought?
 *
 * Signs are taken when a route is sought, and compared with those of now. Cheap: no table is made.
 * Pure; any thread.
 */
#pragma once

#include "daemon/boards/spread_problem.h"

#define DMN_SIGNS_MAX 1024u
#define DMN_SIGN_COSTS 0.1 /* relative changes that count */
#define DMN_SIGN_LINKS 0.25

struct dmn_signs {
    size_t count;
    struct {
        uint64_t key;
        double value;
        bool link;
    } sign[DMN_SIGNS_MAX];
};

enum dmn_sign_change { DMN_SIGNS_SAME, DMN_SIGNS_LINKS, DMN_SIGNS_COSTS };

/** dmn_signs_take() - rows of the head's table and of the past, and links of the usable boards, for
 * a message of the model's mean border. */
void dmn_signs_take(const struct dmn_spread_inputs *in, struct dmn_signs *ret);
enum dmn_sign_change dmn_signs_compare(const struct dmn_signs *before, const struct dmn_signs *now);
