/* SPDX-License-Identifier: Apache-2.0 */
/**
 * facts.h - what the rules of doctor.h are given, what they ask the two answers of Status, and how
 * they add findings
 *
 * DOCTOR_RULES at the end is the table of all rules: X(NAME, SEVERITY, FUNCTION). To add one: a
 * row, its function, a heading in docs/slow.md. Pure.
 */
#pragma once

#include "apps/pipectl/common/output.h"

#define DOCTOR_TEXT 768u

/* What a finding means, worst first. */
#define DOCTOR_FAILURE "failure" /* something is not served */
#define DOCTOR_LOSS "loss"       /* time, frames or their meaning are lost */
#define DOCTOR_NOTE "note"       /* worth knowing; it does not make the exit code 1 */

struct doctor;
struct doctor_rule {
    const char *name; /* as in the output, and a heading in docs/slow.md */
    const char *severity;
    void (*judge)(struct doctor *d);
};

struct doctor {
    const json_t *sample; /* borrowed; and from it, NULL if missing: */
    const json_t *before, *after, *models, *programs;
    double seconds; /* between the answers, by the daemon's clock; 0: unknown */
    bool restarted; /* meanwhile; in a container the new process may have the old one's number */
    json_t *findings;
    const struct doctor_rule *rule; /* that judges now */
};

/** doctor_find() - adds a finding of the present rule. @model: NULL: of all. @share: NAN: unknown;
 * 0: nothing can be won, and nothing is added.
 * @advice: what to do. Control characters become '?'. */
void doctor_find(struct doctor *d, const char *model, double share, const char *advice,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* ---- facts ---- */

#define DOCTOR_EACH_MODEL(d, i, m) json_text_each(json_object_get((d)->after, "models"), i, m)

/** doctor_model() - Return: the model of the newest status that @from names by @key; NULL: none. */
const json_t *doctor_model(const struct doctor *d, const json_t *from, const char *key);
/** doctor_more() - Return: by how much a number has grown; NAN: unknown, or it began again. */
double doctor_more(const json_t *before, const json_t *after, const char *key);
/** doctor_loaded_again() - Return: the model was replaced meanwhile by one of its name. */
bool doctor_loaded_again(const struct doctor *d, const json_t *model);
/** doctor_answered() - Return: frames of the model that were answered meanwhile, or since it was
 * loaded; 0: none, or unknown. */
double doctor_answered(const struct doctor *d, const json_t *model);

/* A stage over the sample. Unknown figures are NAN. */
struct doctor_stage {
    const json_t *status;
    double busy;     /* share of the time in which its teams held a frame */
    double off_core; /* share of that in which they lacked the core of a member */
    double waits;    /* share of the time in which they held a frame or waited for a core with one,
                      * in which they waited; 0 if unknown */
    double cpu_ms;   /* that a frame took of a team with all its cores */
    double runs;     /* 1 - off_core; 1 if unknown. Less work wins no more than this */
    double service_ms, expected_ms; /* time for which a frame holds a team */
};
/** doctor_stage_of() - Return: the figures of the model's stage number @i. */
struct doctor_stage doctor_stage_of(const struct doctor *d, const json_t *model, size_t i);
/** doctor_busiest() - the stage of the model with the largest busy share. Return: there is one. */
bool doctor_busiest(const struct doctor *d, const json_t *model, struct doctor_stage *ret);
/** doctor_teams() - Return: the number of teams of the model's plan. */
double doctor_teams(const json_t *model);
/** doctor_load_of() - Return: the largest busy share of all stages on these cores; NAN: no stage
 * runs there. @cpus: numbers. */
double doctor_load_of(const struct doctor *d, const json_t *cpus);
/** doctor_has_cpu() - Return: whether the list of numbers has @cpu. */
bool doctor_has_cpu(const json_t *cpus, json_int_t cpu);
/** doctor_waited() - Return: share of the time in which a task of any program waited; NAN: unknown.
 * @key: of psi: cpu_some_total_us, memory_some_total_us. */
double doctor_waited(const struct doctor *d, const char *key);
/** doctor_throttled() - Return: share of the time for which the control group's quota stopped the
 * daemon; 0: none, or unknown. */
double doctor_throttled(const struct doctor *d);
/** doctor_pictures_share() - Return: share of the teams' time in which the model's pictures were
 * converted; 0: none, or unknown. */
double doctor_pictures_share(const struct doctor *d, const json_t *model);
/** doctor_pictures_busy() - Return: busy share of the model's busiest stage, with the conversion of
 * pictures beside it; NAN: unknown. */
double doctor_pictures_busy(const struct doctor *d, const json_t *model);
/** doctor_winnable() - Return: @share, but no more than the share of the time that could be won:
 * for which what it slows was @busy; 0: less than half a percent. NAN: unknown. */
double doctor_winnable(double share, double busy);
/** doctor_is_aside() - Return: the model answered nothing meanwhile, and is one of several: nobody
 * asks about it. */
bool doctor_is_aside(const struct doctor *d, const json_t *model);
/** doctor_contended() - Return: the share of doctor_stage.off_core that teams of other models
 * cost, which ran on the cores of the stage's teams. @ret_other: the name of the one that ran most,
 * borrowed. */
double doctor_contended(const struct doctor *d, const json_t *model, const struct doctor_stage *s,
                        const char **ret_other);

/* ---- all rules: clients.c, cores.c, machine.c, plans.c, service.c, wishes.c ---- */

/* clang-format off */
#define DOCTOR_RULES(X)                                                                            \
    X("failed-model", FAILURE, failed_model) X("no-model", FAILURE, no_model)                      \
    X("stuck", FAILURE, warned) X("restarted", LOSS, restarted) X("declared", LOSS, warned)       \
    X("no-sidecar", LOSS, warned) X("sidecar", LOSS, warned)                                  \
    X("starting", NOTE, starting) X("adapting", NOTE, adapting) X("idle", NOTE, idle)              \
    X("governor", LOSS, governor) X("frequency-limit", LOSS, frequency_limit)                      \
    X("heat", LOSS, heat) X("quota", LOSS, quota) X("memory", LOSS, memory)                        \
    X("shared-cores", LOSS, shared_cores) X("contention", LOSS, contention)                        \
    X("slow-stage", LOSS, slow_stage) X("crowded-plan", LOSS, warned)                        \
    X("unpinned", LOSS, warned)                                                                  \
    X("client-waits", LOSS, client_waits) X("slow-client", LOSS, slow_client)                      \
    X("loop-user", NOTE, loop_user) X("refused", LOSS, refused)                                    \
    X("wishes", LOSS, wishes) X("late", LOSS, late)                                                \
    X("deadlines", LOSS, deadlines) X("dropped", NOTE, dropped) X("pictures", LOSS, pictures)      \
    X("better-plan", LOSS, better_plan) X("guessed-costs", NOTE, guessed_costs)                    \
    X("heavy-units", NOTE, heavy_units)
/* clang-format on */
#define DOCTOR_DECLARE(name, severity, function) void doctor_##function(struct doctor *d);
DOCTOR_RULES(DOCTOR_DECLARE)
#undef DOCTOR_DECLARE
