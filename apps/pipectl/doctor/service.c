/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: what is not served, or not as meant; and why figures may say little. */
#include <math.h>

#include "apps/pipectl/doctor/facts.h"

#define STARTING_S 10

void doctor_failed_model(struct doctor *d)
{
    json_text_each(json_object_get(d->after, "failed_models"), i, m) {
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

/* Rules about warnings of the daemon. */
static const struct warning {
    const char *rule, *kind;
    double share;
    const char *lead; /* whom those of a file concern; NULL: it is one of a plan */
    const char *advice;
} warnings[] = {
    {"stuck", "stalled", 1, NULL,
     "Restart the service (systemctl restart piped; clients of libpiped lose nothing), and keep "
     "the log: it is a fault."},
    {"crowded-plan", "cores", NAN, NULL,
     "Set a plan of no more cores than there are, or give planning back: pipectl plan auto."},
    {"unpinned", "pinning", NAN, NULL,
     "Let the daemon use all cores of its plan (AllowedCPUs=, the cpuset of the container), or "
     "take those out of the key eps."},
    {"declared", "declared", NAN, "Clients that go by the file read tensors wrong",
     "Let clients take types and shapes from piped (pipectl models), or correct what the file "
     "declares."},
    {"no-sidecar", "pictures", NAN, "Answers to pictures may be wrong",
     "Check the draft before you trust it. Clients that send tensors are not concerned."},
    {"sidecar", "activation", NAN, "Decoded answers are wrong",
     "Correct the sidecar, then pipectl reload. Clients that decode the outputs by themselves are "
     "not concerned."},
    {"sidecar", "labels", NAN, "Names of classes may be wrong",
     "Give the sidecar one label for each class, then pipectl reload."},
};

/* Finds the warnings of a kind in @m, of Status or Models. */
static void find_warnings(struct doctor *d, const json_t *m, const struct warning *warning)
{
    json_text_each(json_object_get(m, "warnings"), i, w) {
        const char *is = json_string_value(json_array_get(json_object_get(m, "warning_kinds"), i));
        const char *text = json_is_string(w) ? json_string_value(w) : "-";

        if (!is || strcmp(is, warning->kind) != 0) {
            continue;
        }
        if (warning->lead) {
            doctor_find(d, ctl_text(m, "name"), warning->share, warning->advice, "%s: %s.",
                        warning->lead, text);
        } else {
            doctor_find(d, ctl_text(m, "name"), warning->share, warning->advice, "The plan %s: %s.",
                        ctl_text(m, "plan"), text);
        }
    }
}

void doctor_warned(struct doctor *d)
{
    for (const struct warning *w = warnings; w < warnings + base_array_count(warnings); w++) {
        if (strcmp(w->rule, d->rule->name) != 0) {
            continue;
        }
        json_text_each(w->lead ? d->models : json_object_get(d->after, "models"), i, m) {
            const json_t *status = doctor_model(d, m, "name");

            /* a file's are left out if it is not the one that was asked for, or nobody has asked it
             * anything */
            if (!w->lead || (status && !(doctor_is_aside(d, status) &&
                                         ctl_value(status, "frames.answered") == 0))) {
                find_warnings(d, m, w);
            }
        }
    }
}

void doctor_restarted(struct doctor *d)
{
    if (d->restarted) {
        doctor_find(d, NULL, NAN,
                    "Look why it ended (journalctl -u piped), then ask again: there are no rates "
                    "over a restart.",
                    "Another process serves than at first: the daemon ended while it was watched, "
                    "and was started again.");
    }
}

void doctor_starting(struct doctor *d)
{
    double uptime_s = ctl_value(d->after, "uptime_s");

    if (uptime_s < STARTING_S) {
        doctor_find(d, NULL, NAN, "Ask again in a while.",
                    "The daemon has run for %.0f s only: caches, clocks and costs settle.",
                    uptime_s);
    }
}

void doctor_adapting(struct doctor *d)
{
    DOCTOR_EACH_MODEL(d, i, m) {
        const char *state = ctl_text(m, "adapt.state");
        bool tuning = ctl_is(m, "tuning");

        if (tuning || strcmp(state, "deciding") == 0 || strcmp(state, "verifying") == 0) {
            doctor_find(d, ctl_text(m, "name"), NAN,
                        "Ask again when it has ended; pipectl history tells what came of it.",
                        "Its plan is being changed (%s): the figures are of several plans.",
                        tuning ? "a search runs" : state);
        }
        if (doctor_loaded_again(d, m)) {
            doctor_find(d, ctl_text(m, "name"), NAN,
                        "Ask again; pipectl history tells why it was replaced.",
                        "It was loaded again meanwhile: its figures began then.");
        }
    }
}

void doctor_idle(struct doctor *d)
{
    DOCTOR_EACH_MODEL(d, i, m) {
        if (doctor_answered(d, m) > 0 || ctl_value(m, "in_flight") > 0) {
            return;
        }
    }
    if (d->seconds > 0 && json_array_size(json_object_get(d->after, "models")) > 0) {
        doctor_find(d, NULL, NAN,
                    "Ask while clients send frames, or beside pipectl bench: without frames, what "
                    "makes them slow does not show.",
                    "No frame was answered in %.1f s.", d->seconds);
    }
}
