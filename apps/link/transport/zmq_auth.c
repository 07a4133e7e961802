/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroMQ: who may connect, and whose message it is. */

#include "apps/link/transport/zmq_private.h"
#include "base/base.h"

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"
#define ZAP_FRAMES 7u /* version, id, domain, address, routing id, mechanism, key */
#define USER "User-Id"

int zl_auth_open(struct zl *z)
{
    z->auth = zmq_socket(z->context, ZMQ_REP);
    if (!z->auth || zl_set_int(z->auth, ZMQ_LINGER, 0) < 0 || zmq_bind(z->auth, ZAP_ENDPOINT) < 0) {
        return -zmq_errno();
    }
    return zl_watch(z, z->auth, &z->auth_news);
}

static size_t find_key(const struct zl *z, const void *key, size_t bytes)
{
    for (size_t i = 0; i < z->base.peer_count && bytes == LNK_KEY_BYTES; i++) {
        if (memcmp(z->peer[i].is.key, key, LNK_KEY_BYTES) == 0) {
            return i;
        }
    }
    return LNK_PEERS_MAX;
}

static void answer(struct zl *z, const void *id, size_t id_bytes, size_t peer)
{
    bool yes = z->trusted_wire || peer < LNK_PEERS_MAX;
    char user[16];
    int n = snprintf(user, sizeof(user), "%zu", peer);

    zmq_send(z->auth, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(z->auth, id, id_bytes, ZMQ_SNDMORE);
    zmq_send(z->auth, yes ? "200" : "400", 3, ZMQ_SNDMORE);
    zmq_send(z->auth, yes ? "yes" : "no", yes ? 3 : 2, ZMQ_SNDMORE);
    zmq_send(z->auth, user, yes ? (size_t)n : 0, ZMQ_SNDMORE);
    zmq_send(z->auth, "", 0, 0);
}

void zl_auth_dispatch(struct zl *z)
{
    for (;;) {
        uint8_t frame[ZAP_FRAMES][64];
        size_t bytes[ZAP_FRAMES] = {0}, count = 0, peer = LNK_PEERS_MAX;
        int more = 1;

        for (; more; count++) {
            uint8_t unused[64];
            size_t size = sizeof(more);
            int n = zmq_recv(z->auth, count < ZAP_FRAMES ? frame[count] : unused, 64, ZMQ_DONTWAIT);

            if (n < 0) {
                return;
            }
            if (count < ZAP_FRAMES) {
                bytes[count] = (size_t)n;
            }
            zmq_getsockopt(z->auth, ZMQ_RCVMORE, &more, &size);
        }
        if (count == ZAP_FRAMES && bytes[5] == 5 && memcmp(frame[5], "CURVE", 5) == 0) {
            peer = find_key(z, frame[6], bytes[6]);
        }
        answer(z, frame[1], base_min(bytes[1], sizeof(frame[1])), peer);
    }
}

size_t zl_who(struct zl *z, zmq_msg_t *identity)
{
    const uint8_t *claimed = zmq_msg_data(identity);
    const char *user;
    size_t peer;
    char *end;

    if (z->trusted_wire) { /* a letter for the lane, and the key */
        return zmq_msg_size(identity) == LNK_KEY_BYTES + 1 ? find_key(z, claimed + 1, LNK_KEY_BYTES)
                                                           : LNK_PEERS_MAX;
    }
    user = zmq_msg_gets(identity, USER);
    if (!user || !*user) {
        return LNK_PEERS_MAX;
    }
    peer = strtoul(user, &end, 10);
    return *end == 0 && peer < z->base.peer_count ? peer : LNK_PEERS_MAX;
}
