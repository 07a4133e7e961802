/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/pipectl/top_feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base.h"

void top_feed_init(struct top_feed *f, const char *path)
{
    *f = (struct top_feed){.sock = -1, .path = path, .reader = IPC_VARLINK_READER_NULL};
}

void top_feed_deinit(struct top_feed *f)
{
    base_close_fd(&f->sock);
    ipc_varlink_reader_deinit(&f->reader);
    f->reader = IPC_VARLINK_READER_NULL;
    f->expected = 0;
}

static int lost(struct top_feed *f, int error)
{
    top_feed_deinit(f);
    return error;
}

static int open_socket(struct top_feed *f)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    if (f->sock >= 0) {
        return 0;
    }
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", f->path);
    f->sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (f->sock < 0 || connect(f->sock, (struct sockaddr *)&to, sizeof(to)) < 0) {
        return lost(f, -errno);
    }
    return 0;
}

int top_feed_ask(struct top_feed *f, const char *method, json_t *parameters, uint64_t now_ns)
{
    base_autofree char *bytes = NULL;
    char name[128];
    size_t count;
    ssize_t sent;
    int r = open_socket(f);

    snprintf(name, sizeof(name), "io.piped.%s", method);
    if (r == 0) {
        r = ipc_varlink_call(name, parameters, false, &bytes, &count);
    }
    json_decref(parameters);
    if (r < 0) {
        return lost(f, r);
    }
    /* A call is small: a socket that does not take all of it belongs to a daemon that hangs. One
     * that is closed may have said why. */
    do {
        sent = send(f->sock, bytes, count, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent != (ssize_t)count && !(sent < 0 && errno == EPIPE)) {
        return lost(f, sent < 0 ? -errno : -EAGAIN);
    }
    f->asked_at_ns = f->expected++ == 0 ? now_ns : f->asked_at_ns;
    return 0;
}

int top_feed_read(struct top_feed *f)
{
    char bytes[65536];
    bool any = false;
    ssize_t n;

    if (f->sock < 0) {
        return 0;
    }
    while ((n = recv(f->sock, bytes, sizeof(bytes), 0)) > 0) {
        int r = ipc_varlink_feed(&f->reader, bytes, (size_t)n);

        if (r != 0) {
            return lost(f, r < 0 ? r : -EMSGSIZE);
        }
        any = true;
    }
    if (any || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
        return 0; /* the end of the connection shows in the next call, after what came */
    }
    return lost(f, n < 0 ? -errno : -ECONNRESET);
}

int top_feed_next(struct top_feed *f, uint64_t now_ns, json_t **ret)
{
    json_t *message;
    int r = ipc_varlink_next(&f->reader, &message);
    const char *error;

    if (r == IPC_VARLINK_E_NONE) {
        return TOP_FEED_E_NONE;
    }
    error = r == 0 ? json_string_value(json_object_get(message, "error")) : NULL;
    f->not_started[0] = '\0';
    if (error && strcmp(error, IPC_VARLINK_NOT_STARTED) == 0) {
        ipc_varlink_error_text(error, json_object_get(message, "parameters"), f->not_started,
                               sizeof(f->not_started));
        json_decref(message);
        return lost(f, -EHOSTDOWN);
    }
    if (r != 0 || f->expected == 0) {
        if (r == 0) {
            json_decref(message);
        }
        return lost(f, -EPROTO);
    }
    f->expected--;
    f->asked_at_ns = now_ns;
    *ret = error ? NULL : json_incref(json_object_get(message, "parameters"));
    json_decref(message);
    return 0;
}
