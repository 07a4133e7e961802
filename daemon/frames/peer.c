/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/peer.h"

#include "daemon/config/config.h"
#include "daemon/config/user_weights.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

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

void dmn_refusals_add(struct dmn_refusals *all, const struct dmn_refused_client *r)
{
    struct dmn_refused_client *to = &all->list[0];
    uint64_t count = 0;

    for (size_t i = 0; i < DMN_REFUSALS; i++) {
        struct dmn_refused_client *old = &all->list[i];

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
    const char *weights = dmn_config_string(*p->frames->config, DMN_KEY_LIMIT_USER_WEIGHTS);

    dmn_queue_join(a, q, p->account->uid, dmn_user_weight(weights, p->account->uid));
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
    dmn_refusals_add(&p->frames->refusals, &r);
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
