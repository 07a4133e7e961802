/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/tracing.h"

#include <endian.h>
#include <sys/un.h>

#include "daemon/control/methods.h"
#include "daemon/frames/room.h"
#include "daemon/plans/plans.h"
#include "daemon/service/log.h"

#define TICK_MS 50u
#define BLOCK_WORDS 2u /* of a block's head: track, words that follow */
/* With so much unread, nothing more is sent: the rings wait. Below the limit of control.c. */
#define UNREAD_MAX (1u << 20)
#define STUCK_NS (10 * BASE_NS_PER_S)

/* All that it borrowed is given back. */
static void tracing_free(struct dmn_tracing *t)
{
    t->control->tracing = NULL;
    t->control->event_traced = NULL;
    t->trace = pl_trace_free(t->trace);
    pl_trace_ring_deinit(&t->answers);
    base_close_fd(&t->sock);
    json_decref(t->news);
    json_decref(t->events);
    uv_close((uv_handle_t *)&t->timer, dmn_handle_free);
}

/* Return: no team writes any more. */
static bool detach_all(const struct dmn_models *models)
{
    bool quiet = true;

    for (const struct dmn_model *m = dmn_model_first(models); m; m = dmn_model_next(m)) {
        quiet = pl_trace_detach(m->pipe) && quiet;
    }
    return quiet;
}

/* Ends the call, which is then gone, and frees @t. @reply: stolen. */
static void end_call(struct dmn_tracing *t, json_t *reply)
{
    struct dmn_call *call = t->call;

    tracing_free(t);
    dmn_call_reply(call, reply, false);
}

/* ---- records on their way to the client, in blocks: docs/trace.md describes them ---- */

/* Return: everything was sent. */
static bool flush(struct dmn_tracing *t)
{
    while (t->out_sent < t->out_used && !t->broken) {
        ssize_t n = send(t->sock, (const char *)t->words + t->out_sent, t->out_used - t->out_sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0) {
            t->out_sent += (size_t)n;
        } else if (errno == EAGAIN) {
            return false;
        } else if (errno != EINTR) {
            t->broken = true;
        }
    }
    t->out_sent = t->out_used = 0;
    return true;
}

/* Adds a block with what @ring holds, as far as it fits into @share words; one record in any case,
 * if there is room for it. @used: words so far. Return: words then. */
static size_t add_block(struct dmn_tracing *t, size_t used, struct pl_trace_ring *ring,
                        uint32_t track, size_t share)
{
    size_t room = DMN_TRACE_BATCH_WORDS - used, words;
    uint32_t *to = t->words + used;

    if (room <= BLOCK_WORDS) {
        return used;
    }
    words = pl_trace_read(ring, to + BLOCK_WORDS,
                          base_min(room - BLOCK_WORDS, base_max(share, pl_trace_next_words(ring))));
    if (words == 0) {
        return used;
    }
    to[0] = track;
    to[1] = (uint32_t)words;
    for (size_t i = 0; i < BLOCK_WORDS + words; i++) {
        to[i] = htole32(to[i]);
    }
    return used + BLOCK_WORDS + words;
}

/* Each ring gets its share of the room, so that no team starves another. Return: there is
 * something to send. */
static bool fill(struct dmn_tracing *t)
{
    size_t left = 1, used;

    for (const struct pl_trace_entry *e = t->trace->entries; e; e = e->next) {
        left++;
    }
    used = add_block(t, 0, &t->answers, 0, DMN_TRACE_BATCH_WORDS / left);
    for (struct pl_trace_entry *e = t->trace->entries; e; e = e->next) {
        used = add_block(t, used, &e->ring, e->team.track, (DMN_TRACE_BATCH_WORDS - used) / --left);
    }
    t->out_used = used * sizeof(t->words[0]);
    return used > 0;
}

