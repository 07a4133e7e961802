/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: what goes on, again and again; --once: one picture of it as text. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/pipectl/top/live.h"
#include "apps/pipectl/top/terminal.h"
#include "apps/pipectl/top/view.h"
#include "apps/show/fold_segments.h"
#include "base/cli/cli_print.h"

#define ONCE_ROWS 2000u
#define ONCE_EVENTS 5

static int take_args(int argc, char **argv, struct top_options *ret)
{
    int c, rc = CTL_DONE;

    *ret = (struct top_options){.interval_s = 1};
    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        if (c == 'm') {
            ret->model = optarg;
        } else if (c == 'o') {
            ret->once = true;
        } else if (!ctl_number(optarg, 0.1, 3600, &ret->interval_s)) {
            return ctl_usage(argv[0], "--interval needs seconds from 0.1 to 3600, not '%s'",
                             optarg);
        }
    }
    return rc ? rc : ctl_no_more(argc, argv);
}

static int take_status(const struct ctl *ctl, const char *model, struct top *top)
{
    json_t *reply;
    int rc = ctl_call(ctl, "Status", ctl_model_parameter(model), &reply);

    if (rc == CTL_DONE) {
        if (!ctl->json) {
            shw_fold_segments(json_object_get(reply, "status"));
        }
        top_take(top, json_object_get(reply, "status"), base_now_ns());
        json_decref(reply);
    }
    return rc;
}

static json_t *known(double value)
{
    return value == value ? json_real(value) : json_null();
}

static void print_json(const struct top *top, const json_t *events)
{
    static const char *const names[TOP_COUNTERS] = {
        [TOP_ADMITTED] = "admitted",       [TOP_ANSWERED] = "answered",
        [TOP_DROPPED] = "dropped",         [TOP_FAILED] = "failed",
        [TOP_ROUTE_SENT] = "sent",         [TOP_ROUTE_RESENT] = "resent",
        [TOP_ROUTE_RETURNED] = "returned", [TOP_ROUTE_HERE] = "here",
    };
    json_t *rates = json_object(), *all;

    for (size_t i = 0; i < top->model_count; i++) {
        json_t *of = json_object();

        for (size_t k = 0; k < TOP_COUNTERS; k++) {
            json_object_set_new(of, names[k], known(top->models[i].rate[k]));
        }
        json_object_set_new(rates, top->models[i].name, of);
    }
    all = json_pack("{s:O, s:o, s:O}", "status", top->status, "rates", rates, "events", events);
    ctl_print_json(all);
    json_decref(all);
}

static size_t columns_wanted(void)
{
    const char *text = getenv("COLUMNS");
    double columns = CLI_COLUMNS;

    if (text) {
        ctl_number(text, 20, 1000, &columns);
    }
    return (size_t)columns;
}

static int print_text(const struct top *top, const struct top_options *o, const json_t *events,
                      const json_t *explanation)
{
    struct top_view view = {.top = top,
                            .events = events,
                            .explanation = explanation,
                            .model = o->model,
                            .all = true,
                            .now_ns = top->at_ns};
    struct top_screen screen;

    if (top_screen_init(&screen, ONCE_ROWS, columns_wanted(), o->ascii) != 0) {
        ctl_say("out of memory");
        return CTL_FAILED;
    }
    top_draw(&view, &screen);
    top_screen_print(&screen, stdout);
    top_screen_deinit(&screen);
    return CTL_DONE;
}

/* What the planner expects of the first model that has a route. Return: owned, or NULL. */
static json_t *explanation_of(const struct ctl *ctl, const struct top *top)
{
    json_t *model, *reply, *explanation = NULL;
    size_t i;

    json_array_foreach(json_object_get(top->status, "models"), i, model)
    {
        if (ctl_value(json_object_get(model, "route"), "number") > 0) {
            if (ctl_call(ctl, "PlanExplain", ctl_model_parameter(ctl_text(model, "name")),
                         &reply) == CTL_DONE) {
                explanation = json_incref(json_object_get(reply, "explanation"));
                json_decref(reply);
            }
            break;
        }
    }
    return explanation;
}

static int once(const struct ctl *ctl, const struct top_options *o)
{
    struct timespec pause = {(time_t)o->interval_s,
                             (long)((o->interval_s - (double)(time_t)o->interval_s) * 1e9)};
    json_t *parameters = ctl_model_parameter(o->model), *reply = NULL, *explanation = NULL;
    struct top top = TOP_NULL;
    int rc = take_status(ctl, o->model, &top);

    if (rc == CTL_DONE) {
        nanosleep(&pause, NULL);
        rc = take_status(ctl, o->model, &top);
    }
    if (rc == CTL_DONE) {
        explanation = explanation_of(ctl, &top);
        json_object_set_new(parameters, "limit", json_integer(ONCE_EVENTS));
        rc = ctl_call(ctl, "History", json_incref(parameters), &reply);
    }
    if (rc == CTL_DONE && ctl->json) {
        print_json(&top, json_object_get(reply, "events"));
    } else if (rc == CTL_DONE) {
        rc = print_text(&top, o, json_object_get(reply, "events"), explanation);
    }
    json_decref(parameters);
    json_decref(explanation);
    json_decref(reply);
    top_deinit(&top);
    return rc;
}

int ctl_top(const struct ctl *ctl, int argc, char **argv)
{
    struct top_options o;
    int rc = take_args(argc, argv, &o);

    if (rc) {
        return rc;
    }
    setlocale(LC_CTYPE, "");
    o.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    if (o.once || ctl->json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
        return once(ctl, &o);
    }
    if (top_terminal_there()) {
        ctl_say("%s; use --once", top_terminal_there());
        return CTL_FAILED;
    }
    return top_live(ctl, &o);
}
