/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl history: what changed plans, and which plans were tried. */
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/common/pipectl.h"

/* "2026-03-01T10:20:30.123Z" as "03-01 10:20:30" */
static void short_time(const json_t *event, char ret[16])
{
    const char *at = ctl_text(event, "at");

    if (strlen(at) >= 19 && at[10] == 'T') {
        snprintf(ret, 16, "%.5s %.8s", at + 5, at + 11);
    } else {
        snprintf(ret, 16, "-");
    }
}

static void add_trials(struct ctl_table *t, const json_t *event)
{
    size_t i;
    json_t *trial;

    json_array_foreach(json_object_get(event, "trials"), i, trial)
    {
        if (ctl_is(trial, "failed")) {
            ctl_table_note(t, 4, "- failed: %s", ctl_text(trial, "plan"));
            continue;
        }
        ctl_table_note(t, 4, "%s %s ms, %s frames: %s%s", ctl_is(trial, "kept") ? "*" : "-",
                       ctl_known(trial, "bottleneck_ms", "%.3f").text,
                       ctl_any(trial, "frames").text, ctl_text(trial, "plan"),
                       ctl_trial_note(trial));
    }
}

static void print_history(const json_t *events, bool trials)
{
    static const char *const headings[] = {"id",     "when, UTC", "model", "cause", "trials",
                                           "before", "after",     "gain",  NULL};
    struct ctl_table t;
    json_t *e;
    size_t i;

    ctl_table_init(&t, headings, "rlllrrrr");
    json_array_foreach(events, i, e)
    {
        char at[16], trials_text[32];
        size_t tried = json_array_size(json_object_get(e, "trials"));
        const char *detail = json_string_value(json_object_get(e, "detail"));

        short_time(e, at);
        if (json_is_integer(json_object_get(e, "trial_count"))) { /* "trials" may lack some */
            tried = (size_t)json_integer_value(json_object_get(e, "trial_count"));
        }
        snprintf(trials_text, sizeof(trials_text), "%zu", tried);
        ctl_table_add(&t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", ctl_any(e, "id").text, at,
                      ctl_text(e, "model"), ctl_text(e, "cause"), trials_text,
                      ctl_known(e, "fps_before", "%.1f").text,
                      ctl_known(e, "fps_after", "%.1f").text, ctl_gain(e).text);
        ctl_table_note(&t, 4, "%s by %s: %s", ctl_text(e, "outcome"), ctl_text(e, "algorithm"),
                       ctl_text(e, "plan_after"));
        if (trials && detail && *detail) {
            ctl_table_note(&t, 4, "%s", detail);
        }
        if (trials) {
            add_trials(&t, e);
        }
    }
    ctl_table_print(&t);
}

int ctl_history(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object(), *reply = NULL, *status = NULL;
    const char *model = NULL;
    bool trials = false;
    const struct ctl_take options[] = {{"model", CTL_TEXT, &model, "model"},
                                       {"limit", CTL_CUT, NULL, "limit", 1, 1e6},
                                       {"trials", CTL_FLAG, &trials},
                                       {0}};
    int rc = ctl_take_all(argc, argv, options, parameters);
    const json_t *events;

    rc = rc ? rc : ctl_call(ctl, "History", base_take(parameters), &reply);
    events = json_object_get(reply, "events");
    if (rc == CTL_DONE && json_array_size(events) == 0 && model) {
        /* nothing happened, or no such model exists: Status tells */
        rc = ctl_call(ctl, "Status", ctl_model_parameter(model), &status);
    }
    if (rc == CTL_DONE && ctl->json) {
        ctl_print_json(events);
    } else if (rc == CTL_DONE) {
        print_history(events, trials);
    }
    return rc;
}
