/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: what is not served, or not as meant; and why figures may say little. */
#include <math.h>
#include <string.h>

#include "ipc/pipectl/doctor_facts.h"
#include "ipc/pipectl/output.h"

#define STARTING_S 10
#define STUCK "a stage makes no progress" /* one of the daemon's warnings */

void doctor_failed_model(struct doctor *d)
{
    const json_t *m;
    size_t i;

    json_array_foreach(json_object_get(d->after, "failed_models"), i, m)
    {
        doctor_find(d, ctl_text(m, "name"), 1,
                    "Mend the file, then pipectl reload; or take the model out of the "
                    "configuration. pipectl models inspect FILE lists all reasons.",
                    "The model could not be loaded: %s.", ctl_text(m, "error"));
    }
}

void doctor_no_model(struct doctor *d)
{
    const json_t *models = json_object_get(d->after, "models");

    if (json_is_array(models) && json_array_size(models) == 0) {
        doctor_find(d, NULL, 1,
                    "Load one: pipectl models load NAME FILE --save, or the key models.",
                    "No model is loaded: every frame is refused.");
    }
}

static void warnings(struct doctor *d, bool stuck)
{
    const json_t *m, *w;
    size_t i, k;

    DOCTOR_EACH_MODEL(d, i, m)
    {
        json_array_foreach(json_object_get(m, "warnings"), k, w)
        {
            const char *text = json_string_value(w);

            if (!text || (strcmp(text, STUCK) == 0) != stuck) {
                continue;
            }
            doctor_find(d, ctl_text(m, "name"), stuck ? 1 : NAN,
                        stuck
                            ? "Restart the service (systemctl restart piped; clients of libpiped "
                              "lose nothing), and keep the log: it is a fault."
                            : "Set a plan of no more cores than there are, or give planning back: "
                              "pipectl plan auto.",
                        "The plan %s: %s.", ctl_text(m, "plan"), text);
        }
    }
}

void doctor_stuck(struct doctor *d)
{
    warnings(d, true);
}

void doctor_crowded_plan(struct doctor *d)
{
    warnings(d, false);
}

void doctor_no_sidecar(struct doctor *d)
{
    const json_t *m, *w;
    size_t i, k;

    json_array_foreach(d->models, i, m)
    {
        const json_t *status = doctor_model(d, m, "name");

        if (!status || (doctor_is_aside(d, status) &&
                        doctor_number(json_object_get(status, "frames"), "answered") == 0)) {
            continue; /* not the one that was asked for, or nobody has asked it anything */
        }
        json_array_foreach(json_object_get(m, "warnings"), k, w)
        {
            doctor_find(d, ctl_text(m, "name"), NAN,
                        "Check the draft before you trust it. Clients that send tensors are not "
                        "concerned.",
                        "Answers to pictures may be wrong: %s.",
                        json_string_value(w) ? json_string_value(w) : "-");
        }
    }
}

void doctor_starting(struct doctor *d)
{
    double uptime_s = doctor_number(d->after, "uptime_s");

    if (uptime_s < STARTING_S) {
        doctor_find(d, NULL, NAN, "Ask again in a while.",
                    "The daemon has run for %.0f s only: caches, clocks and costs settle.",
                    uptime_s);
    }
}

void doctor_adapting(struct doctor *d)
{
    const json_t *m;
    size_t i;

    DOCTOR_EACH_MODEL(d, i, m)
    {
        const char *state = ctl_text(json_object_get(m, "adapt"), "state");
        bool tuning = json_is_true(json_object_get(m, "tuning"));

        if (tuning || strcmp(state, "deciding") == 0 || strcmp(state, "verifying") == 0) {
            doctor_find(d, ctl_text(m, "name"), NAN,
                        "Ask again when it has ended; pipectl history tells what came of it.",
                        "Its plan is being changed (%s): the figures are of several plans.",
                        tuning ? "a search runs" : state);
        }
    }
}

void doctor_idle(struct doctor *d)
{
    const json_t *m;
    size_t i;

    DOCTOR_EACH_MODEL(d, i, m)
    {
        if (doctor_answered(d, m) > 0 || doctor_number(m, "in_flight") > 0) {
            return;
        }
    }
    if (d->seconds > 0 && i > 0) {
        doctor_find(d, NULL, NAN,
                    "Ask while clients send frames, or beside pipectl bench: without frames, what "
                    "makes them slow does not show.",
                    "No frame was answered in %.1f s.", d->seconds);
    }
}
