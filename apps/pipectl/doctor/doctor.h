/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/doctor/doctor.h - why the daemon is slow or refuses frames, judged from what it says
 *
 * Pure, but for sample.c: a sample of answers in, findings out. A rule (the table is in facts.h)
 * looks for one thing and adds a finding for each time that it sees it. What is not in the sample
 * is unknown, and no rule finds anything in it.
 *
 * A sample is an object with these keys:
 * - before, after: two answers of Status, some seconds apart
 * - models: of Models; events: of History; config: of Config
 * - units, explanations: {MODEL: of Units, of PlanExplain}
 * - programs: [{pid, name, cores}]: other programs and how many cores they kept busy meanwhile
 * - steal: share of the time in which the hypervisor ran somebody else
 * - read_only: [number]: cpufreq policies whose files nobody here can write
 */
#pragma once

#include "base/json_text.h"

/**
 * doctor_judge() - Return: the findings, the costliest first, a new reference: [{name, severity,
 * model, share, text, advice}]
 *
 * share: what it costs of the frames a second or of the time of a frame, null: unknown. These come
 * in the order of their share; a failure counts as all of it, a loss of unknown share as a tenth, a
 * note as nothing. What is said of a model that nobody asked meanwhile, while another was asked,
 * comes last.
 */
json_t *doctor_judge(const json_t *sample);
/** doctor_seconds() - Return: by the clock of the daemon, between the two answers of Status; 0
 * where they do not say, or where it was restarted meanwhile. */
double doctor_seconds(const json_t *sample);
/** doctor_figures() - Return: new: [{model, fps, p50_ms, p99_ms, stage, busy, off_core, service_ms,
 * expected_ms, segment}], of each model's busiest stage over the sample; null where unknown. */
json_t *doctor_figures(const json_t *sample);
/** doctor_stages() - Return: new: {MODEL: [{busy, off_core, cpu_ms}]}, of each stage over the
 * sample; null where unknown. */
json_t *doctor_stages(const json_t *sample);
/** doctor_machine() - Return: new: {cpu_waited, memory_waited (shares of the time in which a task
 * waited), quota_stopped, clocks [{cpus, governor, freq_khz, limit_khz, max_freq_khz}]}. */
json_t *doctor_machine(const json_t *sample);
/** doctor_is_well() - Return: all @findings are notes. */
bool doctor_is_well(const json_t *findings);

/* ---- sample.c: what is asked of the daemon and the machine ---- */

struct ctl;

/* How the daemon is watched. */
struct doctor_watch {
    const char *model; /* only this one; NULL: all */
    double seconds;    /* between the two answers of a sample */
    double every_s;    /* between others meanwhile; 0: there are none */
    /* called with each answer of Status; NULL: by nobody */
    void (*see)(void *context, const json_t *status);
    void *context;
};

/** doctor_sample() - asks twice. @ret: a sample as above, the caller's reference. Return: an
 * exit code; the reason was printed. */
int doctor_sample(const struct ctl *ctl, const struct doctor_watch *w, json_t **ret);
