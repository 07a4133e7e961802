/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base.h"
#include "daemon/control/control.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"
#include "daemon/service/sockets.h"

#define BACKLOG_MAX (4u << 20) /* a client with more bytes of unread replies is disconnected */

struct write {
    uv_write_t request;
    char *data; /* owned */
};

static void work(struct dmn_control_conn *c);

static void call_free(struct dmn_call *c)
{
    json_decref(c->message);
    free(c->method);
    free(c);
}

static void on_closed(uv_handle_t *handle)
{
    struct dmn_control_conn *c = handle->data;

    ipc_varlink_reader_deinit(&c->reader);
    base_close_fd(&c->fd);
    free(c);
}

static void conn_close(struct dmn_control_conn *c)
{
    struct dmn_control *control = c->control;

    if (c->closing) {
        return;
    }
    c->closing = true;
    LIST_REMOVE(c, linked);
    control->count--;
    if (c->call) { /* its answer will go nowhere */
        struct dmn_call *call = base_take(c->call);

        call->conn = NULL;
        if (call->subscribed) {
            LIST_REMOVE(call, subscriber);
            call_free(call);
        }
    }
    if (control->reporter == c) {
        control->reporter = NULL;
        dmn_boards_reporter_gone(control->boards);
    }
    uv_close((uv_handle_t *)&c->pipe, on_closed);
}

static void on_written(uv_write_t *request, int status)
{
    struct write *w = base_container_of(request, struct write, request);
    struct dmn_control_conn *c = request->handle->data;

    free(w->data);
    free(w);
    if (c->closing) {
        return;
    }
    if (status < 0 ||
        (c->eof && !c->call && uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe) == 0)) {
        conn_close(c);
    }
}

/* Sends @data and takes it. */
static void send_bytes(struct dmn_control_conn *c, char *data, size_t bytes)
{
    struct write *w = calloc(1, sizeof(*w));
    uv_buf_t buf = uv_buf_init(data, (unsigned)bytes);

    if (!w || uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe) > BACKLOG_MAX) {
        free(w);
        free(data);
        conn_close(c);
        return;
    }
    w->data = data;
    if (uv_write(&w->request, (uv_stream_t *)&c->pipe, &buf, 1, on_written) < 0) {
        free(w->data);
        free(w);
        conn_close(c);
    }
}

static void answer(struct dmn_call *call, int error, char *data, size_t bytes, bool last)
{
    struct dmn_control_conn *c = call->conn;

    if (error) {
        data = NULL;
    }
    if (last) {
        if (call->subscribed) {
            LIST_REMOVE(call, subscriber);
        }
        if (c) {
            c->call = NULL;
        }
    }
    if (!c || call->oneway || !data) {
        free(data);
        if (c && error) {
            conn_close(c);
        }
    } else {
        send_bytes(c, data, bytes);
    }
    if (last) {
        call_free(call);
        /* do not run the next call here: whoever answers is in the middle of something */
        if (c && !c->closing && !c->working) {
            c->ready = c->control->ready = true;
        }
    }
}

bool dmn_control_settle(struct dmn_control *control)
{
    struct dmn_control_conn *c, *next;

    if (!control->ready) {
        return false;
    }
    control->ready = false;
    for (c = LIST_FIRST(&control->conns); c; c = next) {
        next = LIST_NEXT(c, linked); /* `c` stays valid: the loop frees a closed connection */
        if (c->ready && !c->closing) {
            c->ready = false;
            work(c);
        }
    }
    return true;
}

void dmn_call_reply(struct dmn_call *c, json_t *parameters, bool continues)
{
    char *data = NULL;
    size_t bytes = 0;
    int error = ipc_varlink_reply(parameters, continues, &data, &bytes);

    json_decref(parameters);
    answer(c, error, data, bytes, !continues);
}

