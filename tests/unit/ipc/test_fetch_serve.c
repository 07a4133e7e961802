/* SPDX-License-Identifier: Apache-2.0 */
/* Two boards over ZeroMQ with keys: a segment whose leaves were fetched computes, bit for bit, what
 * the whole file computes. */
#include <poll.h>

#include "apps/link/weights/fetch.h"
#include "model/segment/segment.h"
#include "tests/unit/ipc/leaf_file.h"
#include "tests/unit/model/two_products.h"

#define WAIT_NS (60 * BASE_NS_PER_S)

static char folder[] = "/tmp/piped-serve-XXXXXX";
static struct link head, board;
static char file_path[64], error[MDL_ERROR_MAX];
static uint8_t identity[32];

static const char *path_of(const struct link *l, const uint8_t wanted[LNK_HASH_BYTES])
{
    return l == &head && memcmp(wanted, identity, sizeof(identity)) == 0 ? file_path : NULL;
}

static void up(void *user, size_t peer)
{
    ((struct link *)user)->peer[peer].joined = true;
}

static void down(void *user, size_t peer, const char *why)
{
    struct link *l = user;

    l->peer[peer].joined = false;
    fetch_peer_gone(l, peer);
}

static void message(void *user, size_t peer, const struct lnk_bytes *part, size_t count)
{
    size_t bytes = count > 1 ? part[1].bytes : 0;
    struct lnk_message m;

    if (lnk_get(part[0].data, part[0].bytes, &bytes, count - 1, &m) != 0) {
        abort();
    }
    m.part = part + 1;
    if (m.header.type == LNK_WANT) {
        fetch_want(user, peer, &m);
    } else {
        fetch_leaf(user, peer, &m);
    }
}

static void room(void *user, size_t peer)
{
}

static void keys_of(const char *name, uint8_t public_key[32], uint8_t secret_key[32])
{
    uint8_t seed[crypto_box_SEEDBYTES] = {0};

    memcpy(seed, name, strlen(name));
    crypto_box_seed_keypair(public_key, secret_key, seed);
}

/* Loopback addresses of this process alone. */
static void address_of(const char *name, char *ret, size_t bytes)
{
    unsigned pid = (unsigned)getpid();

    snprintf(ret, bytes, "127.%u.%u.%u:%u", 64 + (pid >> 16 & 63), pid >> 8 & 255, pid & 255,
             *name == 'h' ? 8474u : 8475u);
}

static int open_link(struct link *l, const char *self, const char *other)
{
    struct brd_board peer = {{0}};
    char listen[64];
    struct lnk_config c = {.kind = "zmq",
                           .listen = listen,
                           .peers = &peer,
                           .peer_count = 1,
                           .queue_bytes_max = 1 << 20,
                           .listener = {l, up, down, message, room}};
    uint8_t unused[32];

    address_of(self, listen, sizeof(listen));
    address_of(other, peer.address, sizeof(peer.address));
    keys_of(self, c.keys.public_key, c.keys.secret_key);
    keys_of(other, peer.key, unused);
    snprintf(peer.name, sizeof(peer.name), "%s", other);
    l->boards.count = 1;
    snprintf(l->boards.board[0].name, sizeof(l->boards.board[0].name), "%s", other);
    return lnk_transport_open(&c, &l->transport, error);
}

struct goal {
    bool done;
    int status;
    char said[400];
};

static void done(void *arg, int status, const char *path_or_why)
{
    struct goal *g = arg;

    g->done = true;
    g->status = status;
    snprintf(g->said, sizeof(g->said), "%s", path_or_why);
}

static void get(const char *leaves, struct goal *g)
{
    uint64_t until = base_now_ns() + WAIT_NS;

    *g = (struct goal){0};
    if (fetch_begin(&board, 0, identity, leaves, done, g) != 0) {
        abort();
    }
    while (!g->done && base_now_ns() < until) {
        struct pollfd fds[4] = {{lnk_transport_fd(head.transport), POLLIN, 0},
                                {lnk_transport_fd(board.transport), POLLIN, 0},
                                {fetch_fd(&head), POLLIN, 0},
                                {fetch_fd(&board), POLLIN, 0}};

        poll(fds, 4, 100);
        lnk_transport_dispatch(head.transport);
        lnk_transport_dispatch(board.transport);
        fetch_go(&head, base_now_ns());
        fetch_go(&board, base_now_ns());
    }
}

