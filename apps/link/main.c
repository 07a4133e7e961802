/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: this board's side of the links to others. It alone uses the network. */
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/un.h>

#include "apps/link/common/link.h"
#include "apps/link/front/server.h"
#include "apps/link/hop/hop.h"
#include "apps/link/route/route.h"
#include "apps/link/weights/fetch.h"
#include "base/base.h"
#include "base/cli/cli_take.h"
#include "ipc/json_memory.h"
#include "ipc/server/mapped_memory.h"

#define PROGRAM "piped-link"
#define UNUSED_S 30
#define TICK_MS 250
#define EXIT_USAGE 2
#define EXIT_CONFIG 6 /* no keys, no boards: trying again does not help */

struct link_args {
    const char *folder, *runtime, *listen, *name, *socket, *control, *models;
    uint64_t store_mb; /* 0: no limit */
    bool trusted_wire;
    double unused_s, silent_s; /* silent_s 0: the transport's default */
};

/* ---- the command line ---- */

#define AT(field) offsetof(struct link_args, field)
#define TEXT(field) CLI_TEXT, AT(field)

static const struct cli_option options[] = {
    {"listen", "ADDRESS", "@none", "IP or IP:PORT; default 0.0.0.0:8474", TEXT(listen)},
    {"state-dir", "DIR", "@folder", "keys and boards of pipectl board; default " BRD_FOLDER,
     TEXT(folder)},
    {"runtime-dir", "DIR", "@folder",
     "reports of links; default " BRD_RUNTIME_FOLDER ", if it is there", TEXT(runtime)},
    {"name", "NAME", "@none", "of this board, for the others' logs; default: the host's",
     TEXT(name)},
    {"socket", "PATH", "@file", "the daemon's frames socket", TEXT(socket)},
    {"control", "PATH", "@file", "the daemon's control socket; default: control.sock beside that",
     TEXT(control)},
    {"models", "DIR", "@folder", "look there for files of models, IDENTITY.onnx", TEXT(models)},
    {"store-mb", "MB", "@none",
     "most that parts of other boards' models may take; default: the disk", CLI_WHOLE, AT(store_mb),
     0, 1e9},
    {"unused-s", "SECONDS", "@none", "unload segments that nobody uses so long; default 30",
     CLI_SECONDS, AT(unused_s), 0, 86400},
    {"silent-s", "SECONDS", "@none", "a board that is silent so long is lost; default 0.55",
     CLI_SECONDS, AT(silent_s), 0.4, 600},
    {"trusted-wire", NULL, NULL, "do not encrypt; other boards must do the same", CLI_FLAG,
     AT(trusted_wire)},
    {"help", NULL, NULL, "print this", CLI_HELP},
    {"version", NULL, NULL, "print the version", CLI_VERSION},
    {0}};
static const struct cli_command commands[] = {
    {PROGRAM, NULL, "",
     "Computes frames with other boards, by the daemons there and here. See piped-link(8).",
     options, NULL},
    {0}};
static const struct cli_program program = {PROGRAM, NULL, commands};

/* Return: 0; EXIT_USAGE; -1: help or the version was printed. */
static int take_args(int argc, char **argv, struct link_args *ret)
{
    int rc;

    *ret = (struct link_args){.folder = BRD_FOLDER, .listen = "0.0.0.0", .unused_s = UNUSED_S};
    rc = cli_take(&program, argc, argv, ret, NULL);
    return rc ? rc : cli_no_more(&program, argc, argv);
}

/* The paths of the daemon's sockets, which are beside each other. Return: false: too long. */
static bool find_daemon(const struct link_args *a, struct link *l)
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
    return n > 0 && (size_t)n < sizeof(control) &&
           strlen(l->control_path) < sizeof(((struct sockaddr_un *)0)->sun_path);
}

/* ---- the parts of the program ---- */

/* Another try may go well: this computer lacked something for a moment. */
static bool may_pass(int error)
{
    switch (-error) {
    case EIO:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOLCK:
        return true;
    default:
        return false;
    }
}

/* Reads keys and boards. Return: 0 or an exit code, said. */
static int parts_read(const struct link_args *a, struct link *l, struct brd_keys *keys)
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
        return may_pass(rc) ? 1 : EXIT_CONFIG;
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
}

