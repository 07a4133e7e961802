/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: commands that make one call on the control socket. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/cli/shown_print.h"
#include "base/json_text.h"

struct args {
    const char *model;
};

/* @ret: the options of all commands here; getopt knows which this one takes. */
static int take_args(int argc, char **argv, struct args *ret)
{
    int c, rc = CTL_DONE;

    *ret = (struct args){0};
    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        ret->model = optarg;
    }
    return rc;
}

/* The same, for a command without arguments. */
static int take_only_options(int argc, char **argv, struct args *ret)
{
    int rc = take_args(argc, argv, ret);

    return rc ? rc : ctl_no_more(argc, argv);
}

/* Also where a file repeats it, as the one that comes with piped does for every key. */
static bool has_default(const json_t *row)
{
    return json_equal(json_object_get(row, "value"), json_object_get(row, "default"));
}

/* A key of the table: no advanced one at its default, unless all are asked for. */
static bool is_shown(const json_t *row, bool all)
{
    return all || !json_is_true(json_object_get(row, "advanced")) || !has_default(row);
}

/* "name sq, path /m/sq.onnx": members of a model or an EP, without the empty ones. */
static void note_members(struct ctl_table *t, const json_t *row)
{
    json_t *v;
    char line[4096], cell[1024];
    const char *key;
    const char *gap = ":";
    size_t used;

    used = (size_t)snprintf(line, sizeof(line), "%s of %s", ctl_text(row, "key"),
                            ctl_text(row, "origin"));
    json_object_foreach(json_object_get(row, "value"), key, v)
    {
        if (used < sizeof(line) && !(json_is_string(v) && !json_string_length(v))) {
            used +=
                (size_t)snprintf(line + used, sizeof(line) - used, "%s %s %s", gap, key,
                                 ctl_any(json_object_get(row, "value"), key, cell, sizeof(cell)));
            gap = ",";
        }
    }
    ctl_table_note(t, 0, "%s", line);
}

static void print_config(const json_t *list, bool all)
{
    static const char *const keys[] = {"key", "value", "origin", NULL};
    size_t i, left_out = 0;
    struct ctl_table t;
    char cell[1024];
    json_t *row;

    ctl_table_init(&t, keys, "lll");
    json_array_foreach(list, i, row)
    {
        if (json_is_object(json_object_get(row, "value"))) {
            note_members(&t, row);
        } else if (is_shown(row, all)) {
            ctl_table_add(&t, "%s\t%s\t%s", ctl_text(row, "key"),
                          ctl_any(row, "value", cell, sizeof(cell)),
                          has_default(row) ? "default" : ctl_text(row, "origin"));
        } else {
            left_out++;
        }
    }
    ctl_table_print(&t);
    if (left_out) {
        printf("%zu advanced keys have their defaults: --all\n", left_out);
    }
}

int ctl_config(const struct ctl *ctl, int argc, char **argv)
{
    int c, rc = CTL_DONE;
    json_t *reply = NULL;
    bool all = false;

    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        all = true;
    }
    rc = rc ? rc : ctl_no_more(argc, argv);
    rc = rc ? rc : ctl_call(ctl, "Config", json_object(), &reply);
    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(json_object_get(reply, "config"));
    } else {
        print_config(json_object_get(reply, "config"), all);
    }
    json_decref(reply);
    return CTL_DONE;
}

static void print_metrics(const json_t *reply)
{
    shown_printf("%s", ctl_text(reply, "text"));
}

int ctl_metrics(const struct ctl *ctl, int argc, char **argv)
{
    struct args a;
    int rc = take_only_options(argc, argv, &a);

    return rc ? rc : ctl_show(ctl, "Metrics", json_object(), NULL, print_metrics);
}

static void print_reloaded(const json_t *reply)
{
    (void)reply;
    puts("configuration reloaded");
}

/* A model that failed before fails no reload: whoever mended its file wants to know. */
static int tell_failed_models(const struct ctl *ctl)
{
    const json_t *m;
    json_t *reply;
    size_t i;
    int rc = ctl_call(ctl, "Models", json_object(), &reply);

    if (rc) {
        return rc;
    }
    json_array_foreach(json_object_get(reply, "failed"), i, m)
    {
        ctl_say("model %s still cannot be loaded: %s", ctl_text(m, "name"), ctl_text(m, "error"));
    }
    json_decref(reply);
    return CTL_DONE;
}

int ctl_reload(const struct ctl *ctl, int argc, char **argv)
{
    struct args a;
    int rc = take_only_options(argc, argv, &a);

    rc = rc ? rc : ctl_show(ctl, "Reload", json_object(), NULL, print_reloaded);
    return rc ? rc : tell_failed_models(ctl);
}

/* Waits for the next event. Return: false: none came within --timeout. */
static bool comes(const struct ctl *ctl, const struct ctl_control *control)
{
    struct pollfd p = {.fd = ctl_control_fd(control), .events = POLLIN};

    return ctl_control_more(control) || poll(&p, 1, ctl->timeout_ms > 0 ? ctl->timeout_ms : -1);
}

int ctl_subscribe(const struct ctl *ctl, int argc, char **argv)
{
    struct ctl_control *control = NULL;
    bool continues = true;
    struct args a;
    int rc = take_only_options(argc, argv, &a);

    rc = rc ? rc : ctl_control_open(ctl, &control);
    rc = rc ? rc : ctl_control_send(control, "io.piped.Subscribe", NULL, true);
    while (rc == CTL_DONE && continues) {
        json_t *reply;

        rc = ctl_control_receive(control, &reply, &continues);
        if (rc == CTL_DONE) {
            json_text_print(json_object_get(reply, "event"), stdout, JSON_COMPACT);
            putchar('\n');
            json_decref(reply);
            rc = shown_end("pipectl", CTL_DONE);
        }
        if (rc == CTL_DONE && continues && !comes(ctl, control)) {
            ctl_say("nothing happened for %g s", ctl->timeout_ms / 1e3);
            break;
        }
    }
    ctl_control_free(control);
    return rc;
}
