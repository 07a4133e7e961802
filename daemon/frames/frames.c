/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/frames.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base.h"
#include "daemon/config/config.h"
#include "daemon/frames/model_events.h"
#include "daemon/frames/polling.h"
#include "daemon/frames/preparing.h"
#include "daemon/service/client_places.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"
#include "ipc/server/pool_guard.h"
#include "pixfmt.h"

/* Sends an ERROR, as far as the socket's buffer has room, and closes. */
static void refuse(struct dmn_frames *f, int fd, const struct ucred *peer, enum dmn_unplaced why,
                   const char *text)
{
    struct dmn_refused_client refusal = {.client = "?",
                                         .pid = peer->pid,
                                         .uid = peer->uid,
                                         .what = DMN_REFUSED_CONNECTION,
                                         .status = IPC_RESOURCE_EXHAUSTED,
                                         .last_ns = base_now_ns()};
    uint8_t bytes[IPC_HEADER_BYTES + IPC_TEXT_MAX];
    size_t count = ipc_put_error(IPC_RESOURCE_EXHAUSTED, text, bytes);

    snprintf(refusal.why, sizeof(refusal.why), "%s", text);
    dmn_refusals_add(&f->refusals, &refusal);
    if (send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        text = "the reason could not be sent";
    }
    close(fd);
    f->refused[why]++;
    dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_CLIENT_REFUSED},
                    "refused a client of user %u: %s", (unsigned)peer->uid, text);
}

static size_t limit(const struct dmn_frames *f, enum dmn_config_id key)
{
    return (size_t)dmn_config_int(*f->config, key);
}

static struct dmn_places places_of(const struct dmn_frames *f)
{
    return (struct dmn_places){.most = limit(f, DMN_KEY_LIMIT_CONNECTIONS),
                               .of_user = limit(f, DMN_KEY_LIMIT_CONNECTIONS_UID),
                               .kept = limit(f, DMN_KEY_LIMIT_KEPT)};
}

static void on_accepted(void *ctx, int fd, const struct ucred *peer)
{
    struct dmn_frames *f = ctx;
    struct dmn_account *a = dmn_account_get(&f->accounts, peer->uid);
    const struct dmn_places places = places_of(f);
    enum dmn_place place = DMN_PLACE_FREE;
    char why[DMN_PLACE_TEXT_MAX];

    if (a) {
        place = dmn_place_for(&places, f->conn_count, a->connections,
                              dmn_users_keep_place(f->users, a->uid));
    }
    if (place != DMN_PLACE_FREE) {
        refuse(f, fd, peer, place == DMN_PLACE_NONE ? DMN_UNPLACED_LIMIT : DMN_UNPLACED_USER,
               dmn_place_text(place, &places, "connections", "limits.connections", peer->uid, why));
    } else if (!a || dmn_polling_start(f, fd, a, peer->pid) < 0) {
        refuse(f, fd, peer, DMN_UNPLACED_MEMORY, "out of memory for the connection; try again");
    }
    dmn_account_trim(&f->accounts);
}

int dmn_frames_start(struct dmn_frames *f, int fd, struct ipc_socket_file *file)
{
    int error;

    if (getrandom(&f->instance, sizeof(f->instance), GRND_NONBLOCK) != sizeof(f->instance)) {
        f->instance = base_now_ns() ^ ((uint64_t)getpid() << 40);
    }
    dmn_preparing_start(f);
    error = ipc_pool_guard_start();
    if (error < 0) {
        dmn_log(LOG_WARNING,
                "userfaultfd: %s; a client that punches holes into its pool lets piped pay for the "
                "pages",
                strerror(-error));
    }
    f->acceptor.loop = f->loop;
    f->acceptor.turns = f->turns;
    f->acceptor.name = "frames socket";
    f->acceptor.accepted = on_accepted;
    f->acceptor.ctx = f;
    return dmn_acceptor_start(&f->acceptor, fd, file);
}

void dmn_frames_stop_preparing(struct dmn_frames *f)
{
    dmn_preparing_stop(f);
}

void dmn_frames_stop_accepting(struct dmn_frames *f)
{
    dmn_acceptor_stop(&f->acceptor);
}

void dmn_frames_settle(struct dmn_frames *f)
{
    while (!LIST_EMPTY(&f->unsettled)) {
        struct dmn_peer *p = LIST_FIRST(&f->unsettled);
        struct dmn_conn *c = base_container_of(p, struct dmn_conn, peer);
        struct dmn_loop_user *user = c->task.user; /* it may leave */
        uint64_t begun_ns = base_now_ns();

        dmn_polling_settle(c);
        dmn_loop_charge(f->turns, user, begun_ns);
    }
}

void dmn_frames_take_in(struct dmn_frames *f)
{
    struct dmn_conn *c, *next;

    for (c = LIST_FIRST(&f->conns); c; c = next) {
        next = LIST_NEXT(c, linked);
        dmn_polling_take_in(c);
    }
    dmn_frames_settle(f);
}

void dmn_frames_drain_begin(struct dmn_frames *f)
{
    struct dmn_conn *c;

    dmn_frames_take_in(f); /* frames sent before the stop still count */
    f->draining = true;
    LIST_FOREACH(c, &f->conns, linked) {
        if (c->greeted) {
            dmn_conn_tell_draining(c);
        }
    }
}

