/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: messages, options and arguments. */
#include "apps/page/page.h"
#include "apps/pipectl/common/pipectl.h"

int ctl_not_started(const char *why)
{
    ctl_say("%s", why);
    return ctl_refuse(CTL_UNREACHABLE, "mend that; the next client starts it");
}

int ctl_unreachable(const char *why, int error, const char *path)
{
    char state[CTL_SERVICE_TEXT_MAX];
    const char *next;

    ctl_say("%s", why);
    if (error == EACCES) {
        ctl_say("only members of the socket's group may connect; the service's is piped-clients: "
                "sudo adduser $USER piped-clients, then log in again");
    } else if (ctl_service_state(path, state, &next)) {
        ctl_say("systemd says: %s", state);
        if (next) {
            ctl_say("%s", next);
        }
    } else if (error == ETIMEDOUT) {
        ctl_say("it is starting, stopped (SIGSTOP), or its cores are overloaded; --timeout S waits "
                "longer");
    } else {
        ctl_say("is it running? Try systemctl status piped, or --socket PATH for a daemon that was "
                "started with --runtime-dir");
    }
    return CTL_UNREACHABLE;
}

int ctl_take(int argc, char **argv, struct ctl_options *to, json_t *parameters)
{
    return cli_take(&ctl_program, argc, argv, to, parameters);
}

int ctl_take_all(int argc, char **argv, struct ctl_options *to, json_t *parameters)
{
    int rc = ctl_take(argc, argv, to, parameters);

    return rc ? rc : cli_no_more(&ctl_program, argc, argv);
}

int ctl_model_argument(int argc, char **argv, json_t *parameters)
{
    if (optind < argc && !json_object_get(parameters, "model") &&
        json_object_set_new(parameters, "model", json_string(argv[optind++])) < 0) {
        return ctl_usage(argv[0], "the model's name is not UTF-8");
    }
    return cli_no_more(&ctl_program, argc, argv);
}

json_t *ctl_load_json(const char *path)
{
    json_error_t e;
    json_t *v = json_text_load(path, JSON_REJECT_DUPLICATES, &e);

    if (json_is_object(v)) {
        return v;
    }
    if (v) {
        ctl_say("%s: is not an object", path);
    } else if (e.line < 0) {
        ctl_say("%s: %s", path, e.text);
    } else {
        ctl_say("%s: line %d: %s", path, e.line, e.text);
    }
    json_decref(v);
    return NULL;
}

int ctl_save_json(const char *path, const json_t *v, size_t flags)
{
    int r = json_text_save(v, path, flags);

    if (r < 0) {
        ctl_say("cannot write %s: %s", path, strerror(-r));
    }
    return r < 0 ? CTL_FAILED : CTL_DONE;
}

/* The file is opened once the page is complete. It may be a pipe, so it is written in place. */
int ctl_save_page(const char *path, void (*write)(FILE *to, const json_t *data), const json_t *data)
{
    base_autofree char *page = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&page, &bytes);
    bool well = to != NULL;

    if (to) {
        write(to, data);
        well = fclose(to) == 0;
    }
    to = well ? fopen(path, "we") : NULL;
    if (to) {
        well = fwrite(page, 1, bytes, to) == bytes;
        well = fclose(to) == 0 && well;
    }
    if (!to || !well) {
        return ctl_fail("cannot write %s: %m", path);
    }
    if (!page_has_charts()) {
        ctl_say("%s", PAGE_NO_CHARTS);
    }
    return CTL_DONE;
}
