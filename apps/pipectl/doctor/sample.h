/* SPDX-License-Identifier: Apache-2.0 */
/** apps/pipectl/doctor/sample.h - what pipectl doctor asks the daemon and the machine */
#pragma once

#include "apps/pipectl/common/pipectl.h"

/* How the daemon is watched. */
struct doctor_watch {
    const char *model; /* only this one; NULL: all */
    double seconds;    /* between the two answers of a sample */
    double every_s;    /* between others meanwhile; 0: there are none */
    /* called with each answer of Status; NULL: by nobody */
    void (*see)(void *context, const json_t *status);
    void *context;
};

/** doctor_sample() - asks twice. @ret: a sample as in doctor.h, the caller's reference. Return: an
 * exit code; the reason was printed. */
int doctor_sample(const struct ctl *ctl, const struct doctor_watch *w, json_t **ret);

/** doctor_programs() - CPU time of every process so far, in seconds, and the CPUs' own. Return:
 * new: {processes: {PID: {name, cpu_s}}, steal_s, all_s}. */
json_t *doctor_programs(void);
/** doctor_programs_between() - Return: new: the programs that took most between two answers of
 * doctor_programs(), without this process and @daemon_pid: [{pid, name, cores}]. */
json_t *doctor_programs_between(const json_t *before, const json_t *after, double seconds,
                                json_int_t daemon_pid);
