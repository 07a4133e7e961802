/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/talker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/fuzz/replay.h"
#include "tests/fuzz/talker_private.h"

#define POOL_BYTES (TALK_SLOTS * TALK_SLOT_BYTES)
#define ALL_STATUSES ((1u << IPC_STATUS_COUNT) - 1)
#define COOKIE 0x70697065ull /* its upper half; the client's number follows */

struct talk_models talk_models;

static uint64_t new_cookie(const struct talk_client *c)
{
    static uint32_t count;

    return (COOKIE << 32 | (uint64_t)c->number << 28) ^ (++count & 0xfffffff);
}

bool talk_is_others(const struct talk_client *c, uint64_t cookie)
{
    return cookie >> 32 == COOKIE && (cookie >> 28 & 15) != c->number;
}

void talk_connect(struct talk_client *c, unsigned number, uid_t uid)
{
    memset(c, 0, offsetof(struct talk_client, tx));
    c->fd = rig_connect(false, uid);
    c->number = number;
    c->pool = c->corrupt_at = -1;
}

void talk_leave(struct talk_client *c)
{
    if (c->memory) {
        munmap(base_take(c->memory), POOL_BYTES);
    }
    if (c->fd >= 0) {
        base_close_fd(&c->pool);
        base_close_fd(&c->fd);
    }
}

/* Appends a message; damages it if that was asked. Return: it fits. */
static bool put(struct talk_client *c, struct ipc_header h, const void *payload, size_t bytes)
{
    uint8_t *at = c->tx + c->tx_bytes;

    if (c->fd < 0 || c->tx_bytes + IPC_HEADER_BYTES + bytes > sizeof(c->tx)) {
        return false;
    }
    h.version = IPC_VERSION;
    h.length = (uint32_t)bytes;
    c->lying |= !c->greeted && h.type != IPC_HELLO;
    memcpy(at, &h, sizeof(h));
    if (bytes > 0) {
        memcpy(at + IPC_HEADER_BYTES, payload, bytes);
    }
    c->tx_bytes += IPC_HEADER_BYTES + bytes;
    if (c->corrupt_at >= 0) {
        at[(size_t)c->corrupt_at % (IPC_HEADER_BYTES + bytes)] ^= c->corrupt_with;
        c->lying = true;
        c->corrupt_at = -1;
    }
    return true;
}

void talk_hello(struct talk_client *c, uint8_t how)
{
    struct ipc_hello m = {.version_min = 1,
                          .version_max = 1,
                          .features = how & 1 ? IPC_FEATURE_F16 : 0,
                          .client = "talk"};
    uint8_t bytes[IPC_HELLO_BYTES];

    if (how >= 0xf0) {
        m.version_min = how & 2 ? 2 : 0;
        m.version_max = how & 4 ? 0 : 2;
    }
    c->lying |= c->greeted || m.version_min > 1 || m.version_max < 1;
    c->f16 = how & 1;
    c->greeted = true;
    memcpy(bytes, &m, sizeof(m));
    put(c, (struct ipc_header){.type = IPC_HELLO}, bytes, sizeof(bytes));
}

/* The stream's format, if this OPEN is what opens it. */
static void note_open(struct talk_client *c, struct talk_stream *s, const struct ipc_open *o,
                      enum talk_model m)
{
    if (s->open && !s->closing) {
        return; /* refused */
    }
    s->muddled = s->open || s->opening || s->closing || (m == TALK_DEFAULT && talk_models.unsteady);
    s->format = (struct talk_format){.model = m == TALK_DEFAULT ? TALK_A : m,
                                     .pixfmt = (enum ipc_pixfmt)o->pixfmt,
                                     .in16 = c->f16 && o->input_dtype == IPC_F16,
                                     .out16 = c->f16 && o->output_dtype == IPC_F16};
    s->by_default = m == TALK_DEFAULT;
    s->policy = (enum ipc_policy)o->policy;
    s->hurries = o->deadline_ns > 0;
    s->pool = false;
}

