/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/serving.h"

#include "base/base.h"

static const char *const origins[] = {[DMN_FROM_NOBODY] = "none",
                                      [DMN_FROM_USER] = "manual",
                                      [DMN_FROM_CONFIG] = "config",
                                      [DMN_FROM_SAVED] = "saved",
                                      [DMN_FROM_MIX] = "mix"};

const char *dmn_origin_name(struct dmn_origin o)
{
    return o.from == DMN_FROM_SEARCH ? o.algorithm->name : origins[o.from];
}

struct dmn_origin dmn_origin_find(const char *name)
{
    const struct tun_algorithm *a = tun_algorithm_find(name);

    if (a) {
        return (struct dmn_origin){.from = DMN_FROM_SEARCH, .algorithm = a};
    }
    for (size_t i = 0; i < base_array_count(origins); i++) {
        if (origins[i] && strcmp(origins[i], name) == 0) {
            return (struct dmn_origin){.from = (enum dmn_from)i};
        }
    }
    return (struct dmn_origin){.from = DMN_FROM_NOBODY};
}

bool dmn_origin_pinned(struct dmn_origin o)
{
    return o.from == DMN_FROM_USER || o.from == DMN_FROM_CONFIG;
}

const char *dmn_cause_name(enum dmn_cause cause)
{
    static const char *const names[] = {
        [DMN_CAUSE_START - TUN_CAUSE_COUNT] = "start",
        [DMN_CAUSE_REQUEST - TUN_CAUSE_COUNT] = "request",
        [DMN_CAUSE_CONFIG - TUN_CAUSE_COUNT] = "config",
        [DMN_CAUSE_OPTIMISE - TUN_CAUSE_COUNT] = "optimise",
        [DMN_CAUSE_QUANTISE - TUN_CAUSE_COUNT] = "quantise",
        [DMN_CAUSE_UPGRADE - TUN_CAUSE_COUNT] = "upgrade",
        [DMN_CAUSE_LINK - TUN_CAUSE_COUNT] = "link",
        [DMN_CAUSE_BOARD - TUN_CAUSE_COUNT] = "board",
        [DMN_CAUSE_MODELS - TUN_CAUSE_COUNT] = "models",
    };

    _Static_assert(base_array_count(names) == DMN_CAUSE_COUNT - TUN_CAUSE_COUNT, "one name each");
    return (int)cause < (int)TUN_CAUSE_COUNT ? tun_cause_name((enum tun_cause)cause)
                                             : names[cause - TUN_CAUSE_COUNT];
}
