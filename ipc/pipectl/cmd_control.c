/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: the commands that are one call of the control socket. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/pipectl/pipectl.h"

struct args {
    const char *model, *algorithm, *plan;
    double limit; /* 0: not given */
};

/* The options of all commands here; @allowed names those of this one. */
static int take_args(int argc, char **argv, const char *allowed, struct args *ret)
{
    static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                            {"algorithm", required_argument, NULL, 'a'},
                                            {"plan", required_argument, NULL, 'p'},
                                            {"limit", required_argument, NULL, 'l'},
                                            {0}};
    int c;

    *ret = (struct args){0};
    while ((c = ctl_option(argc, argv, options)) != -1) {
        if (c == '?' || c == ':' || !strchr(allowed, c)) {
            return ctl_usage(argv[0], "unknown or incomplete option %s", argv[optind - 1]);
        }
        if (c == 'm') {
            ret->model = optarg;
        } else if (c == 'a') {
            ret->algorithm = optarg;
        } else if (c == 'p') {
            ret->plan = optarg;
        } else if (!ctl_number(optarg, 1, 1e6, &ret->limit)) {
            return ctl_usage(argv[0], "--limit needs a number from 1 on, got '%s'", optarg);
        }
    }
    return CTL_DONE;
}

static int too_much(int argc, char **argv, int from)
{
    return argc > from ? ctl_usage(argv[0], "'%s' is too much", argv[from]) : CTL_DONE;
}

static void print_warnings(const json_t *reply)
{
    size_t i;
    json_t *w;

    json_array_foreach(json_object_get(reply, "warnings"), i, w)
    {
        printf("warning: %s\n", json_is_string(w) ? json_string_value(w) : "");
    }
}

int ctl_plan(const struct ctl *ctl, int argc, char **argv)
{
    json_t *parameters, *reply;
    struct args a;
    const char *method, *verb;
    char epoch[32];
    int rc = take_args(argc, argv, "m", &a);

    if (rc) {
        return rc;
    }
    verb = optind < argc ? argv[optind++] : "show";
    parameters = ctl_model_parameter(a.model);
    method = strcmp(verb, "show") == 0   ? "GetPlan"
             : strcmp(verb, "set") == 0  ? "SetPlan"
             : strcmp(verb, "auto") == 0 ? "AutoPlan"
                                         : NULL;
    if (!method) {
        rc = ctl_usage("plan", "show, set or auto, not '%s'", verb);
    } else if (strcmp(verb, "set") == 0) {
        rc = optind == argc
                 ? ctl_usage("plan", "set needs a plan, e.g. '0-15@bigx4|16-25@littlex2*2'")
                 : json_object_set_new(parameters, "plan", json_string(argv[optind++]));
    }
    rc = rc ? rc : too_much(argc, argv, optind);
    if (rc) {
        json_decref(parameters);
        return rc < 0 ? CTL_USAGE : rc;
    }
    rc = ctl_call(ctl, method, parameters, &reply);
    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(reply);
    } else if (strcmp(verb, "show") == 0) {
        printf("%s\n", ctl_text(reply, "plan"));
        print_warnings(reply);
    } else {
        printf("serving by %s since epoch %s\n", ctl_text(reply, "plan"),
               ctl_any(reply, "epoch", epoch, sizeof(epoch)));
        print_warnings(reply);
    }
    json_decref(reply);
    return CTL_DONE;
}

/* A list of objects as a table of the given keys. */
static void print_list(const json_t *list, const char *const *keys, const char *align)
{
    struct ctl_table t;
    json_t *item;
    size_t i;

    ctl_table_init(&t, keys, align);
    json_array_foreach(list, i, item)
    {
        char line[4096] = "", cell[1024];
        size_t used = 0;

        for (size_t k = 0; keys[k]; k++) {
            snprintf(line + used, sizeof(line) - used, "%s%s", k ? "\t" : "",
                     ctl_any(item, keys[k], cell, sizeof(cell)));
            used = strlen(line);
        }
        ctl_table_add(&t, "%s", line);
    }
    ctl_table_print(&t);
}

/* Calls, then prints reply[key]: as JSON, or as a table of keys. */
static int list_command(const struct ctl *ctl, const char *method, json_t *parameters,
                        const char *key, const char *const *keys, const char *align)
{
    json_t *reply;
    int rc = ctl_call(ctl, method, parameters, &reply);

    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(json_object_get(reply, key));
    } else {
        print_list(json_object_get(reply, key), keys, align);
    }
    json_decref(reply);
    return CTL_DONE;
}

static int load_model(const struct ctl *ctl, const char *name, const char *file, const char *plan)
{
    char path[PATH_MAX];
    json_t *parameters, *reply;
    int rc;

    if (!realpath(file, path)) {
        ctl_say("%s: %m", file);
        return CTL_FAILED;
    }
    parameters = json_pack("{s:s, s:s}", "name", name, "path", path);
    if (!parameters || (plan && json_object_set_new(parameters, "plan", json_string(plan)) < 0)) {
        json_decref(parameters);
        return ctl_usage("models", "names and plans are UTF-8");
    }
    rc = ctl_call(ctl, "Load", parameters, &reply);
    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(json_object_get(reply, "model"));
    } else {
        printf("%s is loaded\n", name);
    }
    json_decref(reply);
    return CTL_DONE;
}