void talk_open(struct talk_client *c, uint32_t stream, const uint8_t how[3])
{
    static const char *const names[TALK_MODELS] = {"a", "b", "c", "", "none"};
    static const uint64_t deadlines[4] = {0, 0, BASE_NS_PER_S, BASE_NS_PER_MS / 2};
    enum talk_model m = how[1] % TALK_MODELS;
    struct ipc_open o = {.policy = how[0] % 3,
                         .credits = how[0] >> 2 & 3 ? how[0] >> 2 & 3 : 0,
                         .priority = how[0] >> 4 & 3,
                         .deadline_ns = deadlines[how[0] >> 6],
                         .pixfmt = how[2] & 8 ? how[2] % 8 % IPC_PIX_COUNT : IPC_PIX_TENSOR};
    uint8_t bytes[IPC_OPEN_BYTES];

    if (o.pixfmt == IPC_PIX_TENSOR && how[2] & 16) {
        o.input_dtype = IPC_F16;
    }
    o.output_dtype = how[2] & 32 ? IPC_F16 : 0;
    snprintf(o.model, sizeof(o.model), "%s", names[m]);
    if (how[2] >= 0xf8) { /* what OPENED has to refuse */
        o.policy = how[2];
    }
    memcpy(bytes, &o, sizeof(o));
    if (put(c, (struct ipc_header){.type = IPC_OPEN, .stream = stream}, bytes, sizeof(bytes))) {
        if (how[2] < 0xf8 && stream > 0) {
            note_open(c, &c->streams[stream], &o, m);
        }
        c->streams[stream].opening++;
    }
}

static bool make_pool(struct talk_client *c)
{
    if (c->pool >= 0) {
        return true;
    }
    c->pool = memfd_create("talk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    MUST(c->pool >= 0 && posix_fallocate(c->pool, 0, POOL_BYTES) == 0);
    MUST(fcntl(c->pool, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    c->memory = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->pool, 0);
    MUST(c->memory != MAP_FAILED);
    return true;
}

void talk_pool(struct talk_client *c, uint32_t stream)
{
    struct ipc_pool p = {.bytes = POOL_BYTES};
    struct ipc_header h = {.type = IPC_POOL,
                           .version = IPC_VERSION,
                           .length = IPC_POOL_BYTES,
                           .stream = stream,
                           .fd_count = 1};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    uint8_t bytes[IPC_HEADER_BYTES + IPC_POOL_BYTES];
    struct iovec part = {bytes, sizeof(bytes)};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};

    talk_flush(c, false);
    if (c->fd < 0 || c->tx_bytes > 0 || !make_pool(c)) {
        return; /* the descriptor would come with another message */
    }
    memcpy(bytes, &h, sizeof(h));
    memcpy(bytes + IPC_HEADER_BYTES, &p, sizeof(p));
    *CMSG_FIRSTHDR(&m) = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &c->pool, sizeof(int));
    c->lying |= !c->greeted;
    if (sendmsg(c->fd, &m, MSG_NOSIGNAL) == sizeof(bytes)) {
        c->streams[stream].pooling++;
    } else {
        c->lying = true; /* cut off, or in part */
    }
}

/* What is wrong with a frame. */
enum wrong {
    W_NOTHING,
    W_SIZE,
    W_POOL,
    W_NUMBER,
    W_OUTSIDE,
    W_OVERLAP,
    W_LATE,
    W_HURRY,
    W_POOL_RANGE,
    W_COUNT
};

static int free_slot(const struct talk_client *c)
{
    for (int i = 0; i < (int)TALK_SLOTS; i++) {
        if (!c->slot_used[i]) {
            return i;
        }
    }
    return -1;
}

