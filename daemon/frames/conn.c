/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/conn.h"

#include <stdio.h>

#include "base.h"
#include "daemon/config/config.h"
#include "daemon/config/user_weights.h"

static void on_closed(uv_handle_t *handle)
{
    struct dmn_conn *c = handle->data;

    close(c->peer.fd);
    dmn_peer_deinit(&c->peer);
    free(c);
}

void dmn_conn_close(struct dmn_conn *c)
{
    struct dmn_frames *f = c->peer.frames;

    if (c->peer.closed) {
        return;
    }
    dmn_peer_close(&c->peer);
    dmn_loop_leave(&c->task);
    LIST_REMOVE(c, linked);
    f->conn_count--;
    while (c->stream_count > 0) {
        dmn_stream_orphan(c->streams[--c->stream_count]);
    }
    ipc_intake_deinit(&c->intake);
    c->peer.account->connections--;
    dmn_account_trim(&f->accounts);
    uv_close((uv_handle_t *)&c->poll, on_closed);
}

void dmn_conn_end_stream(struct dmn_conn *c, struct dmn_stream *s)
{
    uint32_t id = s->id;

    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i] == s) {
            c->streams[i] = c->streams[--c->stream_count];
            break;
        }
    }
    dmn_stream_free(s);
    dmn_peer_send(&c->peer, (struct ipc_header){.type = IPC_CLOSED, .stream = id}, NULL, 0, NULL,
                  0);
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
    c->peer.fd = fd;
    c->peer.pid = pid;
    c->peer.account = account;
    c->since_ns = base_now_ns();
    snprintf(c->peer.client, sizeof(c->peer.client), "?");
    error = uv_poll_init(f->loop, &c->poll, fd);
    if (error < 0) {
        free(c);
        return error;
    }
    c->poll.data = c;
    dmn_loop_join(
        f->turns, &c->task, account->uid,
        dmn_user_weight(dmn_config_string(*f->config, DMN_KEY_LIMIT_USER_WEIGHTS), account->uid));
    LIST_INSERT_HEAD(&f->conns, c, linked);
    f->conn_count++;
    account->connections++;
    *ret = c;
    return 0;
}

void dmn_conn_tell_draining(struct dmn_conn *c)
{
    struct ipc_event_msg m = {.event = IPC_EVENT_DRAINING};
    uint8_t payload[IPC_EVENT_BYTES];

    ipc_put_event(&m, payload);
    dmn_peer_send(&c->peer, (struct ipc_header){.type = IPC_EVENT}, payload, sizeof(payload), NULL,
                  0);
}
