/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/doctor/rule.h - what the rules of doctor.h are given, and how they add findings
 *
 * DOCTOR_RULES at the end is the table of all rules: X(NAME, SEVERITY, FUNCTION). To add one: a
 * row, its function, a heading in docs/slow.md. Pure.
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
    double seconds; /* between the answers, by the daemon's clock; 0: unknown */
    bool restarted; /* meanwhile; in a container the new process may have the old one's number */
    json_t *findings;
    const struct doctor_rule *rule; /* that judges now */
};

/** doctor_severity_name() - "failure", "loss", "note". */
const char *doctor_severity_name(enum doctor_severity s);

/* For rules. */

/** doctor_find() - adds a finding of the present rule. @model: NULL: of all. @share: NAN: unknown;
 * 0: nothing can be won, and nothing is added.
 * @advice: what to do. Control characters become '?'. */
void doctor_find(struct doctor *d, const char *model, double share, const char *advice,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* doctor_service.c, doctor_machine.c, doctor_cores.c, doctor_clients.c, doctor_loop.c,
 * doctor_plans.c */
/* clang-format off */
#define DOCTOR_RULES(X)                                                                            \
    X("failed-model", FAILURE, failed_model) X("no-model", FAILURE, no_model)                      \
    X("stuck", FAILURE, stuck) X("restarted", LOSS, restarted) X("declared", LOSS, declared)       \
    X("no-sidecar", LOSS, no_sidecar) X("sidecar", LOSS, sidecar)                                  \
    X("starting", NOTE, starting) X("adapting", NOTE, adapting) X("idle", NOTE, idle)              \
    X("governor", LOSS, governor) X("frequency-limit", LOSS, frequency_limit)                      \
    X("heat", LOSS, heat) X("quota", LOSS, quota) X("memory", LOSS, memory)                        \
    X("shared-cores", LOSS, shared_cores) X("contention", LOSS, contention)                        \
    X("slow-stage", LOSS, slow_stage) X("crowded-plan", LOSS, crowded_plan)                        \
    X("unpinned", LOSS, unpinned)                                                                  \
    X("client-waits", LOSS, client_waits) X("slow-client", LOSS, slow_client)                      \
    X("loop-user", NOTE, loop_user) X("refused", LOSS, refused)                                    \
    X("deadlines", LOSS, deadlines) X("dropped", NOTE, dropped) X("pictures", LOSS, pictures)      \
    X("better-plan", LOSS, better_plan) X("guessed-costs", NOTE, guessed_costs)                    \
    X("heavy-units", NOTE, heavy_units)
/* clang-format on */
#define DOCTOR_DECLARE(name, severity, function) void doctor_##function(struct doctor *d);
DOCTOR_RULES(DOCTOR_DECLARE)
#undef DOCTOR_DECLARE
