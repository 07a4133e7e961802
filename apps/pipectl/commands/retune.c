/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl retune: a search on live frames, what it tried, and how it ended. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apps/pipectl/common/call_progress.h"
#include "apps/pipectl/common/options.h"
#include "apps/pipectl/common/pipectl.h"
#include "base/cli/shown_print.h"

struct args {
    json_t *parameters; /* owned */
    bool cancel, no_wait, tuned;
};

static const struct ctl_setting settings[] = {
    {"algorithm", "algorithm", CTL_TEXT, 0, 0}, {"objective", "objective", CTL_TEXT, 0, 0},
    {"fps", "fps", CTL_REAL, 1e-3, 1e9},        {"latency", "latency_ms", CTL_REAL, 1e-3, 1e9},
    {"alpha", "alpha", CTL_WHOLE, 1, 1e5},      {"heuristic", "heuristic", CTL_WHOLE, 1, 6},
    {"encoding", "encoding", CTL_TEXT, 0, 0},   {"stages", "stages", CTL_WHOLE, 1, 16},
    {"trials", "trials", CTL_WHOLE, 1, 1e6},    {"seed", "seed", CTL_WHOLE, 0, 9007199254740992.0},
};

enum { OPTION_MODEL = 'm', OPTION_WAIT = 'w', OPTION_NO_WAIT = 'n', OPTION_CANCEL = 'c' };

static int take_args(int argc, char **argv, struct args *ret)
{
    const struct cli_option *row;
    int c, rc = CTL_DONE;

    while ((c = ctl_option(argc, argv, &rc, &row)) != -1) {
        if (c == OPTION_MODEL) {
            rc = ctl_set_text(argv[0], "the model's name", ret->parameters, "model", optarg);
        } else if (c == OPTION_CANCEL) {
            ret->cancel = true;
        } else if (c != CTL_SETTING) {
            ret->no_wait = c == OPTION_NO_WAIT;
            ret->tuned = true;
        } else {
            rc = ctl_set(argv[0], settings, row->name, optarg, ret->parameters);
            ret->tuned = true;
        }
    }
    rc = rc ? rc : ctl_no_more(argc, argv);
    return rc == CTL_DONE && ret->cancel && ret->tuned
               ? ctl_usage(argv[0], "--cancel takes no option but --model")
               : rc;
}

/* ---- an event in words ---- */

const char *ctl_gain(const json_t *event, char *ret, size_t bytes)
{
    double before = ctl_real(event, "fps_before"), after = ctl_real(event, "fps_after");

    if (before > 0 && after > 0) {
        snprintf(ret, bytes, "%+.1f %%", 100 * (after / before - 1));
    } else {
        snprintf(ret, bytes, "-");
    }
    return ret;
}

const char *ctl_trial_note(const json_t *trial)
{
    const char *role = json_string_value(json_object_get(trial, "role"));

    return json_is_true(json_object_get(trial, "failed"))    ? " (failed)"
           : json_is_true(json_object_get(trial, "stopped")) ? " (stopped: worse)"
           : role && strcmp(role, "shapes") == 0             ? " (to learn costs)"
           : role && strcmp(role, "before") == 0             ? " (before)"
           : role && strcmp(role, "known") == 0              ? " (kept for this state)"
           : role && strcmp(role, "serving") == 0            ? " (serving)"
           : role && strcmp(role, "again") == 0              ? " (compared again)"
                                                             : "";
}

static double rank(const json_t *trial)
{
    double ms = ctl_real(trial, "bottleneck_ms");

    return ms > 0 && !json_is_true(json_object_get(trial, "failed")) ? ms : 1e300;
}

/* Counts the trials that were better; of equal ones, the earlier is better. */
static size_t place_of(const json_t *trials, size_t index)
{
    double own = rank(json_array_get(trials, index));
    size_t better = 0;

    for (size_t i = 0; i < json_array_size(trials); i++) {
        double other = rank(json_array_get(trials, i));

        better += other < own || (other == own && i < index);
    }
    return better;
}

/* Prints a table of trials; of more than @most, the best and the kept one. */
static void print_trials(const json_t *event, size_t most)
{
    static const char *const headings[] = {"trial",  "predicted ms", "measured ms",
                                           "frames", "plan",         NULL};
    const json_t *trials = json_object_get(event, "trials");
    struct ctl_table t;
    size_t i, number = 0;
    json_t *trial;

    ctl_table_init(&t, headings, "rrrrw");
    t.indent = 2;
    json_array_foreach(trials, i, trial)
    {
        const char *role = json_string_value(json_object_get(trial, "role"));
        bool kept = json_is_true(json_object_get(trial, "kept"));
        bool searched = !role || strcmp(role, "search") == 0;
        char predicted[32], ms[32], frames[32], name[32] = "-";

        number += searched;
        if (searched) {
            snprintf(name, sizeof(name), "%zu", number);
        }
        if (!kept && place_of(trials, i) >= most) {
            continue;
        }
        ctl_table_add(&t, "%s%s\t%s\t%s\t%s\t%s%s", name, kept ? "*" : " ",
                      ctl_known(trial, "predicted_ms", "%.3f", predicted, sizeof(predicted)),
                      ctl_known(trial, "bottleneck_ms", "%.3f", ms, sizeof(ms)),
                      ctl_any(trial, "frames", frames, sizeof(frames)), ctl_text(trial, "plan"),
                      ctl_trial_note(trial));
    }
    ctl_table_print(&t);
    shown_printf("  * serves now; times are of the slowest stage%s\n",
                 json_array_size(trials) > most ? "; --json lists all trials" : "");
}

