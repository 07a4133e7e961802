/* SPDX-License-Identifier: Apache-2.0 */
/* The frames socket: who gets a connection, what becomes of connections, and what a model's coming
 * and going is to them. */
#include "daemon/frames/room.h"

#include "daemon/config/config.h"
#include "daemon/frames/stream.h"
#include "daemon/service/log.h"
#include "ipc/listen.h"

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

    snprintf(refusal.why, sizeof(refusal.why), "%s", text);
    dmn_refusals_add(f->refusals, &refusal);
    if (!ipc_server_refuse(fd, IPC_RESOURCE_EXHAUSTED, text)) {
        text = "the reason could not be sent";
    }
    f->refused[why]++;
    dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_CLIENT_REFUSED},
                    "refused a client of user %u: %s", (unsigned)peer->uid, text);
}

static size_t limit(const struct dmn_frames *f, enum dmn_config_id key)
{
    return (size_t)dmn_config_int(*f->config, key);
}

static struct ipc_places places_of(const struct dmn_frames *f)
{
    return (struct ipc_places){.most = limit(f, DMN_KEY_LIMIT_CONNECTIONS),
                               .of_user = limit(f, DMN_KEY_LIMIT_CONNECTIONS_UID),
                               .kept = limit(f, DMN_KEY_LIMIT_KEPT)};
}

static void on_accepted(void *ctx, int fd, const struct ucred *peer)
{
    struct dmn_frames *f = ctx;
    struct dmn_account *a = dmn_account_get(&f->accounts, peer->uid);
    const struct ipc_places places = places_of(f);
    enum ipc_place place = IPC_PLACE_FREE;
    char why[IPC_PLACE_TEXT_MAX];

    if (a) {
        place = ipc_place_for(&places, f->server.conn_count, a->connections,
                              dmn_users_keep_place(f->users, a->uid));
    }
    if (place != IPC_PLACE_FREE) {
        refuse(f, fd, peer, place == IPC_PLACE_NONE ? DMN_UNPLACED_LIMIT : DMN_UNPLACED_USER,
               ipc_place_text(place, &places, "connections", "limits.connections", peer->uid, why));
    } else if (!a || dmn_peer_start(f, fd, a, peer->pid) < 0) {
        refuse(f, fd, peer, DMN_UNPLACED_MEMORY, "out of memory for the connection; try again");
    }
    dmn_account_trim(&f->accounts);
}