/* Sends records, as many as the socket takes. Return: all rings are empty. */
static bool send_records(struct dmn_tracing *t)
{
    do {
        if (!flush(t)) {
            return false;
        }
    } while (fill(t));
    pl_trace_trim(t->trace);
    return true;
}

/* ---- */

/* Sends what there is and the client can take. May free @t. */
static void send_all(struct dmn_tracing *t)
{
    bool sent = send_records(t);
    json_t *batch;

    if (t->broken && !t->ended) {
        dmn_tracing_end(t->control, "its client closed the socket for records");
        return;
    }
    if (dmn_call_unread(t->call) >= UNREAD_MAX) {
        return;
    }
    if (t->quiet && sent) {
        end_call(t, json_pack("{s:o}", "batch", dmn_trace_batch(t, true)));
        return;
    }
    batch = dmn_trace_batch(t, false);
    if (json_object_size(batch) == 0) {
        json_decref(batch);
    } else {
        dmn_call_reply(t->call, json_pack("{s:o}", "batch", batch), true);
    }
}

/* Return: the client has read nothing for too long. */
static bool stuck(struct dmn_tracing *t, uint64_t now_ns)
{
    size_t unread = dmn_call_unread(t->call), unsent = t->out_used - t->out_sent;

    if ((unread == 0 && unsent == 0) || unread < t->unread || unsent != t->unsent ||
        t->stuck_ns == 0) {
        t->stuck_ns = now_ns;
    }
    t->unread = unread;
    t->unsent = unsent;
    return now_ns - t->stuck_ns > STUCK_NS;
}

static void step(struct dmn_tracing *t)
{
    uint64_t now = base_now_ns();

    if (t->call->conn && stuck(t, now)) {
        dmn_log_limited(LOG_INFO, (struct dmn_log_fields){0},
                        "closing the control connection of %s: it does not read its trace", t->who);
        dmn_control_conn_close(t->call->conn);
    }
    if (!t->ended && (!t->call->conn || t->call->conn->eof)) {
        dmn_tracing_end(t->control, "its client ended it");
        return;
    }
    if (!t->ended && now >= t->end_ns) {
        dmn_tracing_end(t->control, "its time is over");
        return;
    }
    if (t->ended && !t->quiet) {
        t->quiet = detach_all(t->control->models);
    }
    if (t->call->conn) {
        if (!t->ended) {
            dmn_trace_look(t);
        }
        send_all(t);
    } else if (t->quiet) {
        end_call(t, json_object()); /* nobody gets it */
    }
}

static void on_timer(uv_timer_t *timer)
{
    step(timer->data);
}

void dmn_tracing_end(struct dmn_control *control, const char *why)
{
    struct dmn_tracing *t = control->tracing;

    if (!t || t->ended) {
        return;
    }
    dmn_trace_look(t); /* at what happened since the last time */
    t->ended = why;
    t->end_ns = base_now_ns();
    dmn_frames_trace(control->frames, NULL);
    dmn_log(LOG_INFO, "the trace of %s ends: %s; %llu records found no room", t->who, why,
            (unsigned long long)(pl_trace_lost_all(t->trace) + pl_trace_lost(&t->answers)));
    step(t);
}

void dmn_tracing_stop(struct dmn_control *control)
{
    struct dmn_tracing *t = control->tracing;

    if (t) {
        dmn_frames_trace(control->frames, NULL);
        end_call(t, json_object());
    }
}

void dmn_tracing_model(struct dmn_control *control, struct dmn_model *m)
{
    struct dmn_tracing *t = control->tracing;

    if (t && !t->ended) {
        pl_trace_attach(m->pipe, t->trace, ++t->pipelines);
        dmn_trace_describe(t, m, t->pipelines);
    }
}

/* Return: it has its memory. */
static bool prepare(struct dmn_tracing *t, size_t ring_bytes)
{
    t->news = json_array();
    t->events = json_array();
    return t->news && t->events &&
           pl_trace_new(ring_bytes, DMN_TRACE_LIMIT_BYTES, &t->trace) == 0 &&
           pl_trace_ring_init(&t->answers, DMN_TRACE_ANSWERS_BYTES) == 0;
}

