/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/pipectl/doctor.h - why the daemon is slow or refuses frames, judged from what it says
 *
 * Pure: a sample of answers in, findings out. A rule (doctor.c has the table) looks for one thing
 * and adds a finding for each time that it sees it. What is not in the sample is unknown, and no
 * rule finds anything in it.
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

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DOCTOR_TEXT 768u

/* What a finding means, worst first. */
enum doctor_severity {
    DOCTOR_FAILURE, /* something is not served */
    DOCTOR_LOSS,    /* time, frames or their meaning are lost */
    DOCTOR_NOTE     /* worth knowing; it does not make the exit code 1 */
};

struct doctor;
struct doctor_rule {
    const char *name; /* as in the output, and a heading in docs/slow.md */
    enum doctor_severity severity;
    void (*judge)(struct doctor *d);
};

struct doctor {
    /* borrowed from the sample, NULL if missing */
    const json_t *before, *after, *models, *units, *explanations, *events, *config, *programs,
        *read_only;
    double steal;   /* NAN: unknown */
    double seconds; /* between the answers, by the daemon's clock; 0: it was restarted */
    json_t *findings;
    const struct doctor_rule *rule; /* that judges now */
};

/**
 * doctor_judge() - Return: the findings, the costliest first, a new reference: [{name, severity,
 * model, share, text, advice}]
 *
 * share: what it costs of the frames a second or of the time of a frame, null: unknown. These come
 * in the order of their share; a failure counts as all of it, a loss of unknown share as a tenth, a
 * note as nothing.
 */
json_t *doctor_judge(const json_t *sample);
/** doctor_figures() - Return: new: [{model, fps, p50_ms, p99_ms, stage, busy, off_core, service_ms,
 * expected_ms}], of each model's busiest stage over the sample; null where unknown. */
json_t *doctor_figures(const json_t *sample);
/** doctor_machine() - Return: new: {cpu_waited, memory_waited (shares of the time in which a task
 * waited), quota_stopped, clocks [{cpus, governor, freq_khz, limit_khz, max_freq_khz}]}. */
json_t *doctor_machine(const json_t *sample);
/** doctor_is_well() - Return: all @findings are notes. */
bool doctor_is_well(const json_t *findings);

/* For rules. */

/** doctor_find() - adds a finding of the present rule. @model: NULL: of all. @share: NAN: unknown.
 * @advice: what to do. Control characters become '?'. */
void doctor_find(struct doctor *d, const char *model, double share, const char *advice,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* doctor_service.c, doctor_machine.c, doctor_cores.c, doctor_clients.c, doctor_plans.c */
/* clang-format off */
#define DOCTOR_RULES(X)                                                                            \
    X("failed-model", FAILURE, failed_model) X("no-model", FAILURE, no_model)                      \
    X("stuck", FAILURE, stuck) X("no-sidecar", LOSS, no_sidecar)                                   \
    X("starting", NOTE, starting) X("adapting", NOTE, adapting) X("idle", NOTE, idle)              \
    X("governor", LOSS, governor) X("frequency-limit", LOSS, frequency_limit)                      \
    X("heat", LOSS, heat) X("quota", LOSS, quota) X("memory", LOSS, memory)                        \
    X("shared-cores", LOSS, shared_cores) X("contention", LOSS, contention)                        \
    X("slow-stage", LOSS, slow_stage) X("crowded-plan", LOSS, crowded_plan)                        \
    X("client-waits", LOSS, client_waits) X("refused", LOSS, refused)                              \
    X("deadlines", LOSS, deadlines) X("dropped", NOTE, dropped) X("pictures", LOSS, pictures)      \
    X("better-plan", LOSS, better_plan) X("guessed-costs", NOTE, guessed_costs)                    \
    X("heavy-units", NOTE, heavy_units)
/* clang-format on */
#define DOCTOR_DECLARE(name, severity, function) void doctor_##function(struct doctor *d);
DOCTOR_RULES(DOCTOR_DECLARE)
#undef DOCTOR_DECLARE