void dmn_call_error(struct dmn_call *c, const char *error, const char *parameter, const char *text)
{
    json_t *parameters = parameter ? json_pack("{s:s}", parameter, text) : json_object();
    char name[128], *data = NULL;
    size_t bytes = 0;
    int failed;

    snprintf(name, sizeof(name), "%s%s", strchr(error, '.') ? "" : "io.piped.", error);
    if (parameter && !parameters) { /* text that is not UTF-8 */
        parameters = json_pack("{s:s}", parameter, "(unprintable)");
    }
    failed = ipc_varlink_error(name, parameters, &data, &bytes);
    json_decref(parameters);
    answer(c, failed, data, bytes, true);
}

void dmn_call_refuse(struct dmn_call *c, const struct dmn_outcome *o)
{
    static const struct {
        const char *error, *parameter;
    } names[] = {
        [DMN_REFUSED_BUSY] = {"Busy", "why"},           [DMN_REFUSED_LOAD] = {"LoadFailed", "why"},
        [DMN_REFUSED_NOT_FOUND] = {"NotFound", "what"}, [DMN_REFUSED_PLAN] = {"InvalidPlan", "why"},
        [DMN_REFUSED_RELOAD] = {"ReloadFailed", "why"},
    };

    dmn_call_error(c, names[o->reason].error, names[o->reason].parameter, o->text);
}

void dmn_call_done(void *call, const struct dmn_outcome *o)
{
    if (o) {
        dmn_call_refuse(call, o);
    } else {
        dmn_call_reply(call, NULL, false);
    }
}

void dmn_control_event(struct dmn_control *control, json_t *event)
{
    struct dmn_call *c, *next;

    for (c = LIST_FIRST(&control->subscribers); c; c = next) {
        next = LIST_NEXT(c, subscriber);
        dmn_call_reply(c, json_pack("{s:O}", "event", event), true);
    }
    json_decref(event);
}

/* Begins one call. Return: true; false: the connection is unusable. */
static bool begin_call(struct dmn_control_conn *c, json_t *message)
{
    struct ipc_varlink_call parsed;
    struct dmn_call *call;

    if (ipc_varlink_parse_call(message, &parsed) != 0) {
        json_decref(message);
        return false;
    }
    call = calloc(1, sizeof(*call));
    if (!call || !(call->method = strdup(parsed.method))) {
        free(call);
        json_decref(message);
        return false;
    }
    call->conn = c;
    call->control = c->control;
    call->message = message;
    call->parameters = parsed.parameters;
    call->more = parsed.more;
    call->oneway = parsed.oneway;
    c->call = call;
    call->control->dispatch(call);
    return true;
}

/* Runs calls one after the other; an unanswered call delays the next ones. */
static void work(struct dmn_control_conn *c)
{
    if (c->working) { /* answered within begin_call(): the loop below goes on */
        return;
    }
    c->working = true;
    while (!c->closing && !c->call) {
        json_t *message = NULL;
        int error = ipc_varlink_next(&c->reader, &message);

        if (error == IPC_VARLINK_E_NONE) {
            break;
        }
        if (error || !begin_call(c, message)) {
            conn_close(c);
        }
    }
    c->working = false;
    if (c->eof && !c->call && !c->closing &&
        uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe) == 0) {
        conn_close(c);
    }
}

static void on_taken(uv_handle_t *handle)
{
    free(handle);
}

/* libuv delivers every file descriptor as a pipe: duplicates it and closes the pipe. */
static void take_fds(struct dmn_control_conn *c)
{
    while (uv_pipe_pending_count(&c->pipe) > 0) {
        uv_pipe_t *taken = calloc(1, sizeof(*taken));
        uv_os_fd_t fd;

        if (!taken) {
            conn_close(c); /* closes what is pending */
            return;
        }
        uv_pipe_init(c->control->machine->loop, taken, 0);
        base_close_fd(&c->fd);
        if (uv_accept((uv_stream_t *)&c->pipe, (uv_stream_t *)taken) == 0 &&
            uv_fileno((uv_handle_t *)taken, &fd) == 0) {
            c->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        }
        uv_close((uv_handle_t *)taken, on_taken);
    }
}

