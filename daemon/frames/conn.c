/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/conn.h"

#include "daemon/config/config.h"
#include "daemon/config/user_weights.h"

static void on_closed(uv_handle_t *handle)
{
    struct dmn_conn *c = handle->data;

    ipc_conn_deinit(&c->peer.base);
    free(c);
}

void dmn_conn_close(struct dmn_conn *c)
{
    if (c->peer.base.closed) {
        return;
    }
    dmn_loop_leave(&c->task);
    ipc_conn_leave(&c->peer.base);
    c->peer.account->connections--;
    dmn_account_trim(&c->peer.frames->accounts);
    uv_close((uv_handle_t *)&c->poll, on_closed);
}

int dmn_conn_new(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid,
                 struct dmn_conn **ret)
{
    struct dmn_conn *c = calloc(1, sizeof(*c));
    int error;

    if (!c) {
        return -ENOMEM;
    }
    c->peer.frames = f;
    c->peer.pid = pid;
    c->peer.account = account;
    error = uv_poll_init(f->loop, &c->poll, fd);
    if (error < 0) {
        free(c);
        return error;
    }
    c->poll.data = c;
    dmn_loop_join(
        f->turns, &c->task, account->uid,
        dmn_user_weight(dmn_config_string(*f->config, DMN_KEY_LIMIT_USER_WEIGHTS), account->uid));
    ipc_conn_init(&c->peer.base, &f->server, fd);
    account->connections++;
    *ret = c;
    return 0;
}
