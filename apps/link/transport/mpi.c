/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over MPI: the ranks of one job, fixed when it starts. When a rank dies the job
 * dies, as MPI has it, and a batch system starts it again.
 *
 * MPI has no descriptor to wait for, and its blocking calls spin. So a timer wakes the event loop:
 * often while messages pass, rarely when none do.
 */
#include <mpi.h>
#include <sys/timerfd.h>

#include "apps/link/transport/code.h"
#include "base/base.h"

#define PART_BYTES_MAX (256ull << 20)
#define QUEUE_BYTES_MAX (64ull << 20)
#define BUSY_NS (100 * BASE_NS_PER_US)
#define IDLE_NS (4 * BASE_NS_PER_MS)
#define BUSY_FOR_NS (50 * BASE_NS_PER_MS) /* after the last message */
#define FIRST_MAX 65536u
#define TAG_FIRST(lane) (2 * (int)(lane))
#define TAG_PART(lane) (2 * (int)(lane) + 1)

/* Before the first part. */
struct envelope {
    uint64_t first_bytes, count, bytes[LNK_RANGES_MAX];
};
struct out {
    struct out *next;
    size_t peer, bytes, request_count;
    MPI_Request request[1 + LNK_RANGES_MAX];
    void (*released)(void *arg);
    void *arg;
    uint8_t data[]; /* envelope, first part, copied ranges */
};
/* A message that is being received: one at a time of each peer and lane, which keeps the order. */
struct in {
    struct envelope *envelope;  /* owned, with the first part behind it; NULL: none */
    void *part[LNK_RANGES_MAX]; /* owned */
    size_t here;                /* parts that are complete */
    MPI_Request request;
    bool bad;
};
struct ml {
    struct lnk_transport base;
    uint64_t part_bytes_max, queue_bytes_max, last_ns;
    bool told, closing, wants_room[LNK_PEERS_MAX];
    struct out *first_out, **end;
    struct in in[LNK_PEERS_MAX][LNK_LANES];
};

static int ml_send(struct lnk_transport *t, size_t peer, enum lnk_lane lane, struct lnk_bytes first,
                   const struct lnk_bytes *range, size_t count, void (*released)(void *), void *arg)
{
    struct ml *m = (struct ml *)t;
    struct envelope e = {.first_bytes = first.bytes, .count = count};
    size_t bytes = first.bytes, copied = sizeof(e) + first.bytes;
    struct out *o;
    uint8_t *at;

    if (peer == t->self || first.bytes > FIRST_MAX) {
        return -EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        if (range[i].bytes > m->part_bytes_max) {
            return -EINVAL;
        }
        e.bytes[i] = range[i].bytes;
        bytes += range[i].bytes;
        copied += released ? 0 : range[i].bytes;
    }
    if (!t->peer[peer].up) {
        return LNK_E_DOWN;
    }
    if (lnk_code_full(t, peer, count, bytes, m->queue_bytes_max)) {
        m->wants_room[peer] = true;
        return LNK_E_FULL;
    }
    o = malloc(sizeof(*o) + copied);
    if (!o) {
        return -ENOMEM;
    }
    o->next = NULL;
    o->peer = peer;
    o->bytes = bytes;
    o->request_count = 1 + count;
    o->released = released;
    o->arg = arg;
    memcpy(o->data, &e, sizeof(e));
    memcpy(o->data + sizeof(e), first.data, first.bytes);
    at = o->data + sizeof(e) + first.bytes;
    MPI_Isend(o->data, (int)(sizeof(e) + first.bytes), MPI_BYTE, (int)peer, TAG_FIRST(lane),
              MPI_COMM_WORLD, &o->request[0]);
    for (size_t i = 0; i < count; i++) {
        const void *from = range[i].data;

        if (!released && range[i].bytes > 0) {
            from = memcpy(at, range[i].data, range[i].bytes);
            at += range[i].bytes;
        }
        MPI_Isend(from, (int)range[i].bytes, MPI_BYTE, (int)peer, TAG_PART(lane), MPI_COMM_WORLD,
                  &o->request[1 + i]);
    }
    *m->end = o;
    m->end = &o->next;
    t->peer[peer].queued_messages++;
    t->peer[peer].queued_bytes += bytes;
    m->last_ns = base_now_ns();
    return 0;
}

