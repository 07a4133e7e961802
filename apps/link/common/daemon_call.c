/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/common/daemon_call.h"

#include "base/base.h"

#define RETRY_NS (250 * BASE_NS_PER_MS)
/* Each connection starts a service again that fails to start. */
#define NOT_STARTED_NS (10 * BASE_NS_PER_S)

void daemon_conn_init(struct daemon_conn *c, const char *path)
{
    *c = (struct daemon_conn){.path = path, .control = IPC_CONTROL_NULL};
}

void daemon_conn_deinit(struct daemon_conn *c)
{
    ipc_control_close(&c->control);
}

unsigned daemon_conn_up(const struct daemon_conn *c)
{
    return c->control.fd < 0 ? 0 : c->ups;
}

uint64_t daemon_conn_waits_ns(const struct daemon_conn *c, uint64_t now_ns)
{
    bool owes = c->pending_count > 0 && !c->pending[0].answered;

    return owes && now_ns > c->heard_ns ? now_ns - c->heard_ns : 0;
}

struct pollfd daemon_conn_poll(const struct daemon_conn *c)
{
    return ipc_control_poll(&c->control);
}

static void lost(struct daemon_conn *c, uint64_t now_ns)
{
    struct daemon_pending p[DAEMON_CALLS_MAX];
    size_t count = c->pending_count;

    ipc_control_close(&c->control);
    c->retry_ns = now_ns + (c->not_started ? NOT_STARTED_NS : RETRY_NS);
    c->not_started = false;
    memcpy(p, c->pending, sizeof(p));
    c->pending_count = 0;
    for (size_t i = 0; i < count; i++) {
        p[i].reply(p[i].arg, DAEMON_LOST, NULL);
    }
}

int daemon_conn_call(struct daemon_conn *c, const char *method, json_t *parameters, bool more,
                     daemon_reply *reply, void *arg)
{
    int rc = c->pending_count == DAEMON_CALLS_MAX
                 ? -EBUSY
                 : ipc_control_call(&c->control, method, parameters, more, NULL, 0);

    json_decref(parameters);
    if (rc < 0) {
        return rc;
    }
    c->heard_ns = c->pending_count == 0 ? base_now_ns() : c->heard_ns;
    c->pending[c->pending_count++] = (struct daemon_pending){reply, arg, false};
    return 0;
}

/* A call whose reply continues stays the first that waits. Return: false: not a reply to a call. */
static bool take_reply(struct daemon_conn *c, const struct ipc_control_reply *r)
{
    struct daemon_pending first = c->pending[0];

    c->not_started |= r->error && strcmp(r->error, IPC_VARLINK_NOT_STARTED) == 0;
    if (c->pending_count == 0) {
        return false;
    }
    c->heard_ns = base_now_ns();
    c->pending[0].answered = true;
    if (!r->continues) {
        c->pending_count--;
        memmove(c->pending, c->pending + 1, c->pending_count * sizeof(first));
    }
    first.reply(first.arg, r->error, r->parameters);
    return true;
}

/* Return: false: the connection is unusable. */
static bool take_replies(struct daemon_conn *c)
{
    struct ipc_control_reply r;
    bool good = true;
    int rc;

    while (good && (rc = ipc_control_next(&c->control, &r)) == 0) {
        good = take_reply(c, &r);
        json_decref(r.message);
    }
    return good && rc == IPC_CONTROL_E_NONE;
}

void daemon_conn_go(struct daemon_conn *c, uint64_t now_ns)
{
    if (c->control.fd < 0 && now_ns >= c->retry_ns) {
        if (ipc_control_connect(&c->control, c->path, false) < 0) {
            c->retry_ns = now_ns + RETRY_NS;
            return;
        }
        c->ups++;
    }
    if (c->control.fd >= 0) {
        ipc_control_go(&c->control);
        if (!take_replies(c)) {
            lost(c, now_ns);
        }
    }
}
