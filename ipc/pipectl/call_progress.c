/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/pipectl/call_progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc/pipectl/terminal_line.h"
#include "ipc/varlink.h"

#define LINE_BYTES 512u

struct ctl_progress {
    int sock;
    char model[128]; /* "": that of the call is not known */
    struct ipc_varlink_reader reader;
};

static int subscribe(const struct ctl *ctl)
{
    base_autofree char *bytes = NULL;
    base_autoclose int sock = ctl_control_connect(ctl);
    size_t count;
    int ret;

    if (sock < 0 || ipc_varlink_call("io.piped.Subscribe", NULL, true, &bytes, &count) < 0 ||
        send(sock, bytes, count, MSG_NOSIGNAL) != (ssize_t)count) {
        return -1;
    }
    ret = sock;
    sock = -1;
    return ret;
}

struct ctl_progress *ctl_progress_new(const struct ctl *ctl, const json_t *parameters)
{
    struct ctl_progress *p = isatty(STDERR_FILENO) ? calloc(1, sizeof(*p)) : NULL;
    const char *model = ctl_text(parameters, "model");

    if (p) {
        snprintf(p->model, sizeof(p->model), "%s", *model ? model : ctl_text(parameters, "name"));
        p->sock = subscribe(ctl);
    }
    return p;
}

struct ctl_progress *ctl_progress_free(struct ctl_progress *p)
{
    if (p) {
        ctl_line_wipe();
        base_close_fd(&p->sock);
        ipc_varlink_reader_deinit(&p->reader);
        free(p);
    }
    return NULL;
}

int ctl_progress_fd(const struct ctl_progress *p)
{
    return p ? p->sock : -1;
}

static void show(struct ctl_progress *p, const json_t *e)
{
    const char *event = ctl_text(e, "event"), *model = ctl_text(e, "model");
    char text[LINE_BYTES];
    int n;

    if (*model && *p->model && strcmp(model, p->model) != 0) {
        return;
    }
    n = snprintf(text, sizeof(text), "%.128s%s", model, *model ? ": " : "");
    if (strcmp(event, "progress") == 0) {
        double of = ctl_real(e, "of");

        n += snprintf(text + n, sizeof(text) - (size_t)n, "%.200s", ctl_text(e, "doing"));
        if (of > 0) {
            snprintf(text + n, sizeof(text) - (size_t)n, ", %.0f of %.0f", ctl_real(e, "done"), of);
        }
        ctl_line_show(text);
    } else if (strcmp(event, "trial") == 0) {
        snprintf(text + n, sizeof(text) - (size_t)n, "tried %.250s, %.3f ms a frame",
                 ctl_text(e, "plan"), ctl_real(e, "bottleneck_ms"));
        ctl_line_show(text);
    }
}

void ctl_progress_show(struct ctl_progress *p)
{
    char bytes[16384];
    ssize_t n = recv(p->sock, bytes, sizeof(bytes), MSG_DONTWAIT);
    json_t *message;

    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (n <= 0 || ipc_varlink_feed(&p->reader, bytes, (size_t)n) != 0) {
        base_close_fd(&p->sock);
        return;
    }
    while (ipc_varlink_next(&p->reader, &message) == 0) {
        show(p, json_object_get(json_object_get(message, "parameters"), "event"));
        json_decref(message);
    }
}
