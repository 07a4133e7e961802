/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/adapt_json.h"

#include <math.h>

#include "base/base.h"
#include "daemon/adapt/adapter.h"

static json_t *watches_json(const struct dmn_model *m)
{
    static const char *const changes[] = {
        [TUN_SAME] = "same", [TUN_SLOWER] = "slower", [TUN_FASTER] = "faster"};
    json_t *list = json_array();
    struct tun_watch_view v;

    for (size_t i = 0; dmn_adapt_watched(m, i, &v); i++) {
        json_array_append_new(list, json_pack("{s:i, s:i, s:f, s:f, s:f, s:s, s:b}", "stage",
                                              (int)v.stage, "group", (int)v.group, "expected_ms",
                                              v.expected_ns / 1e6, "factor",
                                              isfinite(v.level) ? exp(v.level) : 1.0, "sigma",
                                              isfinite(v.sigma) ? v.sigma : 0.0, "change",
                                              changes[v.change], "firm", v.firm));
    }
    return list;
}

json_t *dmn_adapt_json(const struct dmn_model *m)
{
    struct dmn_adapt_state a;

    dmn_adapt_state(m, &a);
    if (!a.known) {
        return json_pack("{s:s, s:n}", "state", dmn_adapt_phase_name(a.phase), "last");
    }
    return json_pack("{s:s, s:o, s:s?, s:b, s:f, s:I, s:i, s:i, s:o}", "state",
                     dmn_adapt_phase_name(a.phase), "last",
                     a.decided ? json_pack("{s:s, s:s?}", "cause", tun_cause_name(a.cause),
                                           "outcome", dmn_event_outcome_name(a.outcome))
                               : json_null(),
                     "held", a.held == TUN_HOLD_NONE ? NULL : tun_hold_name(a.held), "corrected",
                     a.corrected, "cooldown_s", (double)a.cooldown_ns / 1e9, "windows",
                     (json_int_t)a.windows, "decisions", (int)a.decisions, "switches",
                     (int)a.switches, "watches", watches_json(m));
}
