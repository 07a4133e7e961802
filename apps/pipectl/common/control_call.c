/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: calls on the control socket. */
#include <stdarg.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/shown_text.h"
#include "ipc/control/control_client.h"

#define QUESTION_MS 5000

struct ctl_control {
    struct ipc_control conn;
    const struct ctl *ctl;         /* borrowed */
    int timeout_ms;                /* of the next reply; 0: none */
    struct ctl_progress *progress; /* owned; NULL: nothing is shown while waiting */
};

struct ctl_control *ctl_control_free(struct ctl_control *c)
{
    if (c) {
        ipc_control_close(&c->conn);
        ctl_progress_free(c->progress);
        free(c);
    }
    return NULL;
}

/* What the daemon answers at once. Other calls load, measure or search. */
static bool is_question(const char *method)
{
    static const char *const names[] = {"Status",  "Models", "GetPlan", "GetMapping", "Costs",
                                        "History", "Units",  "Metrics", "Config"};

    for (size_t i = 0; i < base_array_count(names); i++) {
        if (strcmp(names[i], method) == 0) {
            return true;
        }
    }
    return false;
}

/* @rc: of ipc_control_*(), why there is no reply. Return: an exit code. */
static int no_reply(const struct ctl_control *c, int rc)
{
    const char *path = c->ctl->control_path;
    char why[256];

    if (rc == IPC_CONTROL_E_TOO_BIG || rc == IPC_CONTROL_E_BAD) {
        return ctl_fail("the daemon's answer is %s",
                        rc == IPC_CONTROL_E_BAD ? "not a JSON object" : "too long");
    }
    if (c->ctl->quiet) {
        return CTL_UNREACHABLE;
    }
    if (rc == IPC_CONTROL_E_LATE) {
        snprintf(why, sizeof(why), "piped at %s has not answered for %g s", path,
                 c->timeout_ms / 1e3);
        return ctl_unreachable(why, ETIMEDOUT, path);
    }
    snprintf(why, sizeof(why), "piped is not reachable at %s: %s", path, ipc_control_reason(rc));
    return ctl_unreachable(why, rc < 0 ? -rc : 0, path);
}

int ctl_control_open(const struct ctl *ctl, struct ctl_control **ret)
{
    struct ctl_control *c = calloc(1, sizeof(*c));
    int rc;

    if (!c) {
        return ctl_fail("out of memory");
    }
    *c = (struct ctl_control){
        .conn = IPC_CONTROL_NULL, .ctl = ctl, .timeout_ms = base_max(ctl->timeout_ms, 0)};
    rc = ipc_control_connect(&c->conn, ctl->control_path, true);
    if (rc < 0) {
        rc = no_reply(c, rc);
        ctl_control_free(c);
        return rc;
    }
    *ret = c;
    return CTL_DONE;
}

int ctl_control_fd(const struct ctl_control *c)
{
    return c->conn.fd;
}

bool ctl_control_more(const struct ctl_control *c)
{
    return ipc_control_has_reply(&c->conn);
}

int ctl_control_send(struct ctl_control *c, const char *method, json_t *parameters, bool more,
                     const int *fds, size_t count)
{
    int rc = ipc_control_call(&c->conn, method, parameters, more, fds, count);

    if (rc == -ENOMEM) {
        return ctl_fail("out of memory, or an argument is not UTF-8");
    }
    return rc < 0 ? no_reply(c, rc) : CTL_DONE;
}

/* A Varlink error in words. */
static int say_error(const struct ctl_control *c, const struct ipc_control_reply *r)
{
    const char *dot = strrchr(r->error, '.');
    char text[1024];

    ipc_varlink_error_text(r->error, r->parameters, text, sizeof(text));
    if (strcmp(r->error, IPC_VARLINK_NOT_STARTED) == 0) {
        if (c->ctl->not_started) {
            *c->ctl->not_started = true;
        }
        return ctl_not_started(text);
    }
    if (dot && strcmp(dot, ".InvalidParameter") == 0) {
        const char *name = ctl_text(r->parameters, "parameter");

        return ctl_fail(
            strcmp(name, "fps") == 0
                ? "--objective power needs --%s F, the frame rate to hold, or the key planner.fps"
                : "the daemon refused \"%s\": it is missing or out of range; see pipectl(1)",
            name);
    }
    ctl_say("%s", text);
    if (dot && strcmp(dot, ".PermissionDenied") == 0) {
        ctl_say("use sudo, or become a member of the group that the key admin_group names");
    }
    return CTL_FAILED;
}

