/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: commands that make one call on the control socket. */
#include <poll.h>

#include "apps/pipectl/common/pipectl.h"

/* Also where a file repeats it, as the one that comes with piped does for every key. */
static bool has_default(const json_t *row)
{
    return json_equal(json_object_get(row, "value"), json_object_get(row, "default"));
}

/* A key of the table: no advanced one at its default, unless all are asked for. */
static bool is_shown(const json_t *row, bool all)
{
    return all || !ctl_is(row, "advanced") || !has_default(row);
}

/* "name sq, path /m/sq.onnx": members of a model or an EP, without the empty ones. */
static void note_members(struct cli_table *t, const json_t *row)
{
    const char *key, *gap = ":";
    char line[4096];
    json_t *v;

    snprintf(line, sizeof(line), "%s of %s", ctl_text(row, "key"), ctl_text(row, "origin"));
    json_object_foreach(json_object_get(row, "value"), key, v)
    {
        if (!json_is_string(v) || json_string_length(v)) {
            base_append(line, sizeof(line), "%s %s %s", gap, key,
                        ctl_any(json_object_get(row, "value"), key).text);
            gap = ",";
        }
    }
    cli_table_note(t, 0, "%s", line);
}

static void print_config(const json_t *list, bool all)
{
    struct cli_table t = {.align = "lll"};
    size_t left_out = 0;

    cli_table_add(&t, "key\tvalue\torigin");
    json_text_each(list, i, row) {
        if (json_is_object(json_object_get(row, "value"))) {
            note_members(&t, row);
        } else if (is_shown(row, all)) {
            cli_table_add(&t, "%s\t%s\t%s", ctl_text(row, "key"), ctl_any(row, "value").text,
                          has_default(row) ? "default" : ctl_text(row, "origin"));
        } else {
            left_out++;
        }
    }
    cli_table_print(&t);
    if (left_out) {
        printf("%zu advanced keys have their defaults: --all\n", left_out);
    }
}

int ctl_config(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *config = NULL;
    struct ctl_options o = {0};
    int rc = ctl_take_all(argc, argv, &o, NULL);

    rc = rc ? rc : ctl_ask(ctl, "Config", json_object(), "config", &config);
    if (rc == CTL_DONE && ctl->json) {
        ctl_print_json(config);
    } else if (rc == CTL_DONE) {
        print_config(config, o.all);
    }
    return rc;
}

static void print_metrics(const json_t *reply)
{
    shown_printf("%s", ctl_text(reply, "text"));
}

int ctl_metrics(const struct ctl *ctl, int argc, char **argv)
{
    int rc = ctl_take_all(argc, argv, NULL, NULL);

    return rc ? rc : ctl_show(ctl, "Metrics", json_object(), NULL, print_metrics);
}

static void print_reloaded(const json_t *reply)
{
    puts("configuration reloaded");
}

/* A model that failed before fails no reload: whoever mended its file wants to know. */
static int tell_failed_models(const struct ctl *ctl)
{
    json_auto_t *reply = NULL;
    int rc = ctl_call(ctl, "Models", json_object(), &reply);

    json_text_each(json_object_get(reply, "failed"), i, m) {
        ctl_say("model %s still cannot be loaded: %s", ctl_text(m, "name"), ctl_text(m, "error"));
    }
    return rc;
}

int ctl_reload(const struct ctl *ctl, int argc, char **argv)
{
    int rc = ctl_take_all(argc, argv, NULL, NULL);

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
    int rc = ctl_take_all(argc, argv, NULL, NULL);

    rc = rc ? rc : ctl_control_open(ctl, &control);
    rc = rc ? rc : ctl_control_send(control, "io.piped.Subscribe", NULL, true, NULL, 0);
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

/* ---- profile: micro-benchmarks of the cores ---- */

static void print_fits(const json_t *reply)
{
    static const struct cli_column columns[] = {
        {"ep", "name", 'l'},
        {"count", "benches", 'r'},
        {"1x1, strided", "error_plain", 'r', CLI_DECIMALS, 1, 100, " %"},
        {"3x3", "error_conv3x3", 'r', CLI_DECIMALS, 1, 100, " %"},
        {"other", "error_conv", 'r', CLI_DECIMALS, 1, 100, " %"},
        {"depthwise", "error_depthwise", 'r', CLI_DECIMALS, 1, 100, " %"},
        {"fully connected", "error_fc", 'r', CLI_DECIMALS, 1, 100, " %"},
        {"wider", "error_multi", 'r', CLI_DECIMALS, 1, 100, " %"},
        {0}};

    printf("Mean error of the fitted equations on their own benchmarks:\n");
    cli_print_rows(json_object_get(reply, "kinds"), columns);
}

int ctl_profile(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object();
    int rc = ctl_take_all(argc, argv, NULL, parameters);

    return rc ? rc : ctl_show(ctl, "Profile", base_take(parameters), "kinds", print_fits);
}
