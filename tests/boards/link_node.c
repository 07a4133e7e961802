/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One board of the tests of transports.
 *
 *     link_node --kind zmq --name a --listen 127.0.0.1:8474 --peer b=127.0.0.1:8475
 *               [--trusted-wire] [--part-max BYTES] [--queue-max BYTES] [--suite]
 *     mpirun -n 2 link_node --kind mpi --peer a --peer b --suite
 *
 * Keys follow from names: --peer b=ADDRESS=c takes the key of c for b's. With --suite all nodes
 * run the cases below together. Otherwise it obeys lines on stdin and tells what happens on
 * stdout:
 *
 *     send PEER COUNT BYTES     COUNT messages with one range of BYTES, as the peer takes them
 *     rtt PEER COUNT BYTES      round trips; "rtt PEER BYTES MIN_NS MEDIAN_NS"
 *     stats PEER | exit
 */
#include <getopt.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "apps/link/transport/transport.h"
#include "base/base.h"
#include "tests/boards/link_cases.h"

/* Of the suite, in which no link may be lost: on a busy machine a node waits long for its turn. */
#define PATIENT_MS 30000u

static bool said_end, ended;

static void key_of(const char *name, uint8_t public_key[32], uint8_t secret_key[32])
{
    uint8_t seed[crypto_box_SEEDBYTES];

    crypto_generichash(seed, sizeof(seed), (const uint8_t *)name, strlen(name), NULL, 0);
    crypto_box_seed_keypair(public_key, secret_key, seed);
}

static void add_peer(struct node *n, char *text)
{
    struct brd_board *p = &n->peers[n->peer_count++];
    uint8_t unused[32];
    char *name = strsep(&text, "="), *address = strsep(&text, "=");

    snprintf(p->name, sizeof(p->name), "%s", name);
    snprintf(p->address, sizeof(p->address), "%s", address ? address : "");
    key_of(text ? text : name, p->key, unused);
}

static size_t find(const struct node *n, const char *name)
{
    size_t i = 0;

    while (i + 1 < n->peer_count && strcmp(n->peers[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void up(void *user, size_t peer)
{
    struct node *n = user;

    n->up[peer] = true;
    printf("up %s\n", n->peers[peer].name);
}

static void down(void *user, size_t peer, const char *why)
{
    struct node *n = user;

    n->up[peer] = false;
    printf("down %s %s\n", n->peers[peer].name, why);
}

static void message(void *user, size_t peer, const struct lnk_bytes *part, size_t count)
{
    cases_message(user, peer, part, count);
}

static void room(void *user, size_t peer)
{
    struct node *n = user;

    n->rooms++;
    if (!n->suite) {
        printf("room %s\n", n->peers[peer].name);
    }
}

static void obey(struct node *n, char *line)
{
    char *verb = strtok(line, " \n"), *name = strtok(NULL, " \n"), *a = strtok(NULL, " \n"),
         *b = strtok(NULL, " \n");
    size_t peer = find(n, name ? name : "");

    if (!verb || strcmp(verb, "exit") == 0) {
        said_end = true;
    } else if (strcmp(verb, "send") == 0) {
        cases_send(n, peer, strtoul(a, NULL, 10), strtoul(b, NULL, 10));
    } else if (strcmp(verb, "rtt") == 0) {
        cases_round_trips(n, peer, strtoul(a, NULL, 10), strtoul(b, NULL, 10));
    } else {
        struct lnk_peer_stats s;
        struct lnk_transport_stats all;

        lnk_transport_stats(n->transport, peer, &s, &all);
        printf("stats up=%d out=%llu in=%llu queued=%llu ups=%llu downs=%llu denied=%llu "
               "garbage=%llu full=%llu\n",
               s.up, (unsigned long long)s.messages_out, (unsigned long long)s.messages_in,
               (unsigned long long)s.queued_messages, (unsigned long long)s.ups,
               (unsigned long long)s.downs, (unsigned long long)all.denied,
               (unsigned long long)all.garbage, (unsigned long long)s.refused_full);
    }
}

static void interact(struct node *n)
{
    while (!said_end && !ended) {
        struct pollfd fds[2] = {{lnk_transport_fd(n->transport), POLLIN, 0}, {0, POLLIN, 0}};
        char line[512];

        poll(fds, 2, -1);
        lnk_transport_dispatch(n->transport);
        if (fds[1].revents) {
            if (fgets(line, sizeof(line), stdin)) {
                obey(n, line);
            } else {
                ended = true;
            }
        }
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"kind", 1, 0, 'k'},     {"name", 1, 0, 'n'},
                                            {"listen", 1, 0, 'l'},   {"peer", 1, 0, 'p'},
                                            {"suite", 0, 0, 's'},    {"trusted-wire", 0, 0, 't'},
                                            {"part-max", 1, 0, 'x'}, {"queue-max", 1, 0, 'q'},
                                            {"no-key", 0, 0, 'K'},   {0}};
    static struct node n;
    struct lnk_config c = {
        .kind = "zmq", .peers = n.peers, .listener = {&n, up, down, message, room}};
    char error[256];
    bool no_key = false;
    int o, failed;

    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* poll() must see every line */
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (o) {
        case 'k':
            c.kind = optarg;
            break;
        case 'n':
            key_of(optarg, c.keys.public_key, c.keys.secret_key);
            break;
        case 'l':
            c.listen = optarg;
            break;
        case 'p':
            add_peer(&n, optarg);
            break;
        case 's':
            n.suite = true;
            break;
        case 't':
            c.trusted_wire = true;
            break;
        case 'x':
            c.part_bytes_max = strtoull(optarg, NULL, 10);
            break;
        case 'q':
            c.queue_bytes_max = strtoull(optarg, NULL, 10);
            break;
        case 'K':
            no_key = true;
            break;
        default:
            return 2;
        }
    }
    if (no_key) {
        memset(c.keys.secret_key, 0, sizeof(c.keys.secret_key));
    }
    if (n.suite) {
        c.queue_bytes_max = c.queue_bytes_max ? c.queue_bytes_max : 4 << 20;
        c.silent_ms = PATIENT_MS;
    }
    c.peer_count = n.peer_count;
    if (lnk_transport_open(&c, &n.transport, error) < 0) {
        printf("refused %s\n", error);
        return 1;
    }
    printf("ready %u\n", lnk_transport_port(n.transport));
    if (n.suite) {
        failed = cases_run(&n);
        /* A node that closes drops what others still wait for. MPI's close meets the others
         * itself. */
        while (failed == 0 && strcmp(c.kind, "mpi") != 0 && !ended) {
            interact(&n);
        }
    } else {
        interact(&n);
        failed = 0;
    }
    n.transport = lnk_transport_close(n.transport);
    failed += cases_after_close(&n);
    return failed ? 1 : 0;
}
