/* SPDX-License-Identifier: Apache-2.0 */
/* Control connections: who gets a place, and what they send. */
#include <poll.h>
#include <sys/socket.h>

#include "base/base.h"
#include "daemon/control/methods.h"
#include "daemon/control/tracing.h"
#include "daemon/service/log.h"
#include "ipc/json_memory.h"
#include "ipc/listen.h"
#include "ipc/varlink.h"

/* Bytes of a call of who may change nothing: those calls have few parameters, and JSON takes the
 * loop's time. */
#define SMALL_MAX (64u << 10)

/* A client that has just connected, or thinks between two calls, is not idle yet. */
#define IDLE_NS BASE_NS_PER_S

static size_t limit(const struct dmn_control *control, enum dmn_config_id key)
{
    return (size_t)dmn_config_int(dmn_machine_config(control->machine), key);
}

/* Keeps a descriptor for the call that takes it, in place of the oldest if there are too many. Who
 * may change nothing has no use for more than one. */
static void hold_fd(struct dmn_control_conn *c, int fd)
{
    size_t most = base_array_count(c->fd);

    if (fd < 0) {
        return;
    }
    if (c->fd_count == 1 &&
        !dmn_users_may_change(c->control->users, &c->peer, dmn_control_conn_fd(c))) {
        most = 1;
    }
    if (c->fd_count == most) {
        base_close_fd(&c->fd[0]);
        memmove(c->fd, c->fd + 1, (most - 1) * sizeof(c->fd[0]));
        c->fd_count--;
    }
    c->fd[c->fd_count++] = fd;
}

/* libuv delivers every file descriptor as a pipe: duplicates it and closes the pipe. */
static void take_fds(struct dmn_control_conn *c)
{
    while (uv_pipe_pending_count(&c->pipe) > 0) {
        uv_pipe_t *taken = calloc(1, sizeof(*taken));
        uv_os_fd_t fd;

        if (!taken) {
            dmn_control_conn_close(c); /* closes what is pending */
            return;
        }
        uv_pipe_init(c->control->machine->loop, taken, 0);
        taken->data = taken;
        if (uv_accept((uv_stream_t *)&c->pipe, (uv_stream_t *)taken) == 0 &&
            uv_fileno((uv_handle_t *)taken, &fd) == 0) {
            hold_fd(c, fcntl(fd, F_DUPFD_CLOEXEC, 0));
        }
        uv_close((uv_handle_t *)taken, dmn_handle_free);
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct dmn_control_conn *c = handle->data;

    *buf = uv_buf_init(c->control->read_buffer, sizeof(c->control->read_buffer));
}

/* Return: the call that comes is not too large for who sends it. */
static bool may_send(struct dmn_control_conn *c)
{
    const struct dmn_users *users = c->control->users;

    if (c->reader.tail > SMALL_MAX && !c->large) {
        c->large = dmn_users_may_change(users, &c->peer, dmn_control_conn_fd(c)) ||
                   dmn_users_is_link(users, c->peer.uid);
        return c->large;
    }
    return true;
}

/* One read: libuv would go on for as long as the client sends. */
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct dmn_control_conn *c = stream->data;
    struct dmn_loop_user *user = c->task.user;
    uint64_t begun_ns = base_now_ns();

    take_fds(c);
    if (c->closing || n == 0) {
        return;
    }
    uv_read_stop(stream);
    c->eof = n == UV_EOF;
    if (n > 0) {
        c->active_ns = c->read_ns = begun_ns;
    }
    if ((n < 0 && !c->eof) || (c->eof && c->call && c->call->subscribed) ||
        (n > 0 && (ipc_varlink_feed(&c->reader, buf->base, (size_t)n) != 0 || !may_send(c)))) {
        dmn_control_conn_close(c);
    }
    dmn_loop_charge(c->control->turns, user, begun_ns);
    dmn_loop_due(&c->task);
}

static void read_on(struct dmn_control_conn *c)
{
    if (!c->eof && !c->closing && !uv_is_active((uv_handle_t *)&c->pipe) &&
        uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read) < 0) {
        dmn_control_conn_close(c);
    }
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
    c->called = true;
    ipc_json_begin();
    dmn_control_dispatch(call);
    return true;
}