int dmn_frames_start(struct dmn_frames *f, int fd, struct ipc_socket_file *file)
{
    int error;

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

void dmn_frames_settle(struct dmn_frames *f)
{
    while (!LIST_EMPTY(&f->server.unsettled)) {
        struct dmn_peer *c = dmn_peer_of(LIST_FIRST(&f->server.unsettled));
        struct dmn_loop_user *user = c->task.user; /* it may leave */
        uint64_t begun_ns = base_now_ns();

        dmn_peer_settle(c);
        dmn_loop_charge(f->turns, user, begun_ns);
    }
}

void dmn_frames_take_in(struct dmn_frames *f)
{
    struct ipc_conn *c, *next;

    for (c = LIST_FIRST(&f->server.conns); c; c = next) {
        next = LIST_NEXT(c, linked);
        dmn_peer_take_in(dmn_peer_of(c));
    }
    dmn_frames_settle(f);
}

void dmn_frames_drain_begin(struct dmn_frames *f)
{
    struct ipc_conn *c;

    dmn_frames_take_in(f); /* frames sent before the stop still count */
    f->draining = true;
    LIST_FOREACH(c, &f->server.conns, linked) {
        if (c->greeted) {
            ipc_conn_event(c, 0, IPC_EVENT_DRAINING, 0);
        }
    }
}

bool dmn_frames_drained(const struct dmn_frames *f)
{
    const struct ipc_conn *c;

    LIST_FOREACH(c, &f->server.conns, linked) {
        if (ipc_outgoing_waiting(&c->out)) {
            return false;
        }
        for (size_t i = 0; i < c->stream_count; i++) {
            if (!ipc_stream_empty(c->streams[i])) {
                return false;
            }
        }
    }
    return true;
}

void dmn_frames_close_all(struct dmn_frames *f)
{
    while (!LIST_EMPTY(&f->server.conns)) {
        dmn_peer_close(dmn_peer_of(LIST_FIRST(&f->server.conns)));
    }
    dmn_account_trim(&f->accounts);
}

/* Ends a connection that has sent no HELLO in time. What came while the loop was held up counts. */
static void check_greeting(struct dmn_peer *c, uint64_t now_ns)
{
    size_t limit_s = limit(c->frames, DMN_KEY_LIMIT_HANDSHAKE_S);
    struct ipc_conn *base = &c->base;

    if (!ipc_conn_silent(base, now_ns, limit_s * BASE_NS_PER_S)) {
        return;
    }
    dmn_peer_take_in(c);
    if (!base->greeted) {
        ipc_conn_fail(base, IPC_DEADLINE_EXCEEDED,
                      "no HELLO within %zu s of connecting (limits.handshake_s)", limit_s);
    }
    ipc_conn_mark(base);
}

void dmn_frames_tick(struct dmn_frames *f, uint64_t now_ns, uint64_t held_ns)
{
    uint64_t slow_ns = limit(f, DMN_KEY_LIMIT_SLOW_S) * BASE_NS_PER_S;
    struct ipc_conn *c, *next;

    for (c = LIST_FIRST(&f->server.conns); c; c = next) {
        struct dmn_peer *p = dmn_peer_of(c);
        bool stuck;

        next = LIST_NEXT(c, linked);
        /* clients get their time again that nobody was there to listen */
        c->since_ns += held_ns;
        c->out.stuck_ns += c->out.stuck_ns ? held_ns : 0;
        stuck = ipc_conn_stuck(c, now_ns, slow_ns);
        check_greeting(p, now_ns);
        if (stuck) {
            dmn_log_limited(
                LOG_WARNING,
                ((struct dmn_log_fields){.id = DMN_MSG_CLIENT_CLOSED, .client = c->client}),
                "client \"%s\" (pid %d, user %u) disconnected: it stopped reading", c->client,
                (int)p->pid, (unsigned)p->account->uid);
            dmn_peer_close(p);
        }
    }
}

/* ---- models come, go, change or have room ---- */

static int on_starting(void *ctx, struct dmn_model *m)
{
    m->clients = dmn_clients_new(m);
    return m->clients ? 0 : -ENOMEM;
}

static void on_room(void *ctx, struct dmn_model *m)
{
    dmn_submit_waiting(m->clients);
}

static size_t on_waiting(void *ctx, const struct dmn_model *m)
{
    return m->clients->admission.waiting;
}

static bool on_busy(void *ctx, const struct dmn_model *m)
{
    const struct dmn_stream *s;

    /* frames of streams that a hot swap moved here may still be in the previous model's pipeline */
    LIST_FOREACH(s, &m->clients->streams, linked) {
        if (s->running > 0) {
            return true;
        }
    }
    return m->clients->admission.waiting > 0;
}

static void on_unloading(void *ctx, struct dmn_model *m)
{
    struct dmn_stream *s;

    LIST_FOREACH(s, &m->clients->streams, linked) {
        dmn_stream_event(s, IPC_EVENT_UNLOADING, pl_epoch(m->pipe));
    }
}

static void on_replaced(void *ctx, struct dmn_model *m, struct dmn_model *by)
{
    while (!LIST_EMPTY(&m->clients->streams)) {
        dmn_stream_move(LIST_FIRST(&m->clients->streams), by->clients);
    }
}

static void on_gone(void *ctx, struct dmn_model *m)
{
    while (m->clients && !LIST_EMPTY(&m->clients->streams)) {
        dmn_stream_detach(LIST_FIRST(&m->clients->streams));
    }
    m->clients = dmn_clients_free(m->clients);
}

void dmn_frames_init(struct dmn_frames *f, uv_loop_t *loop, struct dmn_config *const *config,
                     struct dmn_models *models)
{
    *f = (struct dmn_frames){.loop = loop, .config = config, .models = models};
    ipc_server_init(&f->server, &dmn_handlers);
    dmn_admission_init(&f->preparing.turns);
    f->listener = (struct dmn_models_listener){.starting = on_starting,
                                               .room = on_room,
                                               .waiting = on_waiting,
                                               .busy = on_busy,
                                               .unloading = on_unloading,
                                               .replaced = on_replaced,
                                               .gone = on_gone};
    dmn_models_listen(models, &f->listener);
}

void dmn_frames_deinit(struct dmn_frames *f)
{
    dmn_preparing_deinit(f);
    dmn_account_trim(&f->accounts);
}

void dmn_frames_plan_changed(struct dmn_model *m)
{
    struct dmn_stream *s;

    LIST_FOREACH(s, &m->clients->streams, linked) {
        dmn_stream_event(s, IPC_EVENT_PLAN, pl_epoch(m->pipe));
        dmn_stream_more_credits(s, dmn_model_depth(m));
    }
}

size_t dmn_frames_in_flight(const struct dmn_model *m)
{
    const struct dmn_stream *s;
    size_t count = 0;

    LIST_FOREACH(s, &m->clients->streams, linked) {
        count += s->running;
    }
    return count;
}

void dmn_frames_trace(struct dmn_frames *f, struct pl_trace_ring *ring)
{
    f->trace.ring = ring;
    f->trace.session += ring != NULL;
    f->trace.streams = 0;
}
