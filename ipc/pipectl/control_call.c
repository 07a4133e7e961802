/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: calls on the control socket. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ipc/pipectl/call_progress.h"
#include "ipc/pipectl/model_files.h"
#include "ipc/pipectl/pipectl.h"
#include "ipc/varlink.h"
#include "shown_text.h"

#define QUESTION_MS 5000

struct ctl_control {
    int sock;
    const char *path;  /* borrowed */
    int timeout_ms;    /* of the next reply; 0: none */
    bool quiet;        /* as of struct ctl */
    bool *not_started; /* borrowed, may be NULL: as of struct ctl */
    bool shows;        /* texts are for a terminal; elsewhere they are made harmless when written */
    struct ctl_progress *progress; /* owned; NULL: nothing is shown while waiting */
    struct ipc_varlink_reader reader;
};

struct ctl_control *ctl_control_free(struct ctl_control *c)
{
    if (c) {
        base_close_fd(&c->sock);
        ctl_progress_free(c->progress);
        ipc_varlink_reader_deinit(&c->reader);
        free(c);
    }
    return NULL;
}

/* @error: an errno, or 0 when the daemon closed the connection. */
static int unreachable(const char *path, int error)
{
    char why[256];

    snprintf(why, sizeof(why), "piped is not reachable at %s: %s", path,
             error ? strerror(error) : "it closed the connection");
    return ctl_unreachable(why, error, path);
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

static int timeout_of(const struct ctl *ctl, const char *method)
{
    if (ctl->timeout_ms != CTL_TIMEOUT_DEFAULT) {
        return ctl->timeout_ms;
    }
    return is_question(method) ? QUESTION_MS : 0;
}

static int no_answer(const struct ctl_control *c)
{
    char why[256];

    if (c->quiet) {
        return CTL_UNREACHABLE;
    }
    snprintf(why, sizeof(why), "piped at %s has not answered for %g s", c->path,
             c->timeout_ms / 1e3);
    return ctl_unreachable(why, ETIMEDOUT, c->path);
}

/* Waits until there is something to read, and shows progress until then. Return: an exit code. */
static int wait_readable(struct ctl_control *c, uint64_t end_ns)
{
    struct pollfd p[] = {{.fd = c->sock, .events = POLLIN},
                         {.fd = ctl_progress_fd(c->progress), .events = POLLIN}};
    uint64_t now = base_now_ns();
    int n;

    do {
        int ms = now < end_ns ? (int)((end_ns - now + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS) : 0;

        n = poll(p, 2, c->timeout_ms ? ms : -1);
        now = base_now_ns();
        if (n > 0 && p[1].revents) {
            ctl_progress_show(c->progress);
            p[1].fd = ctl_progress_fd(c->progress);
        }
    } while ((n < 0 && errno == EINTR) || (n > 0 && !p[0].revents));
    c->progress = ctl_progress_free(c->progress);
    return n == 0 ? no_answer(c) : CTL_DONE;
}

int ctl_control_open(const struct ctl *ctl, struct ctl_control **ret)
{
    struct ctl_control *c = calloc(1, sizeof(*c));

    if (!c) {
        ctl_say("out of memory");
        return CTL_FAILED;
    }
    c->path = ctl->control_path;
    c->quiet = ctl->quiet;
    c->not_started = ctl->not_started;
    c->shows = !ctl->json && !ctl->page;
    c->timeout_ms = base_max(ctl->timeout_ms, 0);
    c->sock = ctl_control_connect(ctl);
    if (c->sock < 0) {
        int error = -c->sock;

        ctl_control_free(c);
        return unreachable(ctl->control_path, error);
    }
    *ret = c;
    return CTL_DONE;
}

int ctl_control_fd(const struct ctl_control *c)
{
    return c->sock;
}

bool ctl_control_more(const struct ctl_control *c)
{
    return c->reader.used - c->reader.start > c->reader.tail;
}

/* Descriptors to send. */
struct fds {
    const int *fd;
    size_t count; /* at most CTL_MODEL_FILES_MAX */
};

/* Sends @fds with the first byte. */
static ssize_t send_some(const struct ctl_control *c, const char *bytes, size_t count,
                         struct fds fds)
{
    struct iovec part = {(void *)(uintptr_t)bytes, count};
    union {
        char bytes[CMSG_SPACE(CTL_MODEL_FILES_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fds.count > 0) {
        struct cmsghdr *head = &control.align;

        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fds.count * sizeof(int));
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fds.count * sizeof(int));
        memcpy(CMSG_DATA(head), fds.fd, fds.count * sizeof(int));
    }
    return sendmsg(c->sock, &message, MSG_NOSIGNAL);
}

static int send_call(struct ctl_control *c, const char *method, json_t *parameters, bool more,
                     struct fds fds)
{
    base_autofree char *bytes = NULL;
    size_t count, at = 0;

    if (ipc_varlink_call(method, parameters, more, &bytes, &count) < 0) {
        ctl_say("out of memory, or an argument is not UTF-8");
        return CTL_FAILED;
    }
    while (at < count) {
        ssize_t n = send_some(c, bytes + at, count - at, at == 0 ? fds : (struct fds){0});

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EPIPE) {
            return CTL_DONE; /* the answer that is there already says why it was closed */
        }
        if (n < 0) {
            return unreachable(c->path, errno);
        }
        at += (size_t)n;
    }
    return CTL_DONE;
}

int ctl_control_send(struct ctl_control *c, const char *method, json_t *parameters, bool more)
{
    return send_call(c, method, parameters, more, (struct fds){0});
}

int ctl_control_send_fd(struct ctl_control *c, const char *method, json_t *parameters, int fd)
{
    return send_call(c, method, parameters, true, (struct fds){&fd, 1});
}

/* A Varlink error in words. */
static int say_error(const struct ctl_control *c, const json_t *message)
{
    const char *error = json_string_value(json_object_get(message, "error"));
    const char *dot = error ? strrchr(error, '.') : NULL;
    char text[1024];

    ipc_varlink_error_text(error, json_object_get(message, "parameters"), text, sizeof(text));
    if (error && strcmp(error, IPC_VARLINK_NOT_STARTED) == 0) {
        if (c->not_started) {
            *c->not_started = true;
        }
        return ctl_not_started(text);
    }
    if (dot && strcmp(dot, ".InvalidParameter") == 0) {
        const char *name = ctl_text(json_object_get(message, "parameters"), "parameter");

        ctl_say(
            strcmp(name, "fps") == 0
                ? "--objective power needs --%s F, the frame rate to hold, or the key planner.fps"
                : "the daemon refused \"%s\": it is missing or out of range; see pipectl(1)",
            name);
        return CTL_FAILED;
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
    uint64_t end_ns = base_now_ns() + (uint64_t)c->timeout_ms * BASE_NS_PER_MS;
    json_t *message;
    int rc;

    while ((rc = ipc_varlink_next(&c->reader, &message)) == IPC_VARLINK_E_NONE) {
        char bytes[65536];
        ssize_t n;

        rc = wait_readable(c, end_ns);
        if (rc) {
            return rc;
        }
        n = recv(c->sock, bytes, sizeof(bytes), 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return unreachable(c->path, n < 0 ? errno : 0);
        }
        if (ipc_varlink_feed(&c->reader, bytes, (size_t)n) != 0) {
            ctl_say("the daemon's answer is too long");
            return CTL_FAILED;
        }
    }
    if (rc != 0) {
        ctl_say("the daemon's answer is not a JSON object");
        return CTL_FAILED;
    }
    if (json_object_get(message, "error")) {
        rc = say_error(c, message);
        json_decref(message);
        return rc;
    }
    if (c->shows) {
        clean(message);
    }
    *ret = json_incref(json_object_get(message, "parameters"));
    if (!*ret) {
        *ret = json_object();
    }
    *ret_continues = json_is_true(json_object_get(message, "continues"));
    json_decref(message);
    return CTL_DONE;
}

int ctl_call(const struct ctl *ctl, const char *method, json_t *parameters, json_t **ret)
{
    return ctl_call_fd(ctl, method, parameters, -1, ret);
}

int ctl_call_fd(const struct ctl *ctl, const char *method, json_t *parameters, int fd, json_t **ret)
{
    return ctl_call_fds(ctl, method, parameters, &fd, fd >= 0 ? 1 : 0, ret);
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
        c->timeout_ms = timeout_of(ctl, method);
        rc = send_call(c, name, parameters, false, (struct fds){fds, count});
    }
    if (rc == CTL_DONE) {
        rc = ctl_control_receive(c, ret, &continues);
    }
    json_decref(parameters);
    ctl_control_free(c);
    ctl_progress_free(progress);
    return rc;
}

int ctl_show(const struct ctl *ctl, const char *method, json_t *parameters, const char *field,
             void (*print)(const json_t *reply))
{
    json_t *reply;
    int rc = ctl_call(ctl, method, parameters, &reply);

    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(field ? json_object_get(reply, field) : reply);
    } else {
        print(reply);
    }
    json_decref(reply);
    return CTL_DONE;
}

json_t *ctl_model_parameter(const char *model)
{
    json_t *p = json_object();

    if (p && model && json_object_set_new(p, "model", json_string(model)) < 0) {
        ctl_say("the model's name is not UTF-8");
    }
    return p;
}
