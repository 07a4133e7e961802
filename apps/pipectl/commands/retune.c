/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl retune: a search on live frames, what it tried, and how it ended; pipectl history: all
 * that changed plans. */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "apps/pipectl/common/pipectl.h"

/* ---- an event in words ---- */

/* The gain in frames/s as "+12.3 %"; "-" if unknown. */
static struct ctl_word gain_of(const json_t *event)
{
    double before = ctl_real(event, "fps_before"), after = ctl_real(event, "fps_after");

    return ctl_format(before > 0 && after > 0 ? 100 * (after / before - 1) : NAN, "%+.1f %%");
}

/* Return: " (stopped: worse)" and the like, or "". */
static const char *trial_note(const json_t *trial)
{
    static const char *const notes[][2] = {{"shapes", " (to learn costs)"},
                                           {"before", " (before)"},
                                           {"known", " (kept for this state)"},
                                           {"serving", " (serving)"},
                                           {"again", " (compared again)"}};
    const char *note = ctl_is(trial, "failed")    ? " (failed)"
                       : ctl_is(trial, "stopped") ? " (stopped: worse)"
                                                  : "";

    for (size_t i = 0; !*note && i < base_array_count(notes); i++) {
        note = strcmp(ctl_text(trial, "role"), notes[i][0]) == 0 ? notes[i][1] : note;
    }
    return note;
}

static double rank(const json_t *trial)
{
    double ms = ctl_real(trial, "bottleneck_ms");

    return ms > 0 && !ctl_is(trial, "failed") ? ms : 1e300;
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
    const json_t *trials = json_object_get(event, "trials");
    struct cli_table t = {.align = "rrrrw", .indent = 2};
    size_t number = 0;

    cli_table_add(&t, "trial\tpredicted ms\tmeasured ms\tframes\tplan");
    json_text_each(trials, i, trial) {
        const char *role = json_string_value(json_object_get(trial, "role"));
        bool kept = ctl_is(trial, "kept");
        bool searched = !role || strcmp(role, "search") == 0;
        char name[32] = "-";

        number += searched;
        if (searched) {
            snprintf(name, sizeof(name), "%zu", number);
        }
        if (!kept && place_of(trials, i) >= most) {
            continue;
        }
        cli_table_add(&t, "%s%s\t%s\t%s\t%s\t%s%s", name, kept ? "*" : " ",
                      ctl_known(trial, "predicted_ms", "%.3f").text,
                      ctl_known(trial, "bottleneck_ms", "%.3f").text, ctl_any(trial, "frames").text,
                      ctl_text(trial, "plan"), trial_note(trial));
    }
    cli_table_print(&t);
    shown_printf("  * serves now; times are of the slowest stage%s\n",
                 json_array_size(trials) > most ? "; --json lists all trials" : "");
}

static void print_plan(const char *what, const json_t *event, const char *plan, const char *fps)
{
    shown_printf("  %-7s ", what);
    ctl_print_wrapped(ctl_text(event, plan), 10);
    if (ctl_has(event, fps)) {
        shown_printf("%10s%s frames/s", "", ctl_known(event, fps, "%.1f").text);
    }
}

static void print_event(const json_t *e)
{
    double gain = ctl_real(e, "predicted_gain");

    shown_printf("%s: %s\n  ", ctl_text(e, "model"), ctl_text(e, "outcome"));
    ctl_print_wrapped(ctl_text(e, "detail"), 2);
    print_plan("before", e, "plan_before", "fps_before");
    printf("\n");
    print_plan("after", e, "plan_after", "fps_after");
    shown_printf(" (%s", gain_of(e).text);
    if (gain != 0) {
        printf(", %+.1f %% predicted", 100 * gain);
    }
    shown_printf(")\n  took %.1f s; %.0f frames lost; %s frames/s meanwhile\n\n",
                 ctl_real(e, "duration_ms") / 1000, ctl_real(e, "lost"),
                 ctl_known(e, "fps_during", "%.1f").text);
    print_trials(e, 20);
}

/* ---- waiting ---- */

/* Uses a connection of its own: on the waiting one, the answer would come after the search. */
static int cancel(const struct ctl *ctl, const json_t *parameters, bool *ret)
{
    json_auto_t *model = json_pack("{s:O*}", "model", json_object_get(parameters, "model"));
    json_auto_t *reply = NULL;
    int rc = ctl_call(ctl, "CancelRetune", json_incref(model), &reply);

    *ret = ctl_is(reply, "cancelled");
    return rc;
}

/* Waits for the reply. Ctrl-C makes the daemon end the search; a second one ends pipectl.
 * @interrupt: SIGINT, which is blocked, so that none is missed after the call; it is not behind
 * this. */
static int wait_reply(const struct ctl *ctl, struct ctl_control *control,
                      struct ctl_progress *progress, const json_t *parameters,
                      const sigset_t *interrupt)
{
    struct pollfd fds[3] = {{.fd = ctl_control_fd(control), .events = POLLIN},
                            {.fd = signalfd(-1, interrupt, SFD_CLOEXEC), .events = POLLIN},
                            {.fd = ctl_progress_fd(progress), .events = POLLIN}};
    int rc = CTL_DONE;
    bool ended;

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
            sigprocmask(SIG_UNBLOCK, interrupt, NULL);
            rc = cancel(ctl, parameters, &ended);
            if (rc) {
                return ctl_refuse(rc, "the search goes on; pipectl retune --cancel ends it");
            }
        }
    }
    base_close_fd(&fds[1].fd);
    sigprocmask(SIG_UNBLOCK, interrupt, NULL);
    return CTL_DONE;
}

