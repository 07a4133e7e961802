/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/peer.h"

#include "daemon/config/config.h"
#include "daemon/service/log.h"

struct dmn_account *dmn_account_get(struct dmn_accounts *list, uid_t uid)
{
    struct dmn_account *a;

    LIST_FOREACH(a, list, linked) {
        if (a->uid == uid) {
            return a;
        }
    }
    a = calloc(1, sizeof(*a));
    if (a) {
        a->uid = uid;
        LIST_INSERT_HEAD(list, a, linked);
    }
    return a;
}

void dmn_account_trim(struct dmn_accounts *list)
{
    struct dmn_account *a, *next;

    for (a = LIST_FIRST(list); a; a = next) {
        next = LIST_NEXT(a, linked);
        if (a->connections == 0 && a->memory_bytes == 0 && a->inline_bytes == 0) {
            LIST_REMOVE(a, linked);
            free(a);
        }
    }
}

void dmn_refusals_add(struct dmn_refused_client all[DMN_REFUSALS],
                      const struct dmn_refused_client *r)
{
    struct dmn_refused_client *to = all;
    uint64_t count = 0;

    for (size_t i = 0; i < DMN_REFUSALS; i++) {
        struct dmn_refused_client *old = &all[i];

        if (old->count && old->pid == r->pid && old->what == r->what && old->status == r->status) {
            count = old->count;
            to = old;
            break;
        }
        if (old->last_ns < to->last_ns) {
            to = old;
        }
    }
    *to = *r;
    to->count = count + 1;
}

void dmn_peer_join(const struct dmn_peer *p, struct dmn_admission *a, struct dmn_queue *q)
{
    uid_t uid = p->account->uid;

    dmn_queue_join(a, q, uid, dmn_config_user_weight(*p->frames->config, uid));
}

size_t dmn_peer_backlog_max(const struct ipc_conn *c)
{
    return (size_t)dmn_config_int(*dmn_peer_of(c)->frames->config, DMN_KEY_LIMIT_BACKLOG_KIB) << 10;
}

void dmn_peer_refused(const struct dmn_peer *p, enum dmn_refused what, enum ipc_status status,
                      const char *why)
{
    struct dmn_refused_client r = {.pid = p->pid,
                                   .uid = p->account->uid,
                                   .what = what,
                                   .status = status,
                                   .last_ns = base_now_ns()};

    snprintf(r.client, sizeof(r.client), "%s", p->base.client);
    snprintf(r.why, sizeof(r.why), "%s", why);
    dmn_refusals_add(p->frames->refusals, &r);
}

void dmn_peer_failed(struct ipc_conn *c, enum ipc_status status, const char *text)
{
    const struct dmn_peer *p = dmn_peer_of(c);

    if (!text) {
        dmn_log_limited(LOG_ERR, (struct dmn_log_fields){.client = c->client},
                        "out of memory for an answer to client \"%s\"", c->client);
        return;
    }
    dmn_log_limited(LOG_INFO,
                    ((struct dmn_log_fields){.id = DMN_MSG_CLIENT_CLOSED, .client = c->client}),
                    "closing the connection of client \"%s\" (pid %d, user %u): %s", c->client,
                    (int)p->pid, (unsigned)p->account->uid, text);
    dmn_peer_refused(p, DMN_REFUSED_CONNECTION, status, text);
}

/* ---- the connection ---- */

static void on_closed(uv_handle_t *handle)
{
    struct dmn_peer *c = handle->data;

    ipc_conn_deinit(&c->base);
    free(c);
}

void dmn_peer_close(struct dmn_peer *c)
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
        dmn_peer_close(c);
    }
    return rc == IPC_E_MORE;
}

void dmn_peer_settle(struct dmn_peer *c)
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
        dmn_peer_close(c);
    }
    dmn_peer_settle(c);
}

void dmn_peer_take_in(struct dmn_peer *c)
{
    if (!read_rounds(c)) {
        dmn_peer_close(c);
    }
    while (!c->base.closed && answer(c)) {
        ipc_conn_handle(&c->base);
    }
    update_poll(c);
}

int dmn_peer_start(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid)
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
    dmn_loop_join(f->turns, &c->task, account->uid,
                  dmn_config_user_weight(*f->config, account->uid));
    ipc_conn_init(&c->base, &f->server, fd);
    account->connections++;
    c->task.run = run;
    update_poll(c);
    return 0;
}