static void release_sent(struct ml *m)
{
    for (struct out **at = &m->first_out; *at;) {
        struct out *o = *at;
        int done;

        MPI_Testall((int)o->request_count, o->request, &done, MPI_STATUSES_IGNORE);
        if (!done) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        m->end = m->end == &o->next ? at : m->end;
        m->base.peer[o->peer].queued_messages--;
        m->base.peer[o->peer].queued_bytes -= o->bytes;
        if (o->released) {
            o->released(o->arg);
        }
        free(o);
    }
}

/* Receives what has been matched. Return: its bytes, owned; NULL: nothing is there. */
static void *take(int peer, int tag, size_t *ret_bytes, MPI_Request *ret)
{
    MPI_Message message;
    MPI_Status status;
    int there, bytes;
    void *data;

    MPI_Improbe(peer, tag, MPI_COMM_WORLD, &there, &message, &status);
    if (!there) {
        return NULL;
    }
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    data = malloc((size_t)bytes + 1);
    if (!data) { /* it could never be matched again */
        MPI_Abort(MPI_COMM_WORLD, ENOMEM);
    }
    MPI_Imrecv(data, bytes, MPI_BYTE, &message, ret);
    *ret_bytes = (size_t)bytes;
    return data;
}

static bool envelope_is_valid(const struct ml *m, const struct envelope *e, size_t bytes)
{
    if (bytes < sizeof(*e) || e->count > LNK_RANGES_MAX || e->first_bytes != bytes - sizeof(*e)) {
        return false;
    }
    for (size_t i = 0; i < e->count; i++) {
        if (e->bytes[i] > m->part_bytes_max) {
            return false;
        }
    }
    return true;
}

static void deliver(struct ml *m, size_t peer, struct in *in)
{
    struct lnk_bytes part[1 + LNK_RANGES_MAX] = {{in->envelope + 1, in->envelope->first_bytes}};

    for (size_t i = 0; i < in->envelope->count; i++) {
        part[1 + i] = (struct lnk_bytes){in->part[i], in->envelope->bytes[i]};
    }
    if (in->bad) {
        m->base.all.garbage++;
    } else if (!m->closing) {
        m->base.peer[peer].messages_in++;
        m->base.listener.message(m->base.listener.user, peer, part, 1 + in->envelope->count);
    }
    for (size_t i = 0; i < LNK_RANGES_MAX; i++) {
        free(in->part[i]);
    }
    free(in->envelope);
    *in = (struct in){.request = MPI_REQUEST_NULL};
}

/* Takes one step. Return: false: nothing to do now. */
static bool receive_step(struct ml *m, size_t peer, enum lnk_lane lane)
{
    struct in *in = &m->in[peer][lane];
    size_t bytes = 0;
    int done;

    if (!in->envelope) {
        in->envelope = take((int)peer, TAG_FIRST(lane), &bytes, &in->request);
        if (!in->envelope) {
            return false;
        }
        m->last_ns = base_now_ns();
        MPI_Wait(&in->request, MPI_STATUS_IGNORE); /* it has arrived, and is small */
        if (!envelope_is_valid(m, in->envelope, bytes)) {
            m->base.all.garbage++;
            free(in->envelope);
            *in = (struct in){.request = MPI_REQUEST_NULL};
            return true;
        }
    }
    if (in->here < in->envelope->count && !in->part[in->here]) {
        in->part[in->here] = take((int)peer, TAG_PART(lane), &bytes, &in->request);
        if (!in->part[in->here]) {
            return false;
        }
        in->bad |= bytes != in->envelope->bytes[in->here];
    }
    if (in->here < in->envelope->count) {
        MPI_Test(&in->request, &done, MPI_STATUS_IGNORE);
        if (!done) {
            return false;
        }
        in->here++;
    }
    if (in->here == in->envelope->count) {
        deliver(m, peer, in);
    }
    return true;
}

