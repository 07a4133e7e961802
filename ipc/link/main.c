/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: this board's side of the links to others. It alone uses the network. */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base.h"
#include "ipc/link/fetch.h"
#include "ipc/link/front_server.h"
#include "ipc/link/hop.h"
#include "ipc/link/link.h"
#include "ipc/link/own_state.h"
#include "ipc/link/route.h"
#include "ipc/link/segments.h"
#include "ipc/link/talk.h"

#define TICK_MS 250
#define EXIT_USAGE 2
#define EXIT_CONFIG 6 /* no keys, no boards: trying again does not help */

struct args {
    const char *folder, *runtime, *listen, *name, *socket, *control, *models, *relay, *to, *input;
    uint64_t store_bytes;
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
        "Computes frames with other boards, by the daemons there and here. See piped-link(8).\n\n"
        "  --listen ADDRESS    IP or IP:PORT; default 0.0.0.0:8474\n"
        "  --state-dir DIR     keys and boards of pipectl board; default " BRD_FOLDER "\n"
        "  --runtime-dir DIR   reports of links; default " BRD_RUNTIME_FOLDER ", if it is there\n"
        "  --name NAME         of this board, for the others' logs; default: the host's\n"
        "  --socket PATH       the daemon's frames socket\n"
        "  --control PATH      the daemon's control socket; default: control.sock beside that\n"
        "  --models DIR        look there for files of models, IDENTITY.onnx\n"
        "  --store-mb MB       most that parts of other boards' models may take; default: the "
        "disk\n"
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
        {"listen", 1, 0, 'l'},  {"state-dir", 1, 0, 'd'}, {"runtime-dir", 1, 0, 'u'},
        {"name", 1, 0, 'n'},    {"socket", 1, 0, 's'},    {"trusted-wire", 0, 0, 'w'},
        {"control", 1, 0, 'c'}, {"models", 1, 0, 'm'},    {"store-mb", 1, 0, 'b'},
        {"relay", 1, 0, 'r'},   {"to", 1, 0, 't'},        {"input", 1, 0, 'i'},
        {"help", 0, 0, 'h'},    {"version", 0, 0, 'v'},   {0}};
    int c;

    *ret = (struct args){.folder = BRD_FOLDER, .listen = "0.0.0.0", .input = ""};
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        const char **text = c == 'l'   ? &ret->listen
                            : c == 'd' ? &ret->folder
                            : c == 'u' ? &ret->runtime
                            : c == 'n' ? &ret->name
                            : c == 's' ? &ret->socket
                            : c == 'c' ? &ret->control
                            : c == 'm' ? &ret->models
                            : c == 'r' ? &ret->relay
                            : c == 't' ? &ret->to
                            : c == 'i' ? &ret->input
                                       : NULL;

        if (text) {
            *text = optarg;
        } else if (c == 'b') {
            char *end;

            ret->store_bytes = strtoull(optarg, &end, 10) * 1000000;
            if (*optarg < '0' || *optarg > '9' || *end || ret->store_bytes / 1000000 > 1000000000) {
                link_log("--store-mb '%s' is not a number of MB", optarg);
                return EXIT_USAGE;
            }
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

/* What to wait for, and how long. */
static void wait_for(struct link *l, uint64_t until_ns)
{
    struct pollfd fds[9 + SEGMENTS_MAX + 1];
    uint64_t now_ns = base_now_ns();
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    size_t n = 0;

    fds[n++] = (struct pollfd){lnk_transport_fd(l->transport), POLLIN, 0};
    if (l->relay) {
        fds[n++] = (struct pollfd){relay_wants_input(l->relay) ? 0 : -1, POLLIN, 0};
    } else {
        fds[n++] = (struct pollfd){l->front ? front_fd(l->front) : -1, POLLIN, 0};
        fds[n++] = own_state_poll(l->own_state);
        fds[n++] = (struct pollfd){fetch_fd(l), POLLIN, 0};
        n += talk_poll(l->talk, fds + n);
    }
    n += segments_poll(l, fds + n, base_array_count(fds) - n);
    poll(fds, n, (int)base_min((wait_ns + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS, (uint64_t)TICK_MS));
    if (l->relay && fds[1].revents) {
        relay_input(l->relay);
    }
}

/* Return: when the next turn is due, at the latest. */
static uint64_t turn(struct link *l, bool *ret_more)
{
    uint64_t again_ns = UINT64_MAX;

    lnk_transport_dispatch(l->transport);
    if (l->front) {
        front_dispatch(l->front);
    }
    if (!l->relay) {
        own_state_go(l, base_now_ns());
        talk_go(l, base_now_ns());
        fetch_go(l, base_now_ns());
    }
    segments_go(l, base_now_ns());
    hop_go(l);
    links_tick(l, base_now_ns());
    if (l->relay) {
        *ret_more = relay_go(l->relay, base_now_ns());
    } else {
        again_ns = route_go(l, base_now_ns());
    }
    return l->news ? 0 : again_ns;
}

static void loop(const struct args *a, struct link *l)
{
    uint64_t until_ns = 0;
    bool more = true;

    while (!ended && more && !(reload && may_reload(a))) {
        wait_for(l, until_ns);
        until_ns = turn(l, &more);
    }
}

/* Without a folder for its socket nothing is spread from here. Return: 0 or -errno. */
static int open_front(struct link *l)
{
    struct front_listener listener = {l, route_frame};
    char path[128];

    if (!l->report_folder) {
        link_log("there is no runtime folder, so models of this board are not spread");
        return 0;
    }
    if ((size_t)snprintf(path, sizeof(path), "%s/frames.sock", l->report_folder) >= sizeof(path)) {
        return -ENAMETOOLONG;
    }
    return front_open(path, &listener, &l->front);
}

/* All parts but the transport. Return: 0 or an exit code. */
static int make_parts(const struct args *a, struct link *l)
{
    char error[256] = "no memory";
    int rc = segments_new(l, hop_segment_changed, &l->segments);

    rc = rc < 0 ? rc : hops_new(&l->hops);
    if (rc == 0 && a->relay) {
        rc = relay_new(l, a->relay, a->to, a->input, &l->relay, error);
        if (rc < 0) {
            link_log("%s", error);
            return EXIT_USAGE;
        }
    }
    if (rc == 0 && !a->relay) {
        rc = heads_new(&l->heads);
        rc = rc < 0 ? rc : fetch_new(l, l->state_folder, a->store_bytes);
        rc = rc < 0 ? rc : own_state_new(l, &l->own_state);
        rc = rc < 0 ? rc : talk_new(l, &l->talk);
        rc = rc < 0 ? rc : open_front(l);
    }
    if (rc < 0) {
        link_log("cannot start: %s", strerror(-rc));
    }
    return rc < 0 ? 1 : 0;
}

/* Messages that the transport still has are given back first. */
static void free_parts(struct link *l)
{
    l->transport = lnk_transport_close(l->transport);
    fetch_free(l);
    l->relay = relay_free(l->relay);
    l->talk = talk_free(l->talk);
    l->own_state = own_state_free(l->own_state);
    l->front = front_close(l->front);
    l->heads = heads_free(l->heads);
    l->hops = hops_free(l->hops);
    l->segments = segments_free(l->segments);
    for (size_t i = 0; i < BRD_MAX; i++) {
        brd_state_deinit(&l->peer[i].state);
    }
}

/* Until a signal, or the end of the relay. */
static int run(const struct args *a, struct link *l)
{
    struct brd_keys keys;
    int rc = read_state(a, l, &keys);

    reload = 0;
    l->report_ns = 0;
    memset(l->peer, 0, sizeof(l->peer));
    brd_fingerprint(keys.public_key, l->print);
    for (size_t i = 0; i < BRD_MAX; i++) {
        l->peer[i].since_ns = base_now_ns();
        brd_fingerprint(l->boards.board[i].key, l->peer[i].print);
    }
    rc = rc ? rc : make_parts(a, l);
    rc = rc ? rc : open_transport(a, l, &keys);
    brd_forget(&keys);
    if (rc == 0) {
        loop(a, l);
    }
    free_parts(l);
    return rc;
}

/* The daemon's sockets are beside each other. Return: false: a path is too long. */
static bool find_daemon(const struct args *a, struct link *l)
{
    static char frames[128], control[128];
    const char *slash;
    int n;

    if (!a->socket && piped_socket_path(frames, sizeof(frames)) < 0) {
        return false;
    }
    l->frames_path = a->socket ? a->socket : frames;
    slash = strrchr(l->frames_path, '/');
    n = snprintf(control, sizeof(control), "%.*scontrol.sock",
                 slash ? (int)(slash + 1 - l->frames_path) : 0, l->frames_path);
    l->control_path = a->control ? a->control : control;
    return n > 0 && (size_t)n < sizeof(control);
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
    if (!find_daemon(&a, &l)) {
        link_log("the path of the daemon's socket is too long");
        return EXIT_USAGE;
    }
    l.take = links_take;
    l.state_folder = a.folder;
    l.models_folder = a.models;
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
