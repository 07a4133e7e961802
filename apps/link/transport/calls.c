/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of whichever transport is open. */
#include "apps/link/transport/transport.h"

#include "apps/link/transport/code.h"
#include "base/base.h"

int lnk_transport_open(const struct lnk_config *config, struct lnk_transport **ret,
                       char ret_error[256])
{
    const struct lnk_code *codes[] = {lnk_zmq_code, lnk_mpi_code};

    ret_error[0] = 0;
    if (config->peer_count > LNK_PEERS_MAX) {
        snprintf(ret_error, 256, "%zu boards are more than %u", config->peer_count, LNK_PEERS_MAX);
        return -EINVAL;
    }
    for (size_t i = 0; i < base_array_count(codes); i++) {
        if (codes[i] && strcmp(codes[i]->kind, config->kind) == 0) {
            return codes[i]->open(config, ret, ret_error);
        }
    }
    snprintf(ret_error, 256, "this build has no transport \"%.16s\"", config->kind);
    return -ENOTSUP;
}

struct lnk_transport *lnk_transport_close(struct lnk_transport *t)
{
    if (t) {
        t->code->close(t);
    }
    return NULL;
}

int lnk_transport_fd(const struct lnk_transport *t)
{
    return t->fd;
}

void lnk_transport_dispatch(struct lnk_transport *t)
{
    t->code->dispatch(t);
}

uint16_t lnk_transport_port(const struct lnk_transport *t)
{
    return t->port;
}

int lnk_send(struct lnk_transport *t, size_t peer, enum lnk_lane lane, struct lnk_bytes first,
             const struct lnk_bytes *range, size_t count, void (*released)(void *arg), void *arg)
{
    int rc;

    if (peer >= t->peer_count || count > LNK_RANGES_MAX || first.bytes == 0 || lane >= LNK_LANES) {
        return -EINVAL;
    }
    rc = t->code->send(t, peer, lane, first, range, count, released, arg);
    t->peer[peer].messages_out += rc == 0;
    t->peer[peer].refused_full += rc == LNK_E_FULL;
    return rc;
}

int lnk_transport_wire(const struct lnk_transport *t, size_t peer, struct lnk_wire_use *ret)
{
    return !t->peer[peer].up ? LNK_E_DOWN : t->code->wire ? t->code->wire(t, peer, ret) : -ENOTSUP;
}

void lnk_transport_redial(struct lnk_transport *t, size_t peer, const char *why)
{
    if (t->code->redial) {
        t->code->redial(t, peer, why);
    }
}

void lnk_transport_stats(const struct lnk_transport *t, size_t peer, struct lnk_peer_stats *ret,
                         struct lnk_transport_stats *ret_all)
{
    *ret = t->peer[peer];
    *ret_all = t->all;
}