static bool work(struct ml *m)
{
    bool any = false;

    release_sent(m);
    for (size_t i = 0; i < m->base.peer_count; i++) {
        for (int lane = 0; lane < LNK_LANES && i != m->base.self; lane++) {
            for (int turn = 0; turn < 64 && receive_step(m, i, (enum lnk_lane)lane); turn++) {
                any = true;
            }
        }
    }
    return any;
}

static void set_timer(struct ml *m, uint64_t ns)
{
    struct itimerspec at = {.it_value = {.tv_nsec = (long)ns}};

    timerfd_settime(m->base.fd, 0, &at, NULL);
}

static void ml_dispatch(struct lnk_transport *t)
{
    struct ml *m = (struct ml *)t;
    uint64_t now_ns;

    for (size_t i = 0; i < t->peer_count && !m->told; i++) {
        if (i != t->self) {
            t->peer[i].up = true;
            t->peer[i].ups++;
            t->listener.up(t->listener.user, i);
        }
    }
    m->told = true;
    work(m);
    for (size_t i = 0; i < t->peer_count; i++) {
        if (m->wants_room[i] && t->peer[i].queued_bytes <= m->queue_bytes_max / 2) {
            m->wants_room[i] = false;
            t->listener.room(t->listener.user, i);
        }
    }
    now_ns = base_now_ns();
    set_timer(m, m->first_out || now_ns - m->last_ns < BUSY_FOR_NS ? BUSY_NS : IDLE_NS);
}

static void ml_close(struct lnk_transport *t)
{
    struct ml *m = (struct ml *)t;
    MPI_Request all;
    int done = 0;

    /* Every rank receives until all have come here, or a large send would never end. */
    m->closing = true;
    while (m->first_out) {
        work(m);
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    while (!done) {
        work(m);
        MPI_Test(&all, &done, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    for (size_t i = 0; i < t->peer_count; i++) {
        for (int lane = 0; lane < LNK_LANES; lane++) {
            free(m->in[i][lane].envelope);
            for (size_t k = 0; k < LNK_RANGES_MAX; k++) {
                free(m->in[i][lane].part[k]);
            }
        }
    }
    base_close_fd(&t->fd);
    free(m);
}

static int ml_open(const struct lnk_config *c, struct lnk_transport **ret, char ret_error[256])
{
    int ranks, rank, before;
    struct ml *m;

    MPI_Initialized(&before);
    if (before) {
        snprintf(ret_error, 256, "a process can open MPI only once");
        return -EBUSY;
    }
    m = calloc(1, sizeof(*m));
    if (!m) {
        return -ENOMEM;
    }
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if ((size_t)ranks != c->peer_count || (c->self && strcmp(c->self, c->peers[rank].name) != 0)) {
        snprintf(ret_error, 256, "%d ranks, of which this is number %d, but %zu names", ranks, rank,
                 c->peer_count);
        MPI_Finalize();
        free(m);
        return -EINVAL;
    }
    m->base.code = lnk_mpi_code;
    m->base.listener = c->listener;
    m->base.peer_count = c->peer_count;
    m->base.self = (size_t)rank;
    m->part_bytes_max = base_min(c->part_bytes_max ? c->part_bytes_max : PART_BYTES_MAX,
                                 PART_BYTES_MAX); /* a count of MPI is an int */
    m->queue_bytes_max = c->queue_bytes_max ? c->queue_bytes_max : QUEUE_BYTES_MAX;
    m->end = &m->first_out;
    m->base.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    for (size_t i = 0; i < LNK_PEERS_MAX * LNK_LANES; i++) {
        m->in[i / LNK_LANES][i % LNK_LANES].request = MPI_REQUEST_NULL;
    }
    set_timer(m, 1);
    *ret = &m->base;
    return 0;
}

static const struct lnk_code code = {"mpi", ml_open, ml_close, ml_dispatch, ml_send};
const struct lnk_code *const lnk_mpi_code = &code;
