/* SPDX-License-Identifier: Apache-2.0 */
/* A decision with all its inputs as JSON: enough to make it again without hardware. */
#include "daemon/control/json.h"
#include "daemon/plans/history.h"
#include "tuner/json/record_json.h"

json_t *dmn_decided_json(const struct dmn_decided *d)
{
    struct tun_decision v = TUN_DECISION_NULL;

    v.replan = d->replan;
    v.cause = d->cause;
    v.hold = d->hold;
    v.plan = d->plan;
    v.gain = d->gain;
    return tun_record_json(&d->record, &v, "decision", true);
}
