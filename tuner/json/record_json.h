/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/json/record_json.h - what a decision was made of, as JSON
 *
 * pipesim(1) lists its keys under RECORDED DECISIONS, and a test compares them. They have the names
 * and units of tuner/adapt/decide.h and tuner/adapt/decision_record.h.
 */
#pragma once

#include "tuner/adapt/decide.h"
#include "tuner/json/json_reader.h"

/** tun_record_json() - new reference, NULL without memory. @d: what was decided. @model, @sources:
 * as for tun_problem_json(). */
json_t *tun_record_json(const struct tun_record *r, const struct tun_decision *d, const char *model,
                        bool sources);

/** tun_plan_json() - the text of a plan; null: it is too long. */
json_t *tun_plan_json(const struct tun_problem *p, const struct pl_plan *plan);

/** tun_decided_json() - verdict, cause, hold, plan and gain: "decided" of a record. Return: as
 * tun_record_json(). @p: the record's problem. */
json_t *tun_decided_json(const struct tun_problem *p, const struct tun_decision *d);

/** tun_record_read() - @ret: owned by the caller even after an error; @ret_decided: only
 * verdict, cause, hold, plan and gain. */
void tun_record_read(struct tun_reader *reader, const json_t *json, struct tun_record *ret,
                     struct tun_decision *ret_decided);
