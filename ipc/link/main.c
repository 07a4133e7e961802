/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: this board's side of the links to others. It alone uses the network. */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base.h"
#include "ipc/link/link.h"

#define TICK_MS 250
#define EXIT_USAGE 2
#define EXIT_CONFIG 6 /* no keys, no boards: trying again does not help */

struct args {
    const char *folder, *runtime, *listen, *name, *socket, *relay, *to, *input;
    bool trusted_wire;
};

static volatile sig_atomic_t ended, reload;

static void on_signal(int number)
{
    if (number == SIGHUP) {
        reload = 1;
    } else {
        ended = 1;
    }
}

static void help(FILE *to)
{
    fputs(
        "usage: piped-link [OPTIONS]\n\n"
        "Computes frames of other boards by the daemon here. See piped-link(8).\n\n"
        "  --listen ADDRESS    IP or IP:PORT; default 0.0.0.0:8474\n"
        "  --state-dir DIR     keys and boards of pipectl board; default " BRD_FOLDER "\n"
        "  --runtime-dir DIR   reports of links; default " BRD_RUNTIME_FOLDER ", if it is there\n"
        "  --name NAME         of this board, for the others' logs; default: the host's\n"
        "  --socket PATH       the daemon's frames socket\n"
        "  --trusted-wire      do not encrypt; other boards must do the same\n"
        "  --relay MODEL       send frames of stdin to other boards, write answers to stdout, end\n"
        "  --to NAME,...       --relay: to these boards; default: all of the list\n"
        "  --input SHAPE       --relay: of the f32 input, such as 1x3x224x224\n",
        to);
}

/* Return: 0; EXIT_USAGE; -1: help was printed. */
static int take_args(int argc, char **argv, struct args *ret)
{
    static const struct option options[] = {
        {"listen", 1, 0, 'l'}, {"state-dir", 1, 0, 'd'}, {"runtime-dir", 1, 0, 'u'},
        {"name", 1, 0, 'n'},   {"socket", 1, 0, 's'},    {"trusted-wire", 0, 0, 'w'},
        {"relay", 1, 0, 'r'},  {"to", 1, 0, 't'},        {"input", 1, 0, 'i'},
        {"help", 0, 0, 'h'},   {"version", 0, 0, 'v'},   {0}};
    int c;

    *ret = (struct args){.folder = BRD_FOLDER, .listen = "0.0.0.0", .input = ""};
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        const char **text = c == 'l'   ? &ret->listen
                            : c == 'd' ? &ret->folder
                            : c == 'u' ? &ret->runtime
                            : c == 'n' ? &ret->name
                            : c == 's' ? &ret->socket
                            : c == 'r' ? &ret->relay
                            : c == 't' ? &ret->to
                            : c == 'i' ? &ret->input
                                       : NULL;

        if (text) {
            *text = optarg;
        } else if (c == 'w') {
            ret->trusted_wire = true;
        } else if (c == 'h') {
            help(stdout);
            return -1;
        } else if (c == 'v') {
            puts("piped-link " PIPED_VERSION);
            return -1;
        } else {
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        link_log("unknown argument '%s'; see --help", argv[optind]);
        return EXIT_USAGE;
    }
    return 0;
}

/* Reads keys and boards. The lock is not kept. Return: 0 or an exit code. */
static int read_state(const struct args *a, struct link *l, struct brd_keys *keys)
{
    base_autoclose int folder = brd_open(a->folder, false);
    int rc = folder < 0 ? folder : brd_keys_read(folder, keys);

    if (rc == -ENOENT) {
        link_log("%s: there are no keys, and nothing listens without; run pipectl board key",
                 a->folder);
        return EXIT_CONFIG;
    }
    rc = rc ? rc : brd_list_read(folder, &l->boards);
    if (rc) {
        link_log("%s: %s", a->folder, rc > 0 ? brd_sentence(rc) : strerror(-rc));
        return EXIT_CONFIG;
    }
    if (l->boards.count == 0) {
        link_log("%s: no other board is on the list; run pipectl board add", a->folder);
        return EXIT_CONFIG;
    }
    return 0;
}

static void room(void *user, size_t peer)
{
    (void)user; /* the loop looks after every turn */
    (void)peer;
}

