/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/conn.h"

#include "daemon/config/config.h"
#include "daemon/config/user_weights.h"
#include "ipc/server/receiving.h"

static void on_closed(uv_handle_t *handle)
{
    struct dmn_peer *c = handle->data;

    ipc_conn_deinit(&c->base);
    free(c);
}

void dmn_conn_close(struct dmn_peer *c)
{
    if (c->base.closed) {
        return;
    }
    dmn_loop_leave(&c->task);
    ipc_conn_leave(&c->base);
    c->account->connections--;
    dmn_account_trim(&c->frames->accounts);
    uv_close((uv_handle_t *)&c->poll, on_closed);
}

/* Handles what has come, and reads on. Return: false: the connection has ended. */
static bool read_rounds(struct dmn_peer *c)
{
    int rc = ipc_conn_read(&c->base);

    if (rc == IPC_E_MORE) {
        dmn_loop_due(&c->task);
    }
    return rc != IPC_E_ENDED;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct dmn_peer *c = poll->data;

    c->broken |= status < 0;
    c->hung_up |= events & UV_DISCONNECT;
    if (status < 0 || events & (UV_READABLE | UV_DISCONNECT)) {
        dmn_loop_due(&c->task);
    }
    if (events & UV_WRITABLE) {
        ipc_conn_mark(&c->base);
    }
}

static void update_poll(struct dmn_peer *c)
{
    int events = 0;

    if (c->base.closed) {
        return;
    }
    if (!c->task.due) { /* else it is known that it has something */
        events = UV_DISCONNECT | (ipc_conn_wants(&c->base) ? UV_READABLE : 0);
    }
    if (ipc_outgoing_waiting(&c->base.out) > 0) {
        events |= UV_WRITABLE;
    }
    if (events == c->events) {
        return;
    }
    c->events = events;
    if (events) {
        uv_poll_start(&c->poll, events, on_poll);
    } else {
        uv_poll_stop(&c->poll);
    }
}

/* Answers what is DONE, and writes. Return: messages in the buffer that had no room may have it
 * now. */
static bool answer(struct dmn_peer *c)
{
    int rc = ipc_conn_answer(&c->base);

    if (rc == IPC_E_ENDED) {
        dmn_conn_close(c);
    }
    return rc == IPC_E_MORE;
}

void dmn_conn_settle(struct dmn_peer *c)
{
    if (c->base.closed) {
        return;
    }
    if (answer(c)) {
        dmn_loop_due(&c->task);
    }
    update_poll(c);
}

/* A piece of the connection's work, with its answers. */
static void run(struct dmn_loop_task *task)
{
    struct dmn_peer *c = base_container_of(task, struct dmn_peer, task);

    if (c->broken || (c->hung_up && !ipc_conn_wants(&c->base)) || !read_rounds(c)) {
        dmn_conn_close(c);
    }
    dmn_conn_settle(c);
}

void dmn_conn_take_in(struct dmn_peer *c)
{
    if (!read_rounds(c)) {
        dmn_conn_close(c);
    }
    while (!c->base.closed && answer(c)) {
        ipc_conn_handle(&c->base);
    }
    update_poll(c);
}

int dmn_conn_start(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid)
{
    struct dmn_peer *c = calloc(1, sizeof(*c));
    int error;

    if (!c) {
        return -ENOMEM;
    }
    c->frames = f;
    c->pid = pid;
    c->account = account;
    error = uv_poll_init(f->loop, &c->poll, fd);
    if (error < 0) {
        free(c);
        return error;
    }
    c->poll.data = c;
    dmn_loop_join(
        f->turns, &c->task, account->uid,
        dmn_user_weight(dmn_config_string(*f->config, DMN_KEY_LIMIT_USER_WEIGHTS), account->uid));
    ipc_conn_init(&c->base, &f->server, fd);
    account->connections++;
    c->task.run = run;
    update_poll(c);
    return 0;
}
