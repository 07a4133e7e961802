/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/control/control.h"

#include "base/json_text.h"
#include "ipc/json_memory.h"

struct write {
    uv_write_t request;
    char *data; /* owned */
};

static void call_free(struct dmn_call *c)
{
    json_decref(c->message);
    free(c->method);
    free(c);
}

/* Its connection is closing: nobody waits for its answer. */
static void leave(struct dmn_call *call)
{
    call->conn = NULL;
    if (call->subscribed) {
        LIST_REMOVE(call, subscriber);
        call_free(call);
    } else if (call->left && !call->oneway) {
        call->left(call, call->left_arg);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct dmn_control_conn *c = handle->data;

    ipc_varlink_reader_deinit(&c->reader);
    for (size_t i = 0; i < c->fd_count; i++) {
        base_close_fd(&c->fd[i]);
    }
    free(c);
}

void dmn_control_conn_close(struct dmn_control_conn *c)
{
    struct dmn_control *control = c->control;

    if (c->closing) {
        return;
    }
    c->closing = true;
    dmn_loop_leave(&c->task);
    LIST_REMOVE(c, linked);
    control->count--;
    if (c->call) {
        leave(base_take(c->call));
    }
    if (control->reporter == c) {
        control->reporter = NULL;
        dmn_boards_reporter_gone(control->boards);
    }
    uv_close((uv_handle_t *)&c->pipe, on_closed);
}

static size_t unread(const struct dmn_control_conn *c)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&c->pipe);
}

void dmn_control_conn_done(struct dmn_control_conn *c)
{
    if (c->eof && !c->call && !c->closing && !c->task.due && unread(c) == 0) {
        dmn_control_conn_close(c);
    }
}

int dmn_control_conn_fd(const struct dmn_control_conn *c)
{
    uv_os_fd_t fd;

    return uv_fileno((const uv_handle_t *)&c->pipe, &fd) < 0 ? -1 : fd;
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
    c->active_ns = base_now_ns();
    if (status < 0) {
        dmn_control_conn_close(c);
        return;
    }
    if (c->waits_for_reader && unread(c) <= DMN_CALL_AHEAD_MAX) {
        c->waits_for_reader = false;
        dmn_loop_due(&c->task);
    }
    dmn_control_conn_done(c);
}

/* Sends @data and takes it. */
static void send_bytes(struct dmn_control_conn *c, char *data, size_t bytes)
{
    struct write *w = calloc(1, sizeof(*w));
    uv_buf_t buf = uv_buf_init(data, (unsigned)bytes);

    if (!w || unread(c) > DMN_CALL_BACKLOG_MAX) {
        free(w);
        free(data);
        dmn_control_conn_close(c);
        return;
    }
    w->data = data;
    if (uv_write(&w->request, (uv_stream_t *)&c->pipe, &buf, 1, on_written) < 0) {
        free(w->data);
        free(w);
        dmn_control_conn_close(c);
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
            dmn_control_conn_close(c);
        }
    } else {
        send_bytes(c, data, bytes);
    }
    if (last) {
        call_free(call);
        /* do not begin the next call here: whoever answers is in the middle of something */
        if (c && !c->beginning) { /* else dmn_control_begin() goes on */
            c->read_ns = base_now_ns();
            dmn_loop_due(&c->task);
        }
    }
}

static char *copy(const char *data, size_t bytes)
{
    char *to = malloc(bytes);

    return to ? memcpy(to, data, bytes) : NULL;
}

void dmn_call_reply(struct dmn_call *c, json_t *parameters, bool continues)
{
    char *data = NULL;
    size_t bytes = 0;
    bool whole = parameters && !ipc_json_lacked();
    int error = whole ? ipc_varlink_reply(parameters, continues, &data, &bytes) : -ENOMEM;

    ipc_json_begin();
    json_decref(parameters);
    if (c->shared && !error) {
        free(c->shared->data);
        *c->shared = (struct dmn_shared_reply){copy(data, bytes), bytes, c->begun_ns};
    }
    answer(c, error, data, bytes, !continues);
}