static int open_transport(const struct args *a, struct link *l, const struct brd_keys *keys)
{
    struct lnk_peer peers[BRD_MAX] = {{{0}}};
    struct lnk_config c = {.kind = "zmq",
                           .peers = peers,
                           .peer_count = l->boards.count,
                           .trusted_wire = a->trusted_wire,
                           .part_bytes_max = LNK_PAYLOAD_MAX,
                           .listener = {l, links_up, links_down, links_message, room}};
    char address[BRD_ADDRESS_BYTES], error[256];
    int rc;

    if (brd_address(a->listen, true, address) != 0) {
        link_log("--listen '%s': %s", a->listen, brd_sentence(BRD_E_ADDRESS));
        return EXIT_USAGE;
    }
    c.listen = address;
    memcpy(c.public_key, keys->public_key, BRD_KEY_BYTES);
    memcpy(c.secret_key, keys->secret_key, BRD_KEY_BYTES);
    for (size_t i = 0; i < l->boards.count; i++) {
        const struct brd_board *b = &l->boards.board[i];

        memcpy(peers[i].name, b->name, sizeof(b->name));
        memcpy(peers[i].address, b->address, sizeof(b->address));
        memcpy(peers[i].key, b->key, BRD_KEY_BYTES);
    }
    rc = lnk_transport_open(&c, &l->transport, error);
    explicit_bzero(&c, sizeof(c));
    if (rc < 0) {
        link_log("%s", error);
        return rc == -ENOTSUP ? EXIT_CONFIG : 1;
    }
    link_log("listens at %s, port %u, for %zu boards%s", a->listen,
             lnk_transport_port(l->transport), l->boards.count,
             a->trusted_wire ? ", unencrypted" : "");
    return 0;
}

/* Return: whether there is another list of boards to go on with. */
static bool may_reload(const struct args *a)
{
    struct brd_keys keys;
    struct link probe = {0};
    int rc = read_state(a, &probe, &keys);

    brd_forget(&keys);
    if (rc) {
        link_log("goes on with the boards that it has");
        reload = 0;
    }
    return rc == 0;
}

static void loop(const struct args *a, struct link *l)
{
    bool more = true;

    while (!ended && more && !(reload && may_reload(a))) {
        struct pollfd fds[3] = {{lnk_transport_fd(l->transport), POLLIN, 0},
                                {serve_fd(l->serve), POLLIN, 0},
                                {l->relay && relay_wants_input(l->relay) ? 0 : -1, POLLIN, 0}};

        poll(fds, 3, TICK_MS);
        lnk_transport_dispatch(l->transport);
        serve_answers(l->serve);
        if (fds[2].revents) {
            relay_input(l->relay);
        }
        links_tick(l, base_now_ns());
        if (l->relay) {
            more = relay_go(l->relay, base_now_ns());
        }
    }
}

/* Until a signal, or the end of the relay. */
static int run(const struct args *a, struct link *l)
{
    struct brd_keys keys;
    char error[256];
    int rc = read_state(a, l, &keys);

    reload = 0;
    l->report_ns = 0;
    memset(l->peer, 0, sizeof(l->peer));
    for (size_t i = 0; i < BRD_MAX; i++) {
        l->peer[i].since_ns = base_now_ns();
    }

    rc = rc ? rc : serve_new(l, a->socket, &l->serve) < 0 ? 1 : 0;
    if (rc == 0 && a->relay && relay_new(l, a->relay, a->to, a->input, &l->relay, error) < 0) {
        link_log("%s", error);
        rc = EXIT_USAGE;
    }
    rc = rc ? rc : open_transport(a, l, &keys);
    brd_forget(&keys);
    if (rc == 0) {
        loop(a, l);
    }
    l->transport = lnk_transport_close(l->transport);
    l->relay = relay_free(l->relay);
    l->serve = serve_free(l->serve);
    return rc;
}

int main(int argc, char **argv)
{
    static struct link l;
    static char host[LNK_NAME_BYTES];
    struct sigaction signals = {.sa_handler = on_signal};
    struct args a;
    int rc = take_args(argc, argv, &a);

    if (rc) {
        return rc < 0 ? 0 : rc;
    }
    sigaction(SIGTERM, &signals, NULL);
    sigaction(SIGINT, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (gethostname(host, sizeof(host) - 1) < 0 || !*host) {
        strcpy(host, "board");
    }
    l.name = a.name ? a.name : host;
    if (getrandom(&l.instance, sizeof(l.instance), 0) < 0 || l.instance == 0) {
        l.instance = base_now_ns();
    }
    if (!a.relay) {
        sigaction(SIGHUP, &signals, NULL);
        l.report_folder = a.runtime                               ? a.runtime
                          : access(BRD_RUNTIME_FOLDER, W_OK) == 0 ? BRD_RUNTIME_FOLDER
                                                                  : NULL;
    }
    do {
        rc = run(&a, &l);
    } while (rc == 0 && reload && !ended);
    brd_report_remove(l.report_folder);
    return rc;
}
