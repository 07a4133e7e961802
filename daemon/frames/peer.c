/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/peer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/config/config.h"
#include "daemon/config/user_weights.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

void dmn_peer_deinit(struct dmn_peer *p)
{
    ipc_outgoing_deinit(&p->out);
}

void dmn_peer_settled(struct dmn_peer *p)
{
    if (p->unsettled) {
        p->unsettled = false;
        LIST_REMOVE(p, linked);
    }
}

void dmn_peer_close(struct dmn_peer *p)
{
    p->closed = true;
    dmn_peer_settled(p);
}

void dmn_peer_join(const struct dmn_peer *p, struct dmn_admission *a, struct dmn_queue *q)
{
    const char *weights = dmn_config_string(*p->frames->config, DMN_KEY_LIMIT_USER_WEIGHTS);

    dmn_queue_join(a, q, p->account->uid, dmn_user_weight(weights, p->account->uid));
}

bool dmn_peer_over_limit(const struct dmn_peer *p)
{
    size_t limit = (size_t)dmn_config_int(*p->frames->config, DMN_KEY_LIMIT_BACKLOG_KIB) << 10;

    return ipc_outgoing_waiting(&p->out) > limit;
}

void dmn_peer_send(struct dmn_peer *p, struct ipc_header h, const void *payload, size_t bytes,
                   const void *tail, size_t tail_bytes)
{
    if (p->closed || p->ending) { /* nothing follows an ERROR */
        return;
    }
    if (!ipc_outgoing_add(&p->out, h, payload, bytes, tail, tail_bytes)) {
        dmn_log_limited(LOG_ERR, (struct dmn_log_fields){.client = p->client},
                        "out of memory for an answer to client \"%s\"", p->client);
        p->ending = true;
    }
    dmn_peer_mark(p);
}

void dmn_peer_refused(const struct dmn_peer *p, enum dmn_refused what, enum ipc_status status,
                      const char *why)
{
    struct dmn_refused_client r = {.pid = p->pid,
                                   .uid = p->account->uid,
                                   .what = what,
                                   .status = status,
                                   .last_ns = base_now_ns()};

    snprintf(r.client, sizeof(r.client), "%s", p->client);
    snprintf(r.why, sizeof(r.why), "%s", why);
    dmn_refusals_add(&p->frames->refusals, &r);
}

void dmn_peer_fail(struct dmn_peer *p, enum ipc_status status, const char *format, ...)
{
    char text[IPC_TEXT_MAX];
    va_list args;

    if (p->ending || p->closed) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    dmn_log_limited(LOG_INFO,
                    ((struct dmn_log_fields){.id = DMN_MSG_CLIENT_CLOSED, .client = p->client}),
                    "closing the connection of client \"%s\" (pid %d, user %u): %s", p->client,
                    (int)p->pid, (unsigned)p->account->uid, text);
    dmn_peer_refused(p, DMN_REFUSED_CONNECTION, status, text);
    dmn_peer_send(p, (struct ipc_header){.type = IPC_ERROR, .status = (uint16_t)status}, NULL, 0,
                  text, strlen(text));
    p->ending = true;
}