/* Begins the next call, unless one is in progress, or the client has too much to read. */
static bool begin_next(struct dmn_control_conn *c)
{
    json_t *message = NULL;
    int error;

    if (c->call || c->closing) {
        return false;
    }
    c->waits_for_reader =
        uv_stream_get_write_queue_size((const uv_stream_t *)&c->pipe) > DMN_CALL_AHEAD_MAX;
    if (c->waits_for_reader) {
        return false;
    }
    error = ipc_varlink_next(&c->reader, &message);
    if (error == IPC_VARLINK_E_NONE) {
        return false;
    }
    if (error || !begin_call(c, message)) {
        dmn_control_conn_close(c);
    }
    return !c->closing;
}

/* It has its turn: begins the calls that came, one after the other. May close the connection. */
static void begin(struct dmn_loop_task *task)
{
    struct dmn_control_conn *c = base_container_of(task, struct dmn_control_conn, task);

    c->beginning = true;
    while (begin_next(c)) {
        if (dmn_loop_over(c->control->turns)) {
            dmn_loop_due(task);
            break;
        }
    }
    c->beginning = false;
    if (!task->due && !c->waits_for_reader) {
        read_on(c);
    }
    dmn_control_conn_done(c);
}

static size_t held_by(const struct dmn_control *control, uid_t uid)
{
    const struct dmn_control_conn *c;
    size_t count = 0;

    LIST_FOREACH(c, &control->conns, linked) {
        count += c->peer.uid == uid;
    }
    return count;
}

/* Return: @c may make room for a new connection of @uid, which holds @held: it waits for nothing,
 * and its user holds more, or is the same, or places are kept for the new one. */
static bool may_go(const struct dmn_control_conn *c, uid_t uid, size_t held, uint64_t now_ns)
{
    const struct dmn_users *users = c->control->users;

    if (c->call || c->task.due || c->control->reporter == c || now_ns < c->active_ns + IDLE_NS) {
        return false;
    }
    return c->peer.uid == uid || dmn_users_keep_place(users, uid) ||
           (!dmn_users_keep_place(users, c->peer.uid) && held_by(c->control, c->peer.uid) > held);
}

/* Return: the idlest connection of the user with the most, among those that may make room for a new
 * one of @uid; NULL: there is none. @of_user: only its own may. */
static struct dmn_control_conn *find_idle(struct dmn_control *control, uid_t uid, bool of_user)
{
    size_t held = held_by(control, uid), most = 0;
    struct dmn_control_conn *c, *found = NULL;
    uint64_t now = base_now_ns();

    LIST_FOREACH(c, &control->conns, linked) {
        size_t holds;

        if ((of_user && c->peer.uid != uid) || !may_go(c, uid, held, now)) {
            continue;
        }
        holds = held_by(control, c->peer.uid);
        if (!found || holds > most || (holds == most && c->active_ns < found->active_ns)) {
            most = holds;
            found = c;
        }
    }
    return found;
}

/* Makes room for one more connection of @uid if need be. Return: NULL: there is room; @ret: why
 * there is none. */
static const char *make_room(struct dmn_control *control, uid_t uid, char ret[IPC_PLACE_TEXT_MAX])
{
    const struct ipc_places places = {.most = limit(control, DMN_KEY_LIMIT_CONTROL),
                                      .of_user = limit(control, DMN_KEY_LIMIT_CONTROL_UID),
                                      .kept = limit(control, DMN_KEY_LIMIT_KEPT)};
    bool keeps = dmn_users_keep_place(control->users, uid);

    for (;;) {
        enum ipc_place place = ipc_place_for(&places, control->count, held_by(control, uid), keeps);
        struct dmn_control_conn *c;

        if (place == IPC_PLACE_FREE) {
            return NULL;
        }
        c = find_idle(control, uid, place == IPC_PLACE_NONE_OF_USER);
        if (!c) {
            return ipc_place_text(place, &places, "control connections",
                                  "limits.control_connections", uid, ret);
        }
        dmn_log_limited(LOG_INFO, (struct dmn_log_fields){.id = DMN_MSG_CLIENT_CLOSED},
                        "closing an idle control connection of user %u (pid %d): user %u needs "
                        "its place",
                        (unsigned)c->peer.uid, (int)c->peer.pid, (unsigned)uid);
        dmn_control_conn_close(c);
    }
}

