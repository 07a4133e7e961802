/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: what goes on, again and again; --once: one picture of it as text. */
#include <langinfo.h>
#include <locale.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/top/top.h"
#include "apps/show/fold_segments.h"

#define ONCE_ROWS 2000u
#define ONCE_EVENTS 5

static int take_status(const struct ctl *ctl, const char *model, struct top *top)
{
    json_auto_t *status = NULL;
    int rc = ctl_ask(ctl, "Status", ctl_model_parameter(model), "status", &status);

    if (rc == CTL_DONE && !ctl->json) {
        shw_fold_segments(status);
    }
    if (rc == CTL_DONE) {
        top_take(top, status, base_now_ns());
    }
    return rc;
}

static void print_json(const struct top *top, const json_t *events)
{
    json_t *rates = json_object();

    for (size_t i = 0; i < top->model_count; i++) {
        json_t *of = json_object();

        for (size_t k = 0; k < TOP_COUNTERS; k++) {
            json_object_set_new(of, top_counters[k].key, json_text_number(top->models[i].rate[k]));
        }
        json_object_set_new(rates, top->models[i].name, of);
    }
    ctl_print_new(
        json_pack("{s:O, s:o, s:O}", "status", top->status, "rates", rates, "events", events));
}

static size_t columns_wanted(void)
{
    const char *text = getenv("COLUMNS");
    double columns = CLI_COLUMNS;

    if (text) {
        cli_read_number(text, 20, 1000, &columns);
    }
    return (size_t)columns;
}

static int print_text(const struct top *top, const char *model, bool ascii, const json_t *events,
                      const json_t *explanation)
{
    struct top_view view = {.top = top,
                            .events = events,
                            .explanation = explanation,
                            .model = model,
                            .all = true,
                            .now_ns = top->at_ns};
    struct top_screen screen;

    if (top_screen_init(&screen, ONCE_ROWS, columns_wanted(), ascii) != 0) {
        return ctl_fail("out of memory");
    }
    top_draw(&view, &screen);
    top_screen_print(&screen, stdout);
    top_screen_deinit(&screen);
    return CTL_DONE;
}

/* What the planner expects of the first model that has a route. Return: owned, or NULL. */
static json_t *explanation_of(const struct ctl *ctl, const struct top *top)
{
    json_t *explanation = NULL;

    json_text_each(json_object_get(top->status, "models"), i, model) {
        if (ctl_value(model, "route.number") > 0) {
            ctl_ask(ctl, "PlanExplain", ctl_model_parameter(ctl_text(model, "name")), "explanation",
                    &explanation);
            break;
        }
    }
    return explanation;
}

static int once(const struct ctl *ctl, const struct ctl_options *o, bool ascii)
{
    struct timespec pause = {(time_t)o->interval_s,
                             (long)((o->interval_s - (double)(time_t)o->interval_s) * 1e9)};
    json_auto_t *parameters = ctl_model_parameter(o->model), *events = NULL, *explanation = NULL;
    struct top top = TOP_NULL;
    int rc = take_status(ctl, o->model, &top);

    if (rc == CTL_DONE) {
        nanosleep(&pause, NULL);
        rc = take_status(ctl, o->model, &top);
    }
    if (rc == CTL_DONE) {
        explanation = explanation_of(ctl, &top);
        json_object_set_new(parameters, "limit", json_integer(ONCE_EVENTS));
        rc = ctl_ask(ctl, "History", base_take(parameters), "events", &events);
    }
    if (rc == CTL_DONE && ctl->json) {
        print_json(&top, events);
    } else if (rc == CTL_DONE) {
        rc = print_text(&top, o->model, ascii, events, explanation);
    }
    top_deinit(&top);
    return rc;
}

int ctl_top(const struct ctl *ctl, int argc, char **argv)
{
    struct ctl_options o = {.interval_s = 1};
    int rc = ctl_take_all(argc, argv, &o, NULL);
    bool ascii;

    if (rc) {
        return rc;
    }
    setlocale(LC_CTYPE, "");
    ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    if (o.once || ctl->json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
        return once(ctl, &o, ascii);
    }
    return top_live(ctl, &o, ascii);
}
