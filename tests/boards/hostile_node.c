/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A board on the list of others that sends them what no board should.
 *
 *     hostile_node --name evil --listen 127.0.0.1:8474 --peer b2=127.0.0.1:8475=PUBLIC-KEY
 *                  --identity HASH --content digits-12345678 --seed 1
 *
 * Its key follows from its name, as that of a link_node. It obeys lines on stdin, and answers each
 * with "done":
 *
 *     fuzz PEER COUNT             valid messages of all types, damaged ones, and valid nonsense
 *     small PEER COUNT            pings and pongs as fast as they go
 *     greet PEER COUNT            greetings of ever another process
 *     forge PEER STREAM EPOCH FIRST COUNT PRINT
 *                                 answers and errors, as if COUNT frames from FIRST on were its;
 *                                 PRINT: the fingerprint of a board that it says it cannot reach
 *
 * It tells "up PEER", "down PEER", and "plan STREAM EPOCH" when it is given a place.
 */
#include <getopt.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ipc/boards/known_boards.h"
#include "tests/boards/hostile_messages.h"

#define STUCK_NS (30 * BASE_NS_PER_S)
#define ANSWER_BYTES 40u /* of the digits model */

static struct brd_board peers[2];
static bool is_up[2];
static size_t peer_count;
static struct lnk_transport *transport;
static struct hostile hostile;

static void add_peer(char *text)
{
    struct brd_board *p = &peers[peer_count++];
    char *name = strsep(&text, "="), *address = strsep(&text, "=");

    snprintf(p->name, sizeof(p->name), "%s", name);
    snprintf(p->address, sizeof(p->address), "%s", address ? address : "");
    sodium_hex2bin(p->key, sizeof(p->key), text ? text : "", text ? strlen(text) : 0, NULL, NULL,
                   NULL);
    brd_fingerprint(p->key, hostile.print[peer_count]);
}

static void up(void *user, size_t peer)
{
    (void)user;
    is_up[peer] = true;
    printf("up %s\n", peers[peer].name);
}

static void down(void *user, size_t peer, const char *why)
{
    (void)user;
    is_up[peer] = false;
    printf("down %s %s\n", peers[peer].name, why);
}

static void message(void *user, size_t peer, const struct lnk_bytes *part, size_t count)
{
    struct lnk_message m;

    (void)user;
    (void)peer;
    if (count == 1 && lnk_get(part[0].data, part[0].bytes, NULL, 0, &m) == 0 &&
        m.header.type == LNK_PLAN && m.plan.hop_count > 0) {
        printf("plan %u %u\n", m.plan.stream, m.plan.epoch);
    }
}

static void room(void *user, size_t peer)
{
    (void)user;
    (void)peer;
}

/* Sends once the peer takes it. */
static void deliver(size_t peer, enum lnk_lane lane, const struct hostile_message *m)
{
    uint64_t until_ns = base_now_ns() + STUCK_NS;
    struct lnk_bytes first = {m->first, m->first_bytes};

    while (!is_up[peer] ||
           lnk_send(transport, peer, lane, first, m->part, m->count, NULL, NULL) != 0) {
        struct pollfd fd = {lnk_transport_fd(transport), POLLIN, 0};

        if (base_now_ns() > until_ns) {
            printf("stuck\n");
            exit(1);
        }
        poll(&fd, 1, 100);
        lnk_transport_dispatch(transport);
    }
}

static void fuzz(size_t peer, size_t count)
{
    struct hostile_message m;

    for (size_t i = 0; i < count; i++) {
        hostile_any(&hostile, peer + 1, &m);
        deliver(peer, hostile_below(&hostile, 4) ? LNK_BULK : LNK_URGENT, &m);
        if (i % 64 == 0) {
            lnk_transport_dispatch(transport);
        }
    }
}

static void put(size_t peer, struct lnk_message *m, const struct lnk_bytes *part, size_t count)
{
    struct hostile_message out = {.count = count};

    if (count > 0) {
        out.part[0] = *part;
    }
    out.first_bytes = lnk_put(m, 0, out.first);
    deliver(peer, LNK_BULK, &out);
}

static void small(size_t peer, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct lnk_message m = {.header.type = i % 2 ? LNK_PONG : LNK_PING};

        m.ping.id = i;
        put(peer, &m, NULL, 0);
        if (i % 64 == 0) {
            lnk_transport_dispatch(transport);
        }
    }
}

static void greet(size_t peer, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct lnk_message m = {.header.type = LNK_HELLO};

        m.hello.version_min = m.hello.version_max = LNK_VERSION;
        m.hello.instance = 1 + i;
        strcpy(m.hello.name, "evil");
        put(peer, &m, NULL, 0);
        lnk_transport_dispatch(transport);
    }
}

