/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: commands that make one call on the control socket. */
#include <stdio.h>
#include <string.h>

#include "ipc/pipectl/pipectl.h"
#include "json_text.h"

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

void ctl_print_list(const json_t *list, const char *const *keys, const char *align)
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

/* Calls, then prints reply[key] as JSON, or as a table with these keys. */
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
        ctl_print_list(json_object_get(reply, key), keys, align);
    }
    json_decref(reply);
    return CTL_DONE;
}

int ctl_config(const struct ctl *ctl, int argc, char **argv)
{
    static const char *const keys[] = {"key", "value", "origin", NULL};
    struct args a;
    int rc = take_only_options(argc, argv, &a);

    return rc ? rc : list_command(ctl, "Config", json_object(), "config", keys, "lll");
}

static void print_metrics(const json_t *reply)
{
    fputs(ctl_text(reply, "text"), stdout);
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
            if (fflush(stdout) != 0) {
                break; /* the reader has left */
            }
        }
    }
    ctl_control_free(control);
    return rc;
}
