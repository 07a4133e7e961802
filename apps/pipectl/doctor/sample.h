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