static void forge_answer(size_t peer, struct lnk_answer a)
{
    static const uint8_t zeros[ANSWER_BYTES];
    struct lnk_bytes part = {zeros, sizeof(zeros)};
    struct lnk_message m = {.header.type = LNK_ANSWER, .answer = a};

    m.answer.tensor_count = 1;
    m.tensor[0] = (struct lnk_tensor){
        .dtype = LNK_F32, .rank = 2, .dim = {1, ANSWER_BYTES / 4}, .bytes = ANSWER_BYTES};
    put(peer, &m, &part, 1);
}

static void forge_error(size_t peer, struct lnk_error e, const char *text)
{
    struct lnk_message m = {.header.type = LNK_ERROR, .error = e};

    m.tail = (const uint8_t *)text;
    m.tail_bytes = strlen(text);
    put(peer, &m, NULL, 0);
}

static void forge(size_t peer, uint32_t stream, uint32_t epoch, uint64_t first, uint64_t count,
                  const char *print)
{
    enum { INTERNAL = 10, UNAVAILABLE = 6 };

    for (uint64_t f = first; f < first + count; f++) {
        for (uint16_t way = 0; way <= LNK_PEERS_MAX; way += way < 2 ? 1 : LNK_PEERS_MAX - 2) {
            forge_answer(peer, (struct lnk_answer){
                                   .stream = stream, .epoch = epoch, .frame = f, .way = way});
            forge_error(
                peer,
                (struct lnk_error){
                    .stream = stream, .epoch = epoch, .frame = f, .status = INTERNAL, .way = way},
                "forged");
        }
        lnk_transport_dispatch(transport);
    }
    for (uint16_t hop = 0; hop < 3; hop++) {
        struct lnk_error e = {.stream = stream, .epoch = epoch, .hop = hop, .status = UNAVAILABLE};

        forge_error(peer, e, print);
        forge_error(peer, e, "forged");
    }
}

static void obey(char *line)
{
    char *verb = strtok(line, " \n"), *name = strtok(NULL, " \n");
    uint64_t number[4] = {0};
    const char *print = NULL;
    size_t peer = name && strcmp(name, peers[0].name) != 0 ? 1 : 0;

    for (size_t i = 0; i < base_array_count(number) && (print = strtok(NULL, " \n")); i++) {
        number[i] = strtoull(print, NULL, 10);
    }
    print = strtok(NULL, " \n");
    if (!verb) {
        return;
    }
    if (strcmp(verb, "fuzz") == 0) {
        fuzz(peer, number[0]);
    } else if (strcmp(verb, "small") == 0) {
        small(peer, number[0]);
    } else if (strcmp(verb, "greet") == 0) {
        greet(peer, number[0]);
    } else if (strcmp(verb, "forge") == 0) {
        forge(peer, (uint32_t)number[0], (uint32_t)number[1], number[2], number[3],
              print ? print : "");
    }
    printf("done\n");
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"name", 1, 0, 'n'},     {"listen", 1, 0, 'l'},
                                            {"peer", 1, 0, 'p'},     {"trusted-wire", 0, 0, 't'},
                                            {"identity", 1, 0, 'i'}, {"content", 1, 0, 'c'},
                                            {"seed", 1, 0, 's'},     {0}};
    struct lnk_config c = {.kind = "zmq",
                           .peers = peers,
                           .silent_ms = 30000,
                           .listener = {NULL, up, down, message, room}};
    uint8_t seed[crypto_box_SEEDBYTES];
    char error[256], line[512];
    bool more = true;
    int o;

    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* poll() must see every line */
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (o == 'n') {
            crypto_generichash(seed, sizeof(seed), (const uint8_t *)optarg, strlen(optarg), NULL,
                               0);
            crypto_box_seed_keypair(c.keys.public_key, c.keys.secret_key, seed);
            brd_fingerprint(c.keys.public_key, hostile.print[0]);
        } else if (o == 'l') {
            c.listen = optarg;
        } else if (o == 'p' && peer_count < base_array_count(peers)) {
            add_peer(optarg);
        } else if (o == 't') {
            c.trusted_wire = true;
        } else if (o == 'i') {
            sodium_hex2bin(hostile.identity, sizeof(hostile.identity), optarg, strlen(optarg), NULL,
                           NULL, NULL);
        } else if (o == 'c') {
            hostile.content = optarg;
        } else if (o == 's') {
            hostile.random = strtoull(optarg, NULL, 0);
        } else {
            return 2;
        }
    }
    c.peer_count = peer_count;
    if (lnk_transport_open(&c, &transport, error) < 0) {
        printf("refused %s\n", error);
        return 1;
    }
    printf("ready\n");
    while (more) {
        struct pollfd fds[2] = {{lnk_transport_fd(transport), POLLIN, 0}, {0, POLLIN, 0}};

        lnk_transport_dispatch(transport);
        poll(fds, 2, -1);
        if (fds[1].revents) {
            more = fgets(line, sizeof(line), stdin) != NULL;
            if (more) {
                obey(line);
            }
        }
    }
    lnk_transport_close(transport);
    return 0;
}