static void print_plan(const char *what, const json_t *event, const char *plan, const char *fps)
{
    char figure[64];

    shown_printf("  %-7s ", what);
    ctl_print_wrapped(ctl_text(event, plan), 10);
    if (json_is_number(json_object_get(event, fps))) {
        shown_printf("%10s%s frames/s", "", ctl_known(event, fps, "%.1f", figure, sizeof(figure)));
    }
}

static void print_event(const json_t *e)
{
    double gain = ctl_real(e, "predicted_gain");
    char text[64];

    shown_printf("%s: %s\n  ", ctl_text(e, "model"), ctl_text(e, "outcome"));
    ctl_print_wrapped(ctl_text(e, "detail"), 2);
    print_plan("before", e, "plan_before", "fps_before");
    printf("\n");
    print_plan("after", e, "plan_after", "fps_after");
    shown_printf(" (%s", ctl_gain(e, text, sizeof(text)));
    if (gain != 0) {
        printf(", %+.1f %% predicted", 100 * gain);
    }
    shown_printf(")\n  took %.1f s; %.0f frames lost; %s frames/s meanwhile\n\n",
                 ctl_real(e, "duration_ms") / 1000, ctl_real(e, "lost"),
                 ctl_known(e, "fps_during", "%.1f", text, sizeof(text)));
    print_trials(e, 20);
}

/* ---- waiting ---- */

/* Uses a connection of its own: on the waiting one, the answer would come after the search. */
static int cancel(const struct ctl *ctl, const json_t *model, bool *ret)
{
    json_t *parameters = json_object(), *reply;
    int rc;

    if (model) {
        json_object_set(parameters, "model", (json_t *)(uintptr_t)model);
    }
    rc = ctl_call(ctl, "CancelRetune", parameters, &reply);
    if (rc == CTL_DONE) {
        *ret = json_is_true(json_object_get(reply, "cancelled"));
        json_decref(reply);
    }
    return rc;
}

/* Waits for the reply. Ctrl-C makes the daemon end the search; a second one ends pipectl. */
static int wait_reply(const struct ctl *ctl, struct ctl_control *control,
                      struct ctl_progress *progress, const json_t *model)
{
    struct pollfd fds[3] = {{.fd = ctl_control_fd(control), .events = POLLIN},
                            {.fd = -1, .events = POLLIN},
                            {.fd = ctl_progress_fd(progress), .events = POLLIN}};
    int rc = CTL_DONE;
    sigset_t set;
    bool ended;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0) {
        fds[1].fd = signalfd(-1, &set, SFD_CLOEXEC);
    }
    while (!fds[0].revents) {
        if (poll(fds, 3, -1) < 0 && errno != EINTR) {
            break;
        }
        if (fds[2].revents) {
            ctl_progress_show(progress);
            fds[2].fd = ctl_progress_fd(progress);
            fds[2].revents = 0;
        }
        if (fds[1].revents) {
            struct signalfd_siginfo info;

            if (read(fds[1].fd, &info, sizeof(info)) > 0) {
                ctl_say("ending the search; press Ctrl-C again to leave at once");
            }
            base_close_fd(&fds[1].fd);
            fds[1].revents = 0;
            sigprocmask(SIG_UNBLOCK, &set, NULL);
            rc = cancel(ctl, model, &ended);
            if (rc) {
                ctl_say("the search goes on; pipectl retune --cancel ends it");
                return rc;
            }
        }
    }
    base_close_fd(&fds[1].fd);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    return CTL_DONE;
}

static int run_retune(const struct ctl *ctl, const struct args *a, json_t **ret)
{
    struct ctl_progress *progress = a->no_wait ? NULL : ctl_progress_new(ctl, a->parameters);
    struct ctl_control *control = NULL;
    bool continues;
    int rc = ctl_control_open(ctl, &control);

    rc = rc ? rc : ctl_control_send(control, "io.piped.Retune", a->parameters, false);
    rc = rc ? rc : wait_reply(ctl, control, progress, json_object_get(a->parameters, "model"));
    ctl_progress_free(progress);
    rc = rc ? rc : ctl_control_receive(control, ret, &continues);
    ctl_control_free(control);
    return rc;
}

static int print_cancelled(const struct ctl *ctl, const struct args *a)
{
    bool cancelled;
    int rc = cancel(ctl, json_object_get(a->parameters, "model"), &cancelled);

    if (rc) {
        return rc;
    }
    if (ctl->json) {
        shown_printf("{\n  \"cancelled\": %s\n}\n", cancelled ? "true" : "false");
    } else {
        puts(cancelled ? "search cancelled; pipectl history says how it ended"
                       : "no search is running");
    }
    return CTL_DONE;
}

int ctl_retune(const struct ctl *ctl, int argc, char **argv)
{
    struct args a = {.parameters = json_object()};
    json_t *reply, *event;
    int rc = take_args(argc, argv, &a);

    if (rc == CTL_DONE && a.cancel) {
        rc = print_cancelled(ctl, &a);
        json_decref(a.parameters);
        return rc;
    }
    json_object_set_new(a.parameters, "wait", json_boolean(!a.no_wait));
    rc = rc ? rc : run_retune(ctl, &a, &reply);
    json_decref(a.parameters);
    if (rc) {
        return rc;
    }
    event = json_object_get(reply, "event");
    if (ctl->json) {
        ctl_print_json(event ? event : json_null());
    } else if (json_is_object(event)) {
        print_event(event);
    } else {
        puts("search started; pipectl history shows its result, pipectl retune --cancel ends it");
    }
    json_decref(reply);
    return CTL_DONE;
}