int dmn_call_take_fd(struct dmn_call *c)
{
    int fd = c->conn ? c->conn->fd : -1;

    if (c->conn) {
        c->conn->fd = -1;
    }
    return fd;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct dmn_control_conn *c = handle->data;

    *buf = uv_buf_init(c->control->read_buffer, sizeof(c->control->read_buffer));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct dmn_control_conn *c = stream->data;

    take_fds(c);
    if (c->closing) {
        return;
    }
    if (n == UV_EOF) {
        c->eof = true;
        uv_read_stop(stream);
        if (c->call && c->call->subscribed) {
            conn_close(c);
        } else {
            work(c);
        }
    } else if (n < 0) {
        conn_close(c);
    } else if (n > 0) {
        if (ipc_varlink_feed(&c->reader, buf->base, (size_t)n) != 0) {
            conn_close(c);
        } else {
            work(c);
        }
    }
}

/* Return: why @c, which is in the list already, is refused; NULL: it is accepted. */
static const char *too_many(const struct dmn_control *control, const struct dmn_control_conn *c)
{
    const struct dmn_control_conn *at;
    size_t of_user = 0;

    if (control->count >
        (size_t)dmn_config_int(dmn_machine_config(control->machine), DMN_KEY_LIMIT_CONTROL)) {
        return "too many control connections (limits.control_connections)";
    }
    LIST_FOREACH(at, &control->conns, linked) {
        of_user += at->uid == c->uid;
    }
    if (c->uid != 0 && of_user > (size_t)dmn_config_int(dmn_machine_config(control->machine),
                                                        DMN_KEY_LIMIT_CONTROL_UID)) {
        return "too many control connections of this user (limits.control_connections_per_user)";
    }
    return NULL;
}

static void on_connection(uv_stream_t *server, int status)
{
    struct dmn_control *control = server->data;
    struct ucred peer = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t length = sizeof(peer);
    struct dmn_control_conn *c;
    const char *why;
    uv_os_fd_t fd;

    if (status < 0) {
        dmn_log_limited(LOG_ERR, (struct dmn_log_fields){0},
                        "cannot accept on the control socket: %s", uv_strerror(status));
        return;
    }
    c = calloc(1, sizeof(*c));
    if (!c) {
        return; /* libuv keeps it until the next accept */
    }
    c->control = control;
    c->fd = -1;
    uv_pipe_init(control->machine->loop, &c->pipe, 1); /* 1: file descriptors may come */
    c->pipe.data = c;
    LIST_INSERT_HEAD(&control->conns, c, linked);
    control->count++;
    if (uv_accept(server, (uv_stream_t *)&c->pipe) < 0 ||
        uv_fileno((uv_handle_t *)&c->pipe, &fd) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) {
        conn_close(c);
        return;
    }
    c->uid = peer.uid;
    c->gid = peer.gid;
    c->pid = peer.pid;
    why = too_many(control, c);
    if (why) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_CLIENT_REFUSED},
                        "refused a control client of user %u: %s", (unsigned)c->uid, why);
        conn_close(c);
        return;
    }
    if (uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read) < 0) {
        conn_close(c);
    }
}

int dmn_control_start(struct dmn_control *control, int fd, const char *path)
{
    int error;

    uv_pipe_init(control->machine->loop, &control->pipe, 0);
    control->pipe.data = control;
    control->listening = true;
    error = uv_pipe_open(&control->pipe, fd);
    if (error < 0) {
        close(fd);
        return error;
    }
    if (path && !(control->path = strdup(path))) {
        return -ENOMEM;
    }
    return uv_listen((uv_stream_t *)&control->pipe, 64, on_connection);
}

void dmn_control_stop_accepting(struct dmn_control *control)
{
    control->stopping = true;
    dmn_socket_remove(&control->path);
    if (control->listening) {
        control->listening = false;
        uv_close((uv_handle_t *)&control->pipe, NULL);
    }
}

void dmn_control_close_all(struct dmn_control *control)
{
    while (!LIST_EMPTY(&control->conns)) {
        conn_close(LIST_FIRST(&control->conns));
    }
}