bool dmn_call_shared(struct dmn_call *c, struct dmn_shared_reply *s)
{
    char *data = s->data && s->begun_ns > c->conn->read_ns ? copy(s->data, s->bytes) : NULL;

    if (data) {
        answer(c, 0, data, s->bytes, true);
        return true;
    }
    c->shared = s;
    c->begun_ns = base_now_ns();
    return false;
}

void dmn_control_forget(struct dmn_control *control)
{
    for (size_t i = 0; i < base_array_count(control->shared); i++) {
        free(control->shared[i].data);
        control->shared[i] = (struct dmn_shared_reply){0};
    }
}

/* @prefix: of the error's name. @parameter: NULL: it has none. */
static void refuse(struct dmn_call *c, const char *prefix, const char *error, const char *parameter,
                   const char *text)
{
    json_t *parameters =
        parameter ? json_pack("{s:o}", parameter, json_text_shown(text)) : json_object();
    char name[128], *data = NULL;
    size_t bytes = 0;
    int failed;

    snprintf(name, sizeof(name), "%s%s", prefix, error);
    failed = ipc_varlink_error(name, parameters, &data, &bytes);
    json_decref(parameters);
    answer(c, failed, data, bytes, true);
}

void dmn_call_error(struct dmn_call *c, const char *error, const char *format, ...)
{
    char text[2 * MDL_ERROR_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    refuse(c, "io.piped.", error, strcmp(error, "NotFound") == 0 ? "what" : "why", text);
}

void dmn_call_service_error(struct dmn_call *c, const char *error, const char *parameter,
                            const char *text)
{
    refuse(c, "org.varlink.service.", error, parameter, text);
}

void dmn_call_refuse(struct dmn_call *c, const struct dmn_outcome *o)
{
    static const char *const names[] = {[DMN_REFUSED_BUSY] = "Busy",
                                        [DMN_REFUSED_LOAD] = "LoadFailed",
                                        [DMN_REFUSED_NOT_FOUND] = "NotFound",
                                        [DMN_REFUSED_PLAN] = "InvalidPlan",
                                        [DMN_REFUSED_RELOAD] = "ReloadFailed"};

    dmn_call_error(c, names[o->reason], "%s", o->text);
}

void dmn_call_done(void *call, const struct dmn_outcome *o)
{
    if (o) {
        dmn_call_refuse(call, o);
    } else {
        dmn_call_reply(call, json_object(), false);
    }
}

static void kept(void *call, int error)
{
    struct dmn_call *c = call;

    if (error && !c->kept.noted && c->kept.failed) {
        json_decref(c->kept.reply);
        c->kept.failed(c, error);
        return;
    }
    if (error && c->kept.noted) {
        json_object_set_new(c->kept.noted, "note",
                            json_sprintf("not kept for the next start: %s", dmn_state_why(error)));
    }
    dmn_call_reply(c, c->kept.reply, false);
}

struct dmn_state_kept dmn_call_keep(struct dmn_call *c, json_t *reply, json_t *noted,
                                    void (*failed)(struct dmn_call *c, int error))
{
    c->kept.reply = reply;
    c->kept.noted = noted;
    c->kept.failed = failed;
    return (struct dmn_state_kept){kept, c};
}

void dmn_control_event(struct dmn_control *control, json_t *event)
{
    struct dmn_call *c, *next;

    if (control->event_traced) {
        control->event_traced(control, event);
    }
    for (c = LIST_FIRST(&control->subscribers); c; c = next) {
        next = LIST_NEXT(c, subscriber);
        dmn_call_reply(c, json_pack("{s:O}", "event", event), true);
    }
    json_decref(event);
}

size_t dmn_call_unread(const struct dmn_call *c)
{
    return c->conn ? unread(c->conn) : SIZE_MAX;
}

bool dmn_call_take_fds(struct dmn_call *c, size_t count, int *ret)
{
    struct dmn_control_conn *conn = c->conn;
    size_t older;

    if (!conn || conn->fd_count < count) {
        return false;
    }
    older = conn->fd_count - count;
    for (size_t i = 0; i < older; i++) {
        base_close_fd(&conn->fd[i]);
    }
    memcpy(ret, conn->fd + older, count * sizeof(*ret));
    conn->fd_count = 0;
    return true;
}

int dmn_call_take_fd(struct dmn_call *c)
{
    int fd;

    return dmn_call_take_fds(c, 1, &fd) ? fd : -1;
}