/* "0-1,4" of the leaves that a segment needs. */
static void text_of(const bool *needed, size_t count, char *ret, size_t bytes)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        n += needed[i] ? (size_t)snprintf(ret + n, bytes - n, "%s%zu", n ? "," : "", i) : 0;
    }
}

/* Loads a segment as the daemon does from a file with a leaf list beside it. */
static int load(const char *path, size_t unit, struct mdl_model **ret)
{
    struct mdl_load_options o = {.name = "two"};
    struct mdl_model *whole = NULL;
    struct mdl_leaves l;
    int r = mdl_leaves_file_read(path, &l);

    o.leaves = &l;
    r = r < 0 ? r : mdl_load(path, &o, error, &whole);
    r = r < 0 ? r : mdl_segment(whole, unit, unit, NULL, error, ret);
    mdl_free(whole);
    mdl_leaves_deinit(&l);
    return r;
}

/* What segments compute from the whole file, and which leaves they need. */
static void from_the_whole(float want[2][1024], char leaves[2][64])
{
    struct pb file = two_products();
    struct mdl_model *whole = NULL, *s = NULL;
    FILE *f = fopen(file_path, "wb");
    bool needed[9];

    if (!f || fwrite(file.data, 1, file.bytes, f) != file.bytes || fclose(f) != 0 ||
        mdl_load(file_path, NULL, error, &whole) != 0) {
        abort();
    }
    sodium_hex2bin(identity, sizeof(identity), whole->hash, 64, NULL, NULL, NULL);
    for (size_t unit = 0; unit < 2; unit++) {
        if (mdl_segment(whole, unit, unit, NULL, error, &s) != 0 || run_ones(s, want[unit]) == 0 ||
            mdl_segment_leaves(whole, unit, unit, needed, 9) != 0) {
            abort();
        }
        s = mdl_free(s);
        text_of(needed, 9, leaves[unit], 64);
    }
    mdl_free(whole);
    pb_free(&file);
}

TEST(a_segment_from_fetched_leaves)
{
    static float want[2][1024], got[1024];
    struct mdl_model *s = NULL;
    char leaves[2][64];
    struct stat st;
    struct goal g;
    int r;

    from_the_whole(want, leaves);
    T_EQ(fetch_new(&head, folder, 0, path_of), 0);
    T_EQ(fetch_new(&board, folder, 0, path_of), 0);
    r = open_link(&board, "b1", "head");
    if (r == -ENOTSUP) {
        T_SKIP("this build has no ZeroMQ");
    }
    T_EQ(r, 0);
    T_EQ(open_link(&head, "head", "b1"), 0);
    for (size_t unit = 0; unit < 2; unit++) {
        get(leaves[unit], &g);
        T_TRUE(g.done);
        T_EQ(g.status, 0);
        T_EQ(load(g.said, unit, &s), 0);
        T_TRUE(run_ones(s, got) != 0);
        T_EQ(memcmp(got, want[unit], sizeof(got)), 0);
        s = mdl_free(s);
        if (unit == 0) { /* three leaves are not there */
            T_EQ(stat(g.said, &st), 0);
            T_LT(st.st_blocks * 512, st.st_size - 2 * (off_t)LEAF);
            T_EQ(load(g.said, 1, &s), -EBADMSG);
            T_CONTAINS(error, "is not there");
        }
    }
    head.transport = lnk_transport_close(head.transport);
    board.transport = lnk_transport_close(board.transport);
    fetch_free(&head);
    fetch_free(&board);
}

static void clean(void)
{
    leaf_remove_all(folder);
}

__attribute__((constructor)) static void make_folder(void)
{
    if (!mkdtemp(folder)) {
        abort();
    }
    snprintf(file_path, sizeof(file_path), "%s/two.onnx", folder);
    atexit(clean);
}

TEST_MAIN()
