/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/host.h"

const char *dmn_state_name(enum dmn_state state)
{
    static const char *const names[] = {[DMN_STATE_SERVING] = "serving",
                                        [DMN_STATE_TUNING] = "tuning",
                                        [DMN_STATE_DEGRADED] = "degraded",
                                        [DMN_STATE_DRAINING] = "draining"};

    return names[state];
}
