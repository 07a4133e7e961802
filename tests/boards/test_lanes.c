/* SPDX-License-Identifier: Apache-2.0 */
/* Two transports over ZeroMQ in one process, while single calls of the sender's fail. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <zmq.h>

#include "apps/link/transport/transport.h"
#include "tests/harness.h"

#define LIMIT_NS (60 * BASE_NS_PER_S)
#define LARGE 100000u /* bytes of a range: no heartbeat is that long */
#define RANGES 2u

struct side {
    struct lnk_transport *transport;
    bool up;
    unsigned downs, got, wrong;
    char why[64];
};
static struct side side[2];
static unsigned released;
static uint8_t bytes[LARGE];

/* The next write of a large piece fails. */
static atomic_bool no_buffers;

__attribute__((visibility("default"))) ssize_t send(int fd, const void *data, size_t n, int flags)
{
    static ssize_t (*next)(int, const void *, size_t, int);

    next = next ? next : (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    if (n > LARGE / 2 && atomic_exchange(&no_buffers, false)) {
        errno = ENOBUFS;
        return -1;
    }
    return next(fd, data, n, flags);
}

/* The part that there is no memory for, from 1 on; 0: none. */
static unsigned lacks_at;
int __real_zmq_msg_init_data(zmq_msg_t *m, void *data, size_t n, zmq_free_fn *fn, void *hint);
int __wrap_zmq_msg_init_data(zmq_msg_t *m, void *data, size_t n, zmq_free_fn *fn, void *hint);
int __wrap_zmq_msg_init_data(zmq_msg_t *m, void *data, size_t n, zmq_free_fn *fn, void *hint)
{
    if (lacks_at > 0 && --lacks_at == 0) {
        errno = ENOMEM;
        return -1;
    }
    return __real_zmq_msg_init_data(m, data, n, fn, hint);
}

static void came_up(void *user, size_t peer)
{
    struct side *s = user;

    (void)peer;
    s->up = true;
}

static void went_down(void *user, size_t peer, const char *why)
{
    struct side *s = user;

    (void)peer;
    s->up = false;
    s->downs++;
    snprintf(s->why, sizeof(s->why), "%s", why);
}

static void message(void *user, size_t peer, const struct lnk_bytes *part, size_t count)
{
    struct side *s = user;

    (void)peer;
    s->got++;
    s->wrong += count != 1 + RANGES;
    for (size_t i = 1; i < count; i++) {
        s->wrong += part[i].bytes != LARGE || memcmp(part[i].data, bytes, LARGE) != 0;
    }
}

static void room(void *user, size_t peer)
{
    (void)user;
    (void)peer;
}

static void give_back(void *arg)
{
    (void)arg;
    released++;
}

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&at, size) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0) {
        abort();
    }
    close(fd);
    return ntohs(at.sin_port);
}

static void open_both(void)
{
    uint8_t public_key[2][BRD_KEY_BYTES], secret_key[2][BRD_KEY_BYTES];
    char listen[2][32], error[256];

    memset(side, 0, sizeof(side));
    released = 0;
    for (size_t i = 0; i < 2; i++) {
        crypto_box_keypair(public_key[i], secret_key[i]);
        snprintf(listen[i], sizeof(listen[i]), "127.0.0.1:%u", free_port());
    }
    for (size_t i = 0; i < 2; i++) {
        struct brd_board peer = {.name = "other"};
        struct lnk_config c = {.kind = "zmq",
                               .listen = listen[i],
                               .peers = &peer,
                               .peer_count = 1,
                               .listener = {&side[i], came_up, went_down, message, room}};

        snprintf(peer.address, sizeof(peer.address), "%s", listen[1 - i]);
        memcpy(peer.key, public_key[1 - i], BRD_KEY_BYTES);
        memcpy(c.keys.public_key, public_key[i], BRD_KEY_BYTES);
        memcpy(c.keys.secret_key, secret_key[i], BRD_KEY_BYTES);
        if (lnk_transport_open(&c, &side[i].transport, error) < 0) {
            printf("%s\n", error);
            abort();
        }
    }
}

static void close_both(void)
{
    for (size_t i = 0; i < 2; i++) {
        side[i].transport = lnk_transport_close(side[i].transport);
    }
}

/* Both take their turns until it is good(). Return: false: it never is. */
static bool until(bool (*good)(void))
{
    uint64_t end_ns = base_now_ns() + LIMIT_NS;

    while (!good() && base_now_ns() < end_ns) {
        struct pollfd fds[2];

        for (size_t i = 0; i < 2; i++) {
            fds[i] = (struct pollfd){lnk_transport_fd(side[i].transport), POLLIN, 0};
        }
        poll(fds, 2, 1000);
        for (size_t i = 0; i < 2; i++) {
            lnk_transport_dispatch(side[i].transport);
        }
    }
    return good();
}

static bool both_are_up(void)
{
    return side[0].up && side[1].up;
}

static bool is_down(void)
{
    return side[0].downs > 0;
}

static bool one_came(void)
{
    return side[1].got > 0;
}

static bool all_is_released(void)
{
    return released == 1;
}

static int send_one(void)
{
    struct lnk_bytes range[RANGES] = {{bytes, LARGE}, {bytes, LARGE}};

    return lnk_send(side[0].transport, 0, LNK_BULK, (struct lnk_bytes){"first", 5}, range, RANGES,
                    give_back, NULL);
}

TEST(a_message_is_sent_whole_or_not)
{
    struct lnk_peer_stats stats;
    struct lnk_transport_stats all;

    open_both();
    T_TRUE(until(both_are_up));
    for (unsigned part = 1; part <= 1 + RANGES; part++) {
        lacks_at = part;
        T_EQ(send_one(), -ENOMEM);
    }
    T_EQ(released, 0);
    T_EQ(send_one(), 0);
    T_TRUE(until(one_came));
    T_TRUE(until(all_is_released));
    T_EQ(side[1].got, 1);
    T_EQ(side[1].wrong, 0);
    lnk_transport_stats(side[0].transport, 0, &stats, &all);
    T_EQ(stats.queued_messages, 0);
    lnk_transport_stats(side[1].transport, 0, &stats, &all);
    T_EQ(all.garbage, 0);
    close_both();
    T_EQ(released, 1);
}

TEST(a_lane_that_is_not_written_to_is_made_anew)
{
    open_both();
    T_TRUE(until(both_are_up));
    atomic_store(&no_buffers, true);
    T_EQ(send_one(), 0);
    T_TRUE(until(is_down));
    T_TRUE(!atomic_load(&no_buffers));
    T_STR(side[0].why, "what is sent to it stays here");
    T_EQ(side[1].got, 0);
    T_TRUE(until(both_are_up));
    T_TRUE(until(all_is_released));
    T_EQ(send_one(), 0);
    T_TRUE(until(one_came));
    T_EQ(side[1].wrong, 0);
    close_both();
    T_EQ(released, 2);
}

TEST(a_peer_is_dialed_again_on_request)
{
    open_both();
    T_TRUE(until(both_are_up));
    lnk_transport_redial(side[0].transport, 0, "the test says so");
    T_TRUE(until(is_down));
    T_STR(side[0].why, "the test says so");
    T_TRUE(until(both_are_up));
    T_EQ(send_one(), 0);
    T_TRUE(until(one_came));
    T_EQ(side[0].downs, 1);
    close_both();
}

TEST_MAIN()