static int run_retune(const struct ctl *ctl, json_t *parameters, bool no_wait, json_t **ret)
{
    struct ctl_progress *progress = no_wait ? NULL : ctl_progress_new(ctl, parameters);
    struct ctl_control *control = NULL;
    bool continues;
    sigset_t interrupt;
    int rc = ctl_control_open(ctl, &control);

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    if (rc == CTL_DONE) {
        sigprocmask(SIG_BLOCK, &interrupt, NULL);
        rc = ctl_control_send(control, "io.piped.Retune", parameters, false, NULL, 0);
    }
    rc = rc ? rc : wait_reply(ctl, control, progress, parameters, &interrupt);
    ctl_progress_free(progress);
    rc = rc ? rc : ctl_control_receive(control, ret, &continues);
    ctl_control_free(control);
    return rc;
}

static int print_cancelled(const struct ctl *ctl, const json_t *parameters)
{
    bool cancelled;
    int rc = cancel(ctl, parameters, &cancelled);

    if (rc == CTL_DONE) {
        json_auto_t *v = json_pack("{s:b}", "cancelled", cancelled);

        ctl_tell(ctl, v, "%s\n",
                 cancelled ? "search cancelled; pipectl history says how it ended"
                           : "no search is running");
    }
    return rc;
}

int ctl_retune(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object(), *reply = NULL;
    struct ctl_options o = {0};
    int rc = ctl_take_all(argc, argv, &o, parameters);
    bool no_wait;
    size_t models = json_object_get(parameters, "model") ? 1 : 0;
    json_t *event;

    if (rc == CTL_DONE && o.cancel) {
        return json_object_size(parameters) > models
                   ? ctl_usage(argv[0], "--cancel takes no option but --model")
                   : print_cancelled(ctl, parameters);
    }
    no_wait = json_is_false(json_object_get(parameters, "wait"));
    json_object_set_new(parameters, "wait", json_boolean(!no_wait));
    rc = rc ? rc : run_retune(ctl, parameters, no_wait, &reply);
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
    return CTL_DONE;
}

/* ---- history: what changed plans, and which plans were tried ---- */

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

static void add_trials(struct cli_table *t, const json_t *event)
{
    json_text_each(json_object_get(event, "trials"), i, trial) {
        if (ctl_is(trial, "failed")) {
            cli_table_note(t, 4, "- failed: %s", ctl_text(trial, "plan"));
            continue;
        }
        cli_table_note(t, 4, "%s %s ms, %s frames: %s%s", ctl_is(trial, "kept") ? "*" : "-",
                       ctl_known(trial, "bottleneck_ms", "%.3f").text,
                       ctl_any(trial, "frames").text, ctl_text(trial, "plan"), trial_note(trial));
    }
}

static void print_history(const json_t *events, bool trials)
{
    struct cli_table t = {.align = "rlllrrrr"};

    cli_table_add(&t, "id\twhen, UTC\tmodel\tcause\ttrials\tbefore\tafter\tgain");
    json_text_each(events, i, e) {
        char at[16], trials_text[32];
        size_t tried = json_array_size(json_object_get(e, "trials"));
        const char *detail = json_string_value(json_object_get(e, "detail"));

        short_time(e, at);
        if (json_is_integer(json_object_get(e, "trial_count"))) { /* "trials" may lack some */
            tried = (size_t)json_integer_value(json_object_get(e, "trial_count"));
        }
        snprintf(trials_text, sizeof(trials_text), "%zu", tried);
        cli_table_add(&t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", ctl_any(e, "id").text, at,
                      ctl_text(e, "model"), ctl_text(e, "cause"), trials_text,
                      ctl_known(e, "fps_before", "%.1f").text,
                      ctl_known(e, "fps_after", "%.1f").text, gain_of(e).text);
        cli_table_note(&t, 4, "%s by %s: %s", ctl_text(e, "outcome"), ctl_text(e, "algorithm"),
                       ctl_text(e, "plan_after"));
        if (trials && detail && *detail) {
            cli_table_note(&t, 4, "%s", detail);
        }
        if (trials) {
            add_trials(&t, e);
        }
    }
    cli_table_print(&t);
}

int ctl_history(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object(), *events = NULL, *status = NULL;
    struct ctl_options o = {0};
    int rc = ctl_take_all(argc, argv, &o, parameters);

    rc = rc ? rc : ctl_ask(ctl, "History", json_incref(parameters), "events", &events);
    if (rc == CTL_DONE && json_array_size(events) == 0 && json_object_get(parameters, "model")) {
        /* nothing happened, or no such model exists: Status tells */
        json_object_del(parameters, "limit");
        rc = ctl_call(ctl, "Status", base_take(parameters), &status);
    }
    if (rc == CTL_DONE && ctl->json) {
        ctl_print_json(events);
    } else if (rc == CTL_DONE) {
        print_history(events, o.trials);
    }
    return rc;
}
