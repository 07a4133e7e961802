/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: this board's side of the links to others. It alone uses the network. */
#include <poll.h>
#include <signal.h>
#include <sys/random.h>

#include "apps/link/front/server.h"
#include "apps/link/hop/hop.h"
#include "apps/link/hop/segments.h"
#include "apps/link/own_state.h"
#include "apps/link/parts.h"
#include "apps/link/route/route.h"
#include "apps/link/talk.h"
#include "apps/link/weights/fetch.h"
#include "base/base.h"
#include "base/cli/shown_print.h"
#include "ipc/json_memory.h"

#define TICK_MS 250

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
    int rc = link_parts_read(a, &probe, &keys);

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
    int rc = link_parts_read(a, l, &keys);

    reload = 0;
    l->report_ns = 0;
    memset(l->peer, 0, sizeof(l->peer));
    brd_fingerprint(keys.public_key, l->print);
    for (size_t i = 0; i < BRD_MAX; i++) {
        l->peer[i].since_ns = base_now_ns();
        brd_fingerprint(l->boards.board[i].key, l->peer[i].print);
    }
    rc = rc ? rc : link_parts_make(a, l);
    rc = rc ? rc : link_parts_connect(a, l, &keys);
    brd_forget(&keys);
    if (rc == 0) {
        loop(a, l);
    }
    link_parts_free(l);
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
    rc = link_args_take(argc, argv, &a);
    if (rc) {
        return shown_end("piped-link", rc < 0 ? 0 : rc);
    }
    ipc_json_setup();
    if (!link_args_daemon(&a, &l)) {
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