/* Opens the transport. Return: 0 or an exit code, said. */
static int parts_connect(const struct link_args *a, struct link *l, const struct brd_keys *keys)
{
    struct lnk_config c = {.kind = "zmq",
                           .peers = l->boards.board,
                           .peer_count = l->boards.count,
                           .trusted_wire = a->trusted_wire,
                           .part_bytes_max = LNK_PAYLOAD_MAX,
                           .silent_ms = (uint32_t)(1000 * a->silent_s),
                           .listener = {l, links_up, links_down, links_message, room}};
    char address[BRD_ADDRESS_BYTES], error[256];
    int rc;

    if (brd_address(a->listen, true, address) != 0) {
        link_log("--listen '%s': %s", a->listen, brd_sentence(BRD_E_ADDRESS));
        return EXIT_USAGE;
    }
    c.listen = address;
    c.keys = *keys;
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

static void front_vanished(void *user, const char *path, const char *why)
{
    if (why) {
        link_log("%s vanished and cannot be made again: %s; restart piped-link", path, why);
    } else {
        link_log("%s had vanished and was made again", path);
    }
}

/* Without it, clients of the front are served all the same. */
static void guard_pools(void)
{
    int error = ipc_pool_guard_start();

    if (error < 0) {
        link_log("userfaultfd: %s; a client that punches holes into its pool lets piped-link pay "
                 "for the pages",
                 strerror(-error));
    }
}

/* Without a folder for its socket nothing is spread from here. Return: 0 or -errno. */
static int open_front(struct link *l)
{
    struct front_listener listener = {l, route_frame, route_gone, route_share, front_vanished};
    char path[128];

    if (!l->report_folder) {
        link_log("there is no runtime folder, so models of this board are not spread");
        return 0;
    }
    if ((size_t)snprintf(path, sizeof(path), "%s/frames.sock", l->report_folder) >= sizeof(path)) {
        return -ENAMETOOLONG;
    }
    guard_pools();
    return front_open(path, &listener, &l->front);
}

/* All but the transport. Return: 0 or an exit code, said. */
static int parts_make(const struct link_args *a, struct link *l)
{
    int rc;

    l->segments = segments_new(l, hop_segment_changed);
    l->hops = hops_new();
    l->heads = heads_new();
    l->own_state = own_state_new(l);
    l->talk = talk_new(l);
    rc = l->segments && l->hops && l->heads && l->own_state && l->talk ? 0 : -ENOMEM;
    rc = rc < 0 ? rc : fetch_new(l, l->state_folder, a->store_mb * 1000000, route_path);
    rc = rc < 0 ? rc : open_front(l);
    if (rc < 0) {
        link_log("cannot start: %s", strerror(-rc));
    }
    return rc < 0 ? 1 : 0;
}

static void parts_free(struct link *l)
{
    /* Messages that the transport still has are given back first. */
    l->transport = lnk_transport_close(l->transport);
    fetch_free(l);
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

/* ---- the loop ---- */

static volatile sig_atomic_t ended, reload;

static void on_signal(int number)
{
    if (number == SIGHUP) {
        reload = 1;
    } else {
        ended = 1;
    }
}

/* Return: the new list of boards can be used. */
static bool may_reload(const struct link_args *a)
{
    struct brd_keys keys;
    struct link probe = {0};
    int rc = parts_read(a, &probe, &keys);

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
    struct pollfd fds[7 + SEGMENTS_MAX * PIXFMT_COUNT];
    uint64_t now_ns = base_now_ns();
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    size_t n = 0;

    fds[n++] = (struct pollfd){lnk_transport_fd(l->transport), POLLIN, 0};
    fds[n++] = (struct pollfd){l->front ? front_fd(l->front) : -1, POLLIN, 0};
    fds[n++] = own_state_poll(l->own_state);
    fds[n++] = (struct pollfd){fetch_fd(l), POLLIN, 0};
    n += talk_poll(l->talk, fds + n);
    n += segments_poll(l, fds + n, base_array_count(fds) - n);
    poll(fds, n, (int)base_min((wait_ns + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS, (uint64_t)TICK_MS));
}

/* Return: when the next turn is due, at the latest. */
static uint64_t turn(struct link *l)
{
    uint64_t again_ns;

    lnk_transport_dispatch(l->transport);
    if (l->front) {
        front_dispatch(l->front);
    }
    own_state_go(l, base_now_ns());
    talk_go(l, base_now_ns());
    fetch_go(l, base_now_ns());
    segments_go(l, base_now_ns());
    hop_go(l);
    segments_watch(l, base_now_ns());
    links_tick(l, base_now_ns());
    again_ns = route_go(l, base_now_ns());
    return l->news ? 0 : again_ns;
}

static void loop(const struct link_args *a, struct link *l)
{
    uint64_t until_ns = 0;

    while (!ended && !(reload && may_reload(a))) {
        wait_for(l, until_ns);
        until_ns = turn(l);
    }
}

/* Until a signal. */
static int run(const struct link_args *a, struct link *l)
{
    struct brd_keys keys;
    int rc = parts_read(a, l, &keys);

    reload = 0;
    l->report_ns = 0;
    memset(l->peer, 0, sizeof(l->peer));
    brd_fingerprint(keys.public_key, l->print);
    for (size_t i = 0; i < BRD_MAX; i++) {
        l->peer[i].since_ns = base_now_ns();
        brd_fingerprint(l->boards.board[i].key, l->peer[i].print);
    }
    rc = rc ? rc : parts_make(a, l);
    rc = rc ? rc : parts_connect(a, l, &keys);
    brd_forget(&keys);
    if (rc == 0) {
        loop(a, l);
    }
    parts_free(l);
    return rc;
}

int main(int argc, char **argv)
{
    static struct link l;
    static char host[LNK_NAME_BYTES];
    struct sigaction signals = {.sa_handler = on_signal};
    struct link_args a;
    int rc;

    shown_begin();
    rc = take_args(argc, argv, &a);
    if (rc) {
        return shown_end(PROGRAM, rc < 0 ? 0 : rc);
    }
    ipc_json_setup();
    if (!find_daemon(&a, &l)) {
        link_log("the path of the daemon's socket is too long");
        return EXIT_USAGE;
    }
    l.take = links_take;
    l.state_folder = a.folder;
    l.models_folder = a.models;
    l.unused_ns = (uint64_t)(a.unused_s * (double)BASE_NS_PER_S);
    sigaction(SIGTERM, &signals, NULL);
    sigaction(SIGINT, &signals, NULL);
    sigaction(SIGHUP, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (gethostname(host, sizeof(host) - 1) < 0 || !*host) {
        strcpy(host, "board");
    }
    l.name = a.name ? a.name : host;
    if (getrandom(&l.instance, sizeof(l.instance), 0) < 0 || l.instance == 0) {
        l.instance = base_now_ns();
    }
    l.report_folder = a.runtime                               ? a.runtime
                      : access(BRD_RUNTIME_FOLDER, W_OK) == 0 ? BRD_RUNTIME_FOLDER
                                                              : NULL;
    do {
        rc = run(&a, &l);
    } while (rc == 0 && reload && !ended);
    brd_report_remove(l.report_folder);
    return rc;
}
