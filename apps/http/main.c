/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: starts, waits for a signal, and answers what has begun before it ends. */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>

#include "apps/http/control.h"
#include "apps/http/guard.h"
#include "apps/http/listen.h"
#include "apps/http/pool.h"
#include "apps/http/server.h"
#include "apps/http/watch.h"
#include "base/cli/shown_print.h"
#include "ipc/json_memory.h"

#define LARGE_BYTES (128 << 10)

static int serve(struct web *w, struct web_listeners *l, const struct web_tls *tls)
{
    for (size_t i = 0; i < l->count; i++) {
        if (!web_server_start(&l->each[i], tls)) {
            return WEB_EXIT_CONFIG;
        }
        web_log("listens at %s", l->each[i].text);
    }
    return 0;
}

static void stop(struct web *w, struct web_listeners *l)
{
    w->draining = true;
    for (size_t i = 0; i < l->count; i++) {
        if (l->each[i].mhd) {
            MHD_quiesce_daemon(l->each[i].mhd);
        }
    }
    web_watch_drain(w->watch, w->o.drain_s);
    for (size_t i = 0; i < l->count; i++) {
        web_server_stop(&l->each[i]);
    }
}

static int run(struct web *w, struct web_listeners *l, const struct web_tls *tls)
{
    sigset_t signals;
    int rc, number;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    /* Large pieces are given back when they are freed; glibc would keep those of up to 32 MiB. */
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    web_memory_init(&w->memory, (size_t)(w->o.memory_mb * 1e6));
    web_peers_open(&w->peers, l->netlink);
    w->control = web_control_new(w->o.control_path);
    w->pool = web_pool_new(&w->o, &w->memory);
    if (!w->control || !w->pool || web_watch_new(w, &w->watch) < 0) {
        return web_refuse(EXIT_FAILURE, "out of memory, or of threads");
    }
    rc = serve(w, l, tls);
    if (rc == 0) {
        sigwait(&signals, &number);
    }
    stop(w, l);
    return rc;
}

int main(int argc, char **argv)
{
    static struct web w = {.peers = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1}};
    static struct web_listeners l;
    struct web_tls tls = {0};
    int rc;

    shown_begin();
    rc = web_options_take(argc, argv, &w.o);
    if (rc) {
        return shown_end("piped-http", rc < 0 ? 0 : rc);
    }
    ipc_json_setup();
    rc = w.o.token_file ? web_guard_token(w.o.token_file, &w.token) : 0;
    rc = rc ? rc : web_guard_tls(&w.o, &tls);
    rc = rc ? rc : web_listen(&w, &l);
    rc = rc ? rc : run(&w, &l, &tls);
    web_watch_free(w.watch);
    web_pool_free(w.pool);
    web_control_free(w.control);
    web_memory_deinit(&w.memory);
    web_peers_close(&w.peers);
    web_listen_end(&l);
    free(w.token);
    free(tls.cert);
    free(tls.key);
    free(tls.ca);
    return rc;
}