/* Return: bits of the statuses that may answer it. */
static uint32_t statuses(const struct talk_client *c, const struct talk_stream *s, enum wrong w,
                         bool in_pool)
{
    static const uint32_t by_wrong[W_COUNT] = {
        [W_NOTHING] = 1u << IPC_OK,
        [W_SIZE] = 1u << IPC_INVALID_ARGUMENT,
        [W_POOL] = 1u << IPC_NOT_FOUND,
        [W_NUMBER] = 1u << IPC_INVALID_ARGUMENT,
        [W_OUTSIDE] = 1u << IPC_INVALID_ARGUMENT,
        [W_OVERLAP] = 1u << IPC_INVALID_ARGUMENT,
        [W_LATE] = 1u << IPC_DEADLINE_EXCEEDED,
        [W_HURRY] = 1u << IPC_OK | 1u << IPC_DEADLINE_EXCEEDED,
        [W_POOL_RANGE] = 1u << IPC_INVALID_ARGUMENT,
    };
    uint32_t set = by_wrong[w];

    set |= s->hurries ? 1u << IPC_DEADLINE_EXCEEDED : 0;
    set |= s->policy == IPC_POLICY_LATEST ? 1u << IPC_DROPPED : 0;
    set |= s->policy == IPC_POLICY_REJECT ? 1u << IPC_RESOURCE_EXHAUSTED : 0;
    set |= s->credits <= 0 ? 1u << IPC_RESOURCE_EXHAUSTED : 0;
    set |= talk_models.unsteady ? 1u << IPC_UNAVAILABLE : 0;
    set |= in_pool && !s->pool ? 1u << IPC_NOT_FOUND : 0;
    set |= in_pool && c->pool_lost ? 1u << IPC_INVALID_ARGUMENT : 0;
    return s->open && !s->closing && !s->muddled ? set : ALL_STATUSES;
}

static void spoil(enum wrong w, struct ipc_frame *f)
{
    switch (w) {
    case W_SIZE:
        f->in_bytes++;
        break;
    case W_POOL:
        f->pool = 3;
        break;
    case W_OUTSIDE:
        f->out_offset = POOL_BYTES;
        break;
    case W_OVERLAP:
        f->out_offset = f->in_offset;
        break;
    case W_LATE:
        f->deadline_ns = 1;
        break;
    case W_HURRY:
        f->deadline_ns = base_now_ns() + BASE_NS_PER_MS;
        break;
    case W_POOL_RANGE:
        f->pool = 1000;
        break;
    default:
        break;
    }
}

/* An inline frame has nothing outside a pool. */
static enum wrong what_is_wrong(uint8_t how, int slot, const struct talk_stream *s)
{
    enum wrong w = how < 0xc0 ? W_NOTHING : how % W_COUNT;

    if ((slot < 0 && (w == W_POOL || w == W_OUTSIDE || w == W_OVERLAP || w == W_POOL_RANGE)) ||
        (w == W_NUMBER && !s->numbered)) {
        return W_NOTHING;
    }
    return w;
}

void talk_frame(struct talk_client *c, uint32_t stream, const uint8_t how[3])
{
    struct talk_stream *s = &c->streams[stream];
    int slot = how[2] & 1 && c->memory ? free_slot(c) : -1;
    enum wrong w = what_is_wrong(how[0], slot, s);
    struct talk_sent *t = &c->sent[c->sent_count];
    uint8_t bytes[IPC_FRAME_BYTES + TALK_SLOT_BYTES];
    struct ipc_frame f = {0};
    size_t in_bytes;

    if (c->fd < 0 || c->sent_count >= TALK_SENT || c->tx_bytes + sizeof(bytes) > sizeof(c->tx)) {
        return;
    }
    *t = (struct talk_sent){.cookie = new_cookie(c),
                            .frame = s->last_frame + (w == W_NUMBER ? 0 : 1 + (how[2] >> 6)),
                            .stream = stream,
                            .statuses = statuses(c, s, w, slot >= 0),
                            .sure = s->open && !s->closing && !s->muddled,
                            .judged = !s->muddled && !(slot >= 0 && c->pool_lost),
                            .format = s->format,
                            .picture = how[1] % TALK_PICTURES,
                            .wide = how[2] & 2,
                            .versions = talk_models.versions[s->format.model],
                            .slot = slot};
    in_bytes = talk_input(&s->format, t->picture, t->wide,
                          slot >= 0 ? c->memory + slot * TALK_SLOT_BYTES : bytes + IPC_FRAME_BYTES);
    f.in_bytes = in_bytes;
    if (s->format.pixfmt != IPC_PIX_TENSOR) {
        f.width = t->wide ? 8 : 6;
        f.height = t->wide ? 4 : 6;
    }
    if (slot >= 0) {
        f.in_offset = (uint64_t)slot * TALK_SLOT_BYTES;
        f.out_offset = f.in_offset + TALK_OUT_OFFSET;
        f.out_bytes = TALK_SLOT_BYTES - TALK_OUT_OFFSET;
        memset(c->memory + f.out_offset, 0xff, f.out_bytes); /* floats that are not numbers */
        c->slot_used[slot] = true;
    }
    spoil(w, &f);
    memcpy(bytes, &f, sizeof(f));
    put(c,
        (struct ipc_header){.type = slot >= 0 ? IPC_FRAME : IPC_INLINE,
                            .stream = stream,
                            .frame = t->frame,
                            .time_ns = t->cookie},
        bytes, IPC_FRAME_BYTES + (slot >= 0 ? 0 : in_bytes));
    s->numbered = s->open && !s->closing;
    s->last_frame = base_max(s->last_frame, t->frame);
    s->credits--;
    c->sent_count++;
}