bool dmn_frames_drained(const struct dmn_frames *f)
{
    const struct dmn_conn *c;

    LIST_FOREACH(c, &f->conns, linked) {
        if (ipc_outgoing_waiting(&c->peer.out)) {
            return false;
        }
        for (size_t i = 0; i < c->stream_count; i++) {
            if (!dmn_stream_empty(c->streams[i])) {
                return false;
            }
        }
    }
    return true;
}

void dmn_frames_close_all(struct dmn_frames *f)
{
    while (!LIST_EMPTY(&f->conns)) {
        dmn_conn_close(LIST_FIRST(&f->conns));
    }
    dmn_account_trim(&f->accounts);
}

/* Ends a connection that has sent no HELLO in time. What came while the loop was held up counts. */
static void check_greeting(struct dmn_conn *c, uint64_t now_ns)
{
    size_t limit_s = limit(c->peer.frames, DMN_KEY_LIMIT_HANDSHAKE_S);

    if (c->greeted || now_ns < c->since_ns + limit_s * BASE_NS_PER_S) {
        return;
    }
    dmn_polling_take_in(c);
    if (!c->greeted) {
        dmn_peer_fail(&c->peer, IPC_DEADLINE_EXCEEDED,
                      "no HELLO within %zu s of connecting (limits.handshake_s)", limit_s);
    }
    dmn_peer_mark(&c->peer);
}

/* Clients get their time again that nobody was there to listen. */
static void give_time(struct dmn_conn *c, uint64_t held_ns)
{
    c->since_ns += held_ns;
    c->peer.out.stuck_ns += c->peer.out.stuck_ns ? held_ns : 0;
}

void dmn_frames_tick(struct dmn_frames *f, uint64_t now_ns, uint64_t held_ns)
{
    uint64_t slow_ns = limit(f, DMN_KEY_LIMIT_SLOW_S) * BASE_NS_PER_S;
    struct dmn_conn *c, *next;

    for (c = LIST_FIRST(&f->conns); c; c = next) {
        uint64_t stuck_ns;

        next = LIST_NEXT(c, linked);
        give_time(c, held_ns);
        stuck_ns = c->peer.out.stuck_ns;
        check_greeting(c, now_ns);
        if (stuck_ns && now_ns > stuck_ns && now_ns - stuck_ns > slow_ns) {
            dmn_log_limited(
                LOG_WARNING,
                ((struct dmn_log_fields){.id = DMN_MSG_CLIENT_CLOSED, .client = c->peer.client}),
                "client \"%s\" (pid %d, user %u) disconnected: it stopped reading", c->peer.client,
                (int)c->peer.pid, (unsigned)c->peer.account->uid);
            dmn_conn_close(c);
        }
    }
}

static struct dmn_stream_info stream_info(const struct dmn_stream *s)
{
    static const char *const policies[] = {[IPC_POLICY_BLOCK] = "block",
                                           [IPC_POLICY_LATEST] = "latest",
                                           [IPC_POLICY_REJECT] = "reject"};
    struct dmn_stream_info info = {.id = s->id,
                                   .model = s->clients ? s->clients->model->name : NULL,
                                   .pixfmt = pixfmt_table[s->format.pixfmt].name,
                                   .policy = policies[s->policy],
                                   .width = s->width,
                                   .height = s->height,
                                   .flow = s->flow,
                                   .use = s->use};

    dmn_stream_use_until(&info.use, &info.flow, base_now_ns());
    return info;
}

void dmn_frames_each_client(const struct dmn_frames *f,
                            void (*fn)(void *ctx, const struct dmn_client_info *client), void *ctx)
{
    struct dmn_stream_info opened[IPC_STREAMS_MAX];
    const struct dmn_conn *c;

    LIST_FOREACH(c, &f->conns, linked) {
        struct dmn_client_info info = {.client = c->peer.client,
                                       .pid = c->peer.pid,
                                       .uid = c->peer.account->uid,
                                       .streams = c->stream_count,
                                       .backlog_bytes = ipc_outgoing_waiting(&c->peer.out),
                                       .answered = c->peer.answered,
                                       .opened = opened};

        for (size_t i = 0; i < c->stream_count; i++) {
            info.unanswered += c->streams[i]->tail - c->streams[i]->head;
            opened[i] = stream_info(c->streams[i]);
        }
        fn(ctx, &info);
    }
}

void dmn_frames_init(struct dmn_frames *f, uv_loop_t *loop, struct dmn_config *const *config,
                     struct dmn_models *models)
{
    *f = (struct dmn_frames){.loop = loop, .config = config, .models = models};
    dmn_preparing_init(f);
    f->listener = dmn_model_events();
    dmn_models_listen(models, &f->listener);
}

void dmn_frames_deinit(struct dmn_frames *f)
{
    dmn_preparing_deinit(f);
    dmn_account_trim(&f->accounts);
}

size_t dmn_clients_in_flight(const struct dmn_model *m)
{
    const struct dmn_stream *s;
    size_t count = 0;

    LIST_FOREACH(s, &m->clients->streams, linked) {
        count += s->running;
    }
    return count;
}

const struct dmn_client_stats *dmn_clients_stats(const struct dmn_model *m)
{
    return &m->clients->stats;
}

void dmn_clients_latency(const struct dmn_model *m, double ret[4])
{
    dmn_client_stats_latency(&m->clients->stats, ret);
}

void dmn_clients_plan_changed(struct dmn_model *m)
{
    dmn_model_events_plan(m);
}

void dmn_frames_trace(struct dmn_frames *f, struct pl_trace_ring *ring)
{
    f->trace.ring = ring;
    f->trace.session += ring != NULL;
    f->trace.streams = 0;
}
