/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations of several clients with a whole daemon, while plans, models, cores and the
 * configuration change. The bytes are actions of six bytes: what, who, and four of how. Answers are
 * in order, one a frame, and right; nobody gets another client's; the daemon serves on, and rests
 * when all have left. */
#include "base/base.h"
#include "tests/fuzz/conversation_control.h"
#include "tests/fuzz/replay.h"
#include "tests/fuzz/talker.h"

#define CLIENTS 4u
#define ACTION 6u
#define ACTIONS_MAX 96u
#define PATIENCE_NS (25 * BASE_NS_PER_S)

static struct talk_client *clients;

static bool read_all(void)
{
    bool any = control_read();

    for (size_t i = 0; i < CLIENTS; i++) {
        any |= talk_read(&clients[i]);
    }
    return any;
}

static void turn(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        talk_flush(&clients[i], false);
    }
    rig_turn();
    read_all();
}

static bool settled(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        if (!talk_settled(&clients[i])) {
            return false;
        }
    }
    return true;
}

/* Until everything is answered. */
static void settle(bool control)
{
    uint64_t until = base_now_ns() + PATIENCE_NS;

    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i].paused = false;
    }
    for (;;) {
        for (size_t i = 0; i < CLIENTS; i++) {
            talk_flush(&clients[i], true);
        }
        rig_turn();
        if (!read_all()) {
            if (settled() && (!control || control_settled())) {
                return;
            }
            rig_pause();
        }
        MUST(base_now_ns() < until);
    }
}

static void connect_client(struct talk_client *c, const uint8_t *how)
{
    static const uid_t users[] = {0, 1000, 1000, 1001};

    if (c->fd < 0) {
        talk_connect(c, (unsigned)(c - clients) + 1, users[how[0] % base_array_count(users)]);
        if (how[0] < 0xe0) {
            talk_hello(c, how[1] & 1);
        }
    }
}

/* All the rest that a client does. */
static void act(struct talk_client *c, unsigned what, const uint8_t *a)
{
    uint32_t stream = a[0] % TALK_STREAMS;

    switch (what) {
    case 0:
        connect_client(c, a);
        break;
    case 1:
        talk_hello(c, a[0]);
        break;
    case 2:
    case 3:
        connect_client(c, a + 1);
        talk_open(c, stream, a + 1);
        break;
    case 4:
    case 5:
        talk_pool(c, stream);
        break;
    case 6:
        talk_cancel(c, stream, a[1]);
        break;
    case 7:
        talk_close(c, stream);
        break;
    case 8:
        talk_ping(c, a[1]);
        break;
    case 9:
        talk_leave(c);
        break;
    case 10: /* the end of what is sent stays behind for a while */
        c->hold = a[1];
        break;
    case 11:
        c->corrupt_at = a[0] | a[1] << 8;
        c->corrupt_with = a[2] | 1;
        break;
    case 12:
        talk_raw(c, a, a[3] % 4 + 1);
        break;
    case 13:
        talk_unknown(c, a[1]);
        break;
    case 14:
        c->paused = a[0] & 1;
        break;
    case 15:
        talk_punch(c);
        break;
    default: /* frames, most of the time */
        for (unsigned i = a[3] % 4; i > 0; i--) {
            talk_frame(c, stream, (const uint8_t[]){0, (uint8_t)(a[2] + i), a[2]});
        }
        talk_frame(c, stream, a + 1);
    }
}

/* Bits of @what that does nothing of a client's. */
enum { WHAT_CONTROL = 26, WHAT_CORES, WHAT_SETTLE, WHAT_TURN, WHAT_COUNT = 32 };

static void versions_changed(enum talk_model m, unsigned versions)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        talk_versions_change(&clients[i], m, versions);
    }
}

static void step(const uint8_t *a)
{
    static const char *const online[] = {"0-3", "0-1", "0", "2-3", "1-3", "0,2", "", "3"};

    switch (a[0] % WHAT_COUNT) {
    case WHAT_CONTROL:
        control_act(a + 2, versions_changed);
        break;
    case WHAT_CORES:
        if (a[2] < 64) {
            rig_cores(online[a[2] % 8]);
        }
        break;
    case WHAT_SETTLE:
        settle(false);
        break;
    case WHAT_TURN:
        turn();
        break;
    default:
        act(&clients[a[1] % CLIENTS], a[0] % WHAT_COUNT, a + 2);
    }
    if (a[0] < 160) {
        turn();
    }
}

static void finish(void)
{
    settle(true);
    for (size_t i = 0; i < CLIENTS; i++) {
        for (uint32_t s = 1; s < TALK_STREAMS && !clients[i].lying; s++) {
            if (clients[i].streams[s].open) {
                talk_close(&clients[i], s);
            }
        }
    }
    settle(false);
    for (size_t i = 0; i < CLIENTS; i++) {
        talk_leave(&clients[i]);
    }
    rig_rest(control_end());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t count = base_min(bytes / ACTION, (size_t)ACTIONS_MAX);

    rig_start();
    if (!clients) {
        clients = calloc(CLIENTS, sizeof(*clients));
        MUST(clients);
        for (size_t i = 0; i < CLIENTS; i++) {
            clients[i].fd = -1;
        }
    }
    control_begin();
    for (size_t i = 0; i < count; i++) {
        step(data + i * ACTION);
    }
    finish();
    return 0;
}

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    /* client 0 opens stream 1 with a pool and sends both ways, client 1 sends pictures */
    static const uint8_t first[][ACTION] = {
        {2, 0, 1, 0, 0, 0},    {4, 0, 1, 0, 0, 0}, {28, 0, 0, 0, 0, 0}, {16, 0, 1, 0, 1, 0},
        {17, 0, 1, 0, 2, 1},   {3, 1, 2, 1, 0, 9}, {28, 0, 0, 0, 0, 0}, {18, 1, 2, 0, 3, 6},
        {19, 1, 2, 200, 0, 0}, {6, 0, 1, 0, 0, 0}, {28, 0, 0, 0, 0, 0}, {7, 0, 1, 0, 0, 0},
    };
    /* every method, with frames in between, by streams of every policy, priority and few credits */
    const uint8_t how = (uint8_t)(index % 3 | (1 + index % 3) << 2 | index % 4 << 4);
    const uint8_t open[ACTION] = {2, 2, 1, how, 0, 0}, frames[ACTION] = {20, 2, 1, 0, 2, 0};
    const uint8_t settled_now[ACTION] = {WHAT_SETTLE, 0, 0, 0, 0, 0};
    size_t bytes = 0;

    if (index == 0) {
        MUST(sizeof(first) <= cap);
        memcpy(data, first, sizeof(first));
        return sizeof(first);
    }
    if (index > CONTROL_CALLS + 1) {
        return 0;
    }
    for (uint8_t i = 0; i < 4; i++) {
        const uint8_t call[ACTION] = {WHAT_CONTROL, 0, (uint8_t)(index - 1), i, 0, 0};
        const uint8_t online[ACTION] = {WHAT_CORES, 0, i, 0, 0, 0};

        memcpy(data + bytes, i ? frames : open, ACTION);
        memcpy(data + bytes + ACTION, settled_now, ACTION);
        memcpy(data + bytes + 2 * ACTION, frames, ACTION);
        memcpy(data + bytes + 3 * ACTION, index <= CONTROL_CALLS ? call : online, ACTION);
        bytes += 4 * ACTION;
    }
    return bytes;
}
