/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl history: what changed plans, and which plans were tried. */
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/common/pipectl.h"

struct args {
    const char *model;
    double limit; /* 0: not given */
    bool trials;
};

static int take_args(int argc, char **argv, struct args *ret)
{
    int c, rc = CTL_DONE;

    *ret = (struct args){0};
    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        if (c == 'm') {
            ret->model = optarg;
        } else if (c == 't') {
            ret->trials = true;
        } else if (!ctl_number(optarg, 1, 1e6, &ret->limit)) {
            return ctl_usage(argv[0], "--limit needs a number from 1 to 1000000, not '%s'", optarg);
        }
    }
    return rc ? rc : ctl_no_more(argc, argv);
}

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
        char ms[32], frames[32];

        if (json_is_true(json_object_get(trial, "failed"))) {
            ctl_table_note(t, 4, "- failed: %s", ctl_text(trial, "plan"));
            continue;
        }
        ctl_table_note(t, 4, "%s %s ms, %s frames: %s%s",
                       json_is_true(json_object_get(trial, "kept")) ? "*" : "-",
                       ctl_known(trial, "bottleneck_ms", "%.3f", ms, sizeof(ms)),
                       ctl_any(trial, "frames", frames, sizeof(frames)), ctl_text(trial, "plan"),
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
        char id[32], at[16], before[32], after[32], gain[32], trials_text[32];
        size_t tried = json_array_size(json_object_get(e, "trials"));
        const char *detail = json_string_value(json_object_get(e, "detail"));

        short_time(e, at);
        if (json_is_integer(json_object_get(e, "trial_count"))) { /* "trials" may lack some */
            tried = (size_t)json_integer_value(json_object_get(e, "trial_count"));
        }
        snprintf(trials_text, sizeof(trials_text), "%zu", tried);
        ctl_table_add(&t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", ctl_any(e, "id", id, sizeof(id)), at,
                      ctl_text(e, "model"), ctl_text(e, "cause"), trials_text,
                      ctl_known(e, "fps_before", "%.1f", before, sizeof(before)),
                      ctl_known(e, "fps_after", "%.1f", after, sizeof(after)),
                      ctl_gain(e, gain, sizeof(gain)));
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

/* An empty list means that nothing happened, or that no such model exists: Status tells. */
static int check_model(const struct ctl *ctl, const char *model)
{
    json_t *reply;
    int rc = ctl_call(ctl, "Status", ctl_model_parameter(model), &reply);

    if (rc == CTL_DONE) {
        json_decref(reply);
    }
    return rc;
}

int ctl_history(const struct ctl *ctl, int argc, char **argv)
{
    json_t *parameters, *reply, *events;
    struct args a;
    int rc = take_args(argc, argv, &a);

    if (rc) {
        return rc;
    }
    parameters = ctl_model_parameter(a.model);
    if (a.limit > 0) {
        json_object_set_new(parameters, "limit", json_integer((json_int_t)a.limit));
    }
    rc = ctl_call(ctl, "History", parameters, &reply);
    if (rc) {
        return rc;
    }
    events = json_object_get(reply, "events");
    if (json_array_size(events) == 0 && a.model) {
        rc = check_model(ctl, a.model);
    }
    if (rc == CTL_DONE && ctl->json) {
        ctl_print_json(events);
    } else if (rc == CTL_DONE) {
        print_history(events, a.trials);
    }
    json_decref(reply);
    return rc;
}
