/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/record_json.h - what a decision was made of, as JSON
 *
 *     {"problem": a recorded table, "objective": "throughput", "bounds": {"period_max_ns",
 *      "latency_max_ns", "stages_max", "one_kind_stages", "slack"}, "plan": text,
 *      "beta": [one a unit], "slow": {KIND: [one a unit]},
 *      "now": [{"cores", "khz_table", "khz", "khz_before", "governor_changed", "limit_changed",
 *               "thermal", "contended"}],                                    one a kind
 *      "teams": [{"stage", "group", "level", "sigma", "waiting" (null: unknown), "firm"}],
 *      "events": ["hotplug", "cpuset", "power", "button", "input", "probe"], "gain_min",
 *      "gain_urgent", "cooldown_left_s", "budget_left",
 *      "decided": {"replan", "cause", "hold", "plan" (null: none), "gain" (null: endless)}}
 *
 * Members have the names and units of tuner/decide.h.
 */
#pragma once

#include "tuner/decide.h"
#include "tuner/pipesim/files.h"

/** psim_record_json() - new reference, NULL without memory. @d: what was decided. */
json_t *psim_record_json(const struct tun_record *r, const struct tun_decision *d);

/** psim_record_read() - @ret: owned by the caller even if something was wrong; @ret_decided:
 * verdict, cause, hold, plan and gain alone. */
void psim_record_read(struct psim_reader *reader, const json_t *json, struct tun_record *ret,
                      struct tun_decision *ret_decided);