/* Answers the call that the client is about to make. */
static void refuse(int fd, const struct ucred *peer, const char *why)
{
    json_auto_t *parameters = json_pack("{s:s}", "why", why);
    base_autofree char *message = NULL;
    size_t bytes;

    dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_CLIENT_REFUSED},
                    "refused a control client of user %u: %s", (unsigned)peer->uid, why);
    if (parameters && ipc_varlink_error("io.piped.Busy", parameters, &message, &bytes) == 0) {
        (void)!send(fd, message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    close(fd);
}

static void on_accepted(void *ctx, int fd, const struct ucred *peer)
{
    struct dmn_control *control = ctx;
    char text[IPC_PLACE_TEXT_MAX];
    const char *why = make_room(control, peer->uid, text);
    struct dmn_control_conn *c = why ? NULL : calloc(1, sizeof(*c));

    if (!c) {
        refuse(fd, peer, why ? why : "out of memory");
        return;
    }
    c->control = control;
    c->peer = *peer;
    c->since_ns = c->active_ns = base_now_ns();
    uv_pipe_init(control->machine->loop, &c->pipe, 1); /* 1: file descriptors may come */
    c->pipe.data = c;
    c->task.run = begin;
    dmn_loop_join(control->turns, &c->task, peer->uid,
                  dmn_config_user_weight(dmn_machine_config(control->machine), peer->uid));
    LIST_INSERT_HEAD(&control->conns, c, linked);
    control->count++;
    if (uv_pipe_open(&c->pipe, fd) < 0) {
        close(fd);
        dmn_control_conn_close(c);
        return;
    }
    read_on(c);
}

int dmn_control_start(struct dmn_control *control, int fd, struct ipc_socket_file *file)
{
    control->acceptor.loop = control->machine->loop;
    control->acceptor.turns = control->turns;
    control->acceptor.name = "control socket";
    control->acceptor.accepted = on_accepted;
    control->acceptor.ctx = control;
    return dmn_acceptor_start(&control->acceptor, fd, file);
}

void dmn_control_stop_accepting(struct dmn_control *control)
{
    control->stopping = true;
    dmn_acceptor_stop(&control->acceptor);
}

void dmn_control_close_all(struct dmn_control *control)
{
    while (!LIST_EMPTY(&control->conns)) {
        dmn_control_conn_close(LIST_FIRST(&control->conns));
    }
    dmn_tracing_stop(control);
    dmn_control_forget(control);
}

/* A client that has said all may still read; one that has closed does not. */
static bool hung_up(const struct dmn_control_conn *c)
{
    struct pollfd p = {.fd = dmn_control_conn_fd(c)};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

void dmn_control_tick(struct dmn_control *control, uint64_t now_ns, uint64_t held_ns)
{
    size_t limit_s = limit(control, DMN_KEY_LIMIT_HANDSHAKE_S);
    struct dmn_control_conn *c, *next;

    dmn_control_forget(control);
    dmn_control_progress(control);
    for (c = LIST_FIRST(&control->conns); c; c = next) {
        next = LIST_NEXT(c, linked);
        c->since_ns += held_ns;
        c->active_ns += held_ns;
        if (c->call && c->call->left && !c->call->oneway && hung_up(c)) {
            c->call->left(c->call, c->call->left_arg);
        }
        if (c->called || now_ns < c->since_ns + limit_s * BASE_NS_PER_S) {
            continue;
        }
        if (c->overdue) {
            dmn_log_limited(LOG_INFO, (struct dmn_log_fields){.id = DMN_MSG_CLIENT_CLOSED},
                            "closing a control connection of user %u (pid %d): no call within "
                            "%zu s of connecting (limits.handshake_s)",
                            (unsigned)c->peer.uid, (int)c->peer.pid, limit_s);
            dmn_control_conn_close(c);
        } else { /* what came while the loop was held up is read before the next tick */
            c->overdue = true;
        }
    }
}