int ctl_models(const struct ctl *ctl, int argc, char **argv)
{
    static const char *const keys[] = {"name", "units", "input", "outputs", "plan", "path", NULL};
    json_t *reply, *parameters;
    struct args a;
    const char *verb;
    int left, rc = take_args(argc, argv, "p", &a);

    if (rc) {
        return rc;
    }
    verb = optind < argc ? argv[optind++] : "list";
    left = argc - optind;
    if (strcmp(verb, "list") == 0 && left == 0) {
        return list_command(ctl, "Models", json_object(), "models", keys, "lrllll");
    }
    if (strcmp(verb, "load") == 0 && left == 2) {
        return load_model(ctl, argv[optind], argv[optind + 1], a.plan);
    }
    if (strcmp(verb, "unload") != 0 || left != 1) {
        return ctl_usage("models", "list, load NAME FILE or unload NAME");
    }
    parameters = json_pack("{s:s}", "name", argv[optind]);
    if (!parameters) {
        return ctl_usage("models", "the name is not UTF-8");
    }
    rc = ctl_call(ctl, "Unload", parameters, &reply);
    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(reply);
    } else {
        printf("%s is unloaded\n", argv[optind]);
    }
    json_decref(reply);
    return CTL_DONE;
}

static void print_event(const json_t *e)
{
    static const char *const keys[] = {"id",        "at",          "cause",          "detail",
                                       "algorithm", "plan_before", "plan_after",     "fps_before",
                                       "fps_after", "duration_ms", "predicted_gain", "lost",
                                       "outcome",   NULL};
    char text[2048];

    for (size_t k = 0; keys[k]; k++) {
        if (json_object_get(e, keys[k]) && !json_is_null(json_object_get(e, keys[k]))) {
            printf("%-14s %s\n", keys[k], ctl_any(e, keys[k], text, sizeof(text)));
        }
    }
}

int ctl_retune(const struct ctl *ctl, int argc, char **argv)
{
    json_t *parameters, *reply;
    struct args a;
    int rc = take_args(argc, argv, "ma", &a);

    rc = rc ? rc : too_much(argc, argv, optind);
    if (rc) {
        return rc;
    }
    parameters = ctl_model_parameter(a.model);
    if (a.algorithm) {
        json_object_set_new(parameters, "algorithm", json_string(a.algorithm));
    }
    rc = ctl_call(ctl, "Retune", parameters, &reply);
    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(json_object_get(reply, "event"));
    } else {
        print_event(json_object_get(reply, "event"));
    }
    json_decref(reply);
    return CTL_DONE;
}

int ctl_history(const struct ctl *ctl, int argc, char **argv)
{
    static const char *const keys[] = {"id",        "at",         "model",      "cause",
                                       "algorithm", "plan_after", "fps_before", "fps_after",
                                       "outcome",   NULL};
    json_t *parameters;
    struct args a;
    int rc = take_args(argc, argv, "ml", &a);

    rc = rc ? rc : too_much(argc, argv, optind);
    if (rc) {
        return rc;
    }
    parameters = ctl_model_parameter(a.model);
    if (a.limit > 0) {
        json_object_set_new(parameters, "limit", json_integer((json_int_t)a.limit));
    }
    return list_command(ctl, "History", parameters, "events", keys, "rlllllrrl");
}

int ctl_units(const struct ctl *ctl, int argc, char **argv)
{
    static const char *const keys[] = {"unit",        "name",      "ops", "weight",
                                       "measured_ms", "primitive", NULL};
    struct args a;
    int rc = take_args(argc, argv, "m", &a);

    rc = rc ? rc : too_much(argc, argv, optind);
    return rc ? rc
              : list_command(ctl, "Units", ctl_model_parameter(a.model), "units", keys, "rlrrrl");
}

int ctl_config(const struct ctl *ctl, int argc, char **argv)
{
    static const char *const keys[] = {"key", "value", "origin", NULL};
    struct args a;
    int rc = take_args(argc, argv, "", &a);

    rc = rc ? rc : too_much(argc, argv, optind);
    return rc ? rc : list_command(ctl, "Config", json_object(), "config", keys, "lll");
}

int ctl_metrics(const struct ctl *ctl, int argc, char **argv)
{
    json_t *reply;
    struct args a;
    int rc = take_args(argc, argv, "", &a);

    rc = rc ? rc : too_much(argc, argv, optind);
    rc = rc ? rc : ctl_call(ctl, "Metrics", json_object(), &reply);
    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(reply);
    } else {
        fputs(ctl_text(reply, "text"), stdout);
    }
    json_decref(reply);
    return CTL_DONE;
}

int ctl_reload(const struct ctl *ctl, int argc, char **argv)
{
    json_t *reply;
    struct args a;
    int rc = take_args(argc, argv, "", &a);

    rc = rc ? rc : too_much(argc, argv, optind);
    rc = rc ? rc : ctl_call(ctl, "Reload", json_object(), &reply);
    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(reply);
    } else {
        puts("the configuration was read again");
    }
    json_decref(reply);
    return CTL_DONE;
}

int ctl_subscribe(const struct ctl *ctl, int argc, char **argv)
{
    struct ctl_control *control = NULL;
    bool continues = true;
    struct args a;
    int rc = take_args(argc, argv, "", &a);

    rc = rc ? rc : too_much(argc, argv, optind);
    rc = rc ? rc : ctl_control_open(ctl, &control);
    rc = rc ? rc : ctl_control_send(control, "io.piped.Subscribe", NULL, true);
    while (rc == CTL_DONE && continues) {
        json_t *reply;

        rc = ctl_control_receive(control, &reply, &continues);
        if (rc == CTL_DONE) {
            json_dumpf(json_object_get(reply, "event"), stdout, JSON_COMPACT);
            putchar('\n');
            json_decref(reply);
            if (fflush(stdout) != 0) {
                break; /* whoever read this has left */
            }
        }
    }
    ctl_control_free(control);
    return rc;
}