/* Return: it without what a terminal must not get, owned; NULL: out of memory. */
static char *cleaned(const char *text)
{
    char *copy = strdup(text);

    if (copy) {
        shown_clean(copy, "\n"); /* a tab would begin a cell of a table */
    }
    return copy;
}

/* Takes what a terminal must not get out of all texts and keys of @v. */
static void clean(json_t *v)
{
    const char *s = json_string_value(v), *key;
    json_t *each;
    void *next;
    size_t i;

    if (s && !shown_ok(s, strlen(s))) {
        base_autofree char *text = cleaned(s);

        json_string_set_nocheck(v, text ? text : "?");
    }
    json_array_foreach(v, i, each)
    {
        clean(each);
    }
    json_object_foreach_safe(v, next, key, each)
    {
        clean(each);
        if (!shown_ok(key, strlen(key))) {
            base_autofree char *text = cleaned(key);

            json_object_set_nocheck(v, text ? text : "?", each);
            json_object_del(v, key);
        }
    }
}

int ctl_control_receive(struct ctl_control *c, json_t **ret, bool *ret_continues)
{
    uint64_t end_ns = c->timeout_ms ? base_now_ns() + (uint64_t)c->timeout_ms * BASE_NS_PER_MS : 0;
    struct ipc_control_reply r;
    int rc;

    do {
        rc = ipc_control_wait(&c->conn, end_ns, ctl_progress_fd(c->progress), &r);
        if (rc == IPC_CONTROL_E_OTHER) {
            ctl_progress_show(c->progress);
        }
    } while (rc == IPC_CONTROL_E_OTHER);
    c->progress = ctl_progress_free(c->progress);
    if (rc) {
        return no_reply(c, rc);
    }
    if (r.error) {
        rc = say_error(c, &r);
        json_decref(r.message);
        return rc;
    }
    if (!c->ctl->json && !c->ctl->page) { /* elsewhere texts are made harmless when written */
        clean(r.message);
    }
    *ret = r.parameters ? json_incref(r.parameters) : json_object();
    *ret_continues = r.continues;
    json_decref(r.message);
    return CTL_DONE;
}

int ctl_call(const struct ctl *ctl, const char *method, json_t *parameters, json_t **ret)
{
    return ctl_call_fds(ctl, method, parameters, NULL, 0, ret);
}

int ctl_call_fds(const struct ctl *ctl, const char *method, json_t *parameters, const int *fds,
                 size_t count, json_t **ret)
{
    struct ctl_control *c = NULL;
    bool continues;
    char name[128];
    struct ctl_progress *progress = is_question(method) ? NULL : ctl_progress_new(ctl, parameters);
    int rc;

    snprintf(name, sizeof(name), "io.piped.%s", method);
    rc = ctl_control_open(ctl, &c);
    if (rc == CTL_DONE) {
        c->progress = base_take(progress);
        c->timeout_ms = ctl->timeout_ms != CTL_TIMEOUT_DEFAULT ? ctl->timeout_ms
                        : is_question(method)                  ? QUESTION_MS
                                                               : 0;
        rc = ctl_control_send(c, name, parameters, false, fds, count);
    }
    if (rc == CTL_DONE) {
        rc = ctl_control_receive(c, ret, &continues);
    }
    json_decref(parameters);
    ctl_control_free(c);
    ctl_progress_free(progress);
    return rc;
}

int ctl_ask(const struct ctl *ctl, const char *method, json_t *parameters, const char *field,
            json_t **ret)
{
    json_auto_t *reply = NULL;
    int rc = ctl_call(ctl, method, parameters, &reply);

    *ret = json_incref(json_object_get(reply, field));
    return rc;
}

int ctl_show(const struct ctl *ctl, const char *method, json_t *parameters, const char *field,
             void (*print)(const json_t *reply))
{
    json_auto_t *reply = NULL;
    int rc = ctl_call(ctl, method, parameters, &reply);

    if (rc == CTL_DONE && ctl->json) {
        ctl_print_json(field ? json_object_get(reply, field) : reply);
    } else if (rc == CTL_DONE) {
        print(reply);
    }
    return rc;
}

void ctl_tell(const struct ctl *ctl, const json_t *v, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (ctl->json) {
        ctl_print_json(v);
    } else {
        shown_vfprintf(stdout, format, args);
    }
    va_end(args);
}

json_t *ctl_model_parameter(const char *model)
{
    json_t *p = json_object();

    if (p && model && json_object_set_new(p, "model", json_string(model)) < 0) {
        ctl_say("the model's name is not UTF-8");
    }
    return p;
}