void talk_cancel(struct talk_client *c, uint32_t stream, uint8_t how)
{
    struct ipc_header h = {.type = IPC_CANCEL, .stream = stream, .frame = how};

    if (c->sent_count > 0 && how < 0xf0) {
        struct talk_sent *t = &c->sent[how % c->sent_count];

        h.stream = t->stream;
        h.frame = t->frame;
    }
    for (size_t i = 0; i < c->sent_count; i++) { /* several may have the number */
        struct talk_sent *t = &c->sent[i];

        t->statuses |= t->stream == h.stream && t->frame == h.frame ? 1u << IPC_CANCELLED : 0;
    }
    put(c, h, NULL, 0);
}

void talk_close(struct talk_client *c, uint32_t stream)
{
    if (put(c, (struct ipc_header){.type = IPC_CLOSE, .stream = stream}, NULL, 0)) {
        c->streams[stream].closing++;
    }
}

void talk_ping(struct talk_client *c, uint8_t how)
{
    uint8_t bytes[IPC_PING_MAX];

    memset(bytes, how, sizeof(bytes));
    c->pings += put(c, (struct ipc_header){.type = IPC_PING, .frame = how}, bytes, how % 65);
}

void talk_unknown(struct talk_client *c, uint8_t how)
{
    uint8_t bytes[256] = {0};

    put(c, (struct ipc_header){.type = 0x9000 | how, .stream = how}, bytes, how);
}

void talk_raw(struct talk_client *c, const uint8_t *bytes, size_t count)
{
    if (c->fd >= 0 && c->tx_bytes + count <= sizeof(c->tx)) {
        memcpy(c->tx + c->tx_bytes, bytes, count);
        c->tx_bytes += count;
        c->lying = true;
    }
}

void talk_punch(struct talk_client *c)
{
    if (c->pool < 0) {
        return;
    }
    c->pool_lost = true;
    for (size_t i = 0; i < c->sent_count; i++) {
        struct talk_sent *t = &c->sent[i];

        t->judged &= t->slot < 0;
        t->statuses |= t->slot >= 0 ? 1u << IPC_INVALID_ARGUMENT : 0;
    }
    MUST(fallocate(c->pool, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, POOL_BYTES) == 0);
}

void talk_versions_change(struct talk_client *c, enum talk_model m, unsigned versions)
{
    for (size_t i = 0; i < TALK_STREAMS; i++) { /* which is the default may change before OPENED */
        c->streams[i].muddled |=
            c->streams[i].by_default && c->streams[i].opening && talk_models.unsteady;
    }
    for (size_t i = 0; i < c->sent_count; i++) {
        struct talk_sent *t = &c->sent[i];

        t->judged &= !c->streams[t->stream].muddled;
        t->versions |= t->format.model == m ? versions : 0;
        t->statuses |= talk_models.unsteady ? 1u << IPC_UNAVAILABLE : 0;
    }
}