/* Return: @fd is a connected socket as records need it. */
static bool good_socket(int fd)
{
    struct sockaddr_un to;
    socklen_t bytes = sizeof(to), type_bytes = sizeof(int);
    int type;

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) == 0 &&
           type == SOCK_STREAM && getpeername(fd, (struct sockaddr *)&to, &bytes) == 0 &&
           to.sun_family == AF_UNIX;
}

static void on_event(struct dmn_control *control, json_t *event)
{
    if (!control->tracing->ended) {
        dmn_trace_add_event(control->tracing, base_now_ns(), json_incref(event));
    }
}

/* @sock: taken. */
static void begin(struct dmn_call *c, double seconds, size_t ring_bytes, int sock)
{
    struct dmn_control *control = c->control;
    struct dmn_tracing *t = calloc(1, sizeof(*t));
    const struct dmn_history_event *newest = dmn_history_get(&control->plans->history, 0);

    if (!t) {
        base_close_fd(&sock);
        dmn_call_error(c, "Busy", "out of memory");
        return;
    }
    t->sock = sock;
    t->control = control;
    t->call = c;
    snprintf(t->who, sizeof(t->who), "pid %d (user %u)", (int)c->conn->peer.pid,
             (unsigned)c->conn->peer.uid);
    uv_timer_init(control->machine->loop, &t->timer);
    t->timer.data = t;
    if (!prepare(t, ring_bytes)) {
        tracing_free(t);
        dmn_call_error(c, "Busy", "out of memory");
        return;
    }
    t->began_ns = base_now_ns();
    t->end_ns = t->began_ns + (uint64_t)(seconds * 1e9);
    t->history = newest ? newest->id : 0;
    control->tracing = t;
    control->event_traced = on_event;
    for (struct dmn_model *m = dmn_model_first(control->models); m; m = dmn_model_next(m)) {
        dmn_tracing_model(control, m);
    }
    dmn_frames_trace(control->frames, &t->answers);
    dmn_log(LOG_INFO, "%s traces for up to %.3g s, with rings of %zu KiB", t->who, seconds,
            ring_bytes >> 10);
    uv_timer_start(&t->timer, on_timer, base_min((uint64_t)(seconds * 1e3) + 1, (uint64_t)TICK_MS),
                   TICK_MS);
    dmn_trace_look(t);
    send_all(t);
}

void dmn_method_trace(struct dmn_call *c)
{
    const struct dmn_tracing *other = c->control->tracing;
    json_int_t kib = DMN_TRACE_RING_BYTES >> 10;
    double seconds = DMN_TRACE_SECONDS;
    int sock;

    if (!dmn_call_number(c, "seconds", 0, DMN_TRACE_SECONDS_MAX, &seconds) ||
        !dmn_call_integer(c, "ring_kib", PL_TRACE_RING_BYTES_MIN >> 10,
                          PL_TRACE_RING_BYTES_MAX >> 10, &kib)) {
        return;
    }
    if (seconds == 0 || (kib & (kib - 1)) != 0) {
        dmn_call_invalid(c, seconds == 0 ? "seconds" : "ring_kib");
        return;
    }
    if (other) {
        uint64_t now = base_now_ns();

        dmn_call_error(c, "Busy", "%s traces already, for %.1f s more", other->who,
                       other->end_ns > now ? (double)(other->end_ns - now) / 1e9 : 0.0);
        return;
    }
    sock = dmn_call_take_fd(c);
    if (!good_socket(sock)) {
        base_close_fd(&sock);
        dmn_call_error(c, "Unsupported",
                       "a connected Unix stream socket for the records must come with the call");
        return;
    }
    begin(c, seconds, (size_t)kib << 10, sock);
}
