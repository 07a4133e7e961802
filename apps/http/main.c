/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: reads the command line, starts, waits for a signal, and answers what has begun
 * before it ends. */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>

#include "apps/http/pool.h"
#include "base/cli/cli_take.h"
#include "ipc/json_memory.h"
#include "ipc/piped.h"

#define LARGE_BYTES (128 << 10)

/* ---- the command line ---- */

#define AT(field) offsetof(struct web_options, field)
#define TEXT(field) CLI_TEXT, AT(field)

static const struct cli_option OPTIONS[] = {
    {"listen", "ADDRESS", "@none", "IP:PORT, localhost:PORT or unix:PATH; default 127.0.0.1:8000",
     CLI_TEXTS, AT(listen), .many = true},
    {"group", "NAME", "@none", "group that may connect to unix:PATH; default: its own",
     TEXT(group)},
    {"socket", "PATH", "@file", "the daemon's frames socket", TEXT(socket)},
    {"control", "PATH", "@file", "the daemon's control socket; default: control.sock beside that",
     TEXT(control)},
    {"token-file", "FILE", "@file", "requests need the bearer token that FILE holds",
     TEXT(token_file)},
    {"tls-cert", "FILE", "@file", "certificate chain (PEM): TLS on all but Unix sockets",
     TEXT(tls_cert)},
    {"tls-key", "FILE", "@file", "its private key (PEM)", TEXT(tls_key)},
    {"tls-client-ca", "FILE", "@file", "clients need a certificate of these issuers (PEM)",
     TEXT(tls_client_ca)},
    {"connections", "N", "@none", "most connections of each address; default 64", CLI_UNSIGNED,
     AT(connections), 1, 4096},
    {"per-address", "N", "@none", "most of them from one IP address of another machine; default 32",
     CLI_UNSIGNED, AT(per_address), 1, 4096},
    {"per-user", "N", "@none", "most of them from one user of this machine; default 48",
     CLI_UNSIGNED, AT(per_user), 1, 4096},
    {"request-s", "S", "@none",
     "time for a whole request, for taking an answer, and for saying nothing; default 30",
     CLI_SECONDS, AT(request_s), 0.1, 3600},
    {"body-mb", "MB", "@none", "largest body of a request; default 64", CLI_REAL, AT(body_mb),
     0.001, 1024},
    {"memory-mb", "MB", "@none", "most memory for all requests; default 256", CLI_REAL,
     AT(memory_mb), 0.001, 65536},
    {"image-mpixels", "N", "@none", "largest picture, in megapixels; default 64", CLI_REAL,
     AT(image_mpixels), 0.001, 256},
    {"streams", "N", "@none", "most frames of a model at once; default 8", CLI_UNSIGNED,
     AT(streams), 1, 256},
    {"streams-total", "N", "@none", "most frames of all models at once; default 32", CLI_UNSIGNED,
     AT(streams_total), 1, 1024},
    {"queue", "N", "@none", "most requests that wait for one of these; default 64", CLI_UNSIGNED,
     AT(queue), 0, 4096},
    {"policy", "P", "block reject", "what happens when the daemon is busy; default block",
     TEXT(policy)},
    {"deadline-ms", "MS", "@none", "deadline of frames whose request names none; default 0: none",
     CLI_REAL, AT(deadline_ms), 0, 3600000},
    {"answer-s", "S", "@none", "longest time for an answer of the daemon; default 60", CLI_SECONDS,
     AT(answer_s), 0.1, 3600},
    {"reconnect-s", "S", "@none", "how long frames wait for a daemon that went away; default 10",
     CLI_SECONDS, AT(reconnect_s), 0.1, 3600},
    {"drain-s", "S", "@none", "at the end: time for requests that have begun; default 10",
     CLI_SECONDS, AT(drain_s), 0, 3600},
    {"help", NULL, NULL, "print this", CLI_HELP},
    {"version", NULL, NULL, "print the version", CLI_VERSION},
    {0}};
static const struct cli_command COMMANDS[] = {
    {WEB_PROGRAM, NULL, "",
     "Serves the daemon's models over HTTP by the Open Inference Protocol v2. See piped-http(8).",
     OPTIONS, NULL},
    {0}};
static const struct cli_program program = {WEB_PROGRAM, NULL, COMMANDS};

static int set_paths(struct web_options *o)
{
    const char *slash;
    int n = 0;

    if (o->socket) {
        n = snprintf(o->frames_path, sizeof(o->frames_path), "%s", o->socket);
    } else if (piped_socket_path(o->frames_path, sizeof(o->frames_path)) < 0) {
        n = (int)sizeof(o->frames_path);
    }
    if (n < (int)sizeof(o->frames_path)) {
        slash = strrchr(o->frames_path, '/');
        n = o->control ? snprintf(o->control_path, sizeof(o->control_path), "%s", o->control)
                       : snprintf(o->control_path, sizeof(o->control_path), "%.*scontrol.sock",
                                  slash ? (int)(slash + 1 - o->frames_path) : 0, o->frames_path);
    }
    if (n >= (int)sizeof(o->control_path)) {
        return web_refuse(WEB_EXIT_USAGE, "the path of the daemon's socket is too long");
    }
    return 0;
}

static int judge(const struct web_options *o)
{
    const char *wrong = !o->tls_cert != !o->tls_key ? "--tls-cert and --tls-key belong together"
                        : o->tls_client_ca && !o->tls_cert
                            ? "--tls-client-ca needs --tls-cert and --tls-key"
                        : o->body_mb > o->memory_mb ? "--memory-mb must be at least --body-mb"
                                                    : NULL;

    if (wrong) {
        return web_refuse(WEB_EXIT_USAGE, "%s", wrong);
    }
    return 0;
}

/* Return: 0; WEB_EXIT_USAGE, with a message; -1: help or the version was printed. */
static int take_options(int argc, char **argv, struct web_options *ret)
{
    int rc;

    *ret = (struct web_options){.policy = "block",
                                .connections = 64,
                                .per_address = 32,
                                .per_user = 48,
                                .request_s = 30,
                                .body_mb = 64,
                                .memory_mb = 256,
                                .image_mpixels = 64,
                                .streams = 8,
                                .streams_total = 32,
                                .queue = 64,
                                .answer_s = 60,
                                .reconnect_s = 10,
                                .drain_s = 10};
    rc = cli_take(&program, argc, argv, ret, NULL);
    rc = rc ? rc : cli_no_more(&program, argc, argv);
    rc = rc ? rc : judge(ret);
    return rc ? rc : set_paths(ret);
}

/* ---- the program ---- */

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
        if (l->each[i].mhd) {
            MHD_stop_daemon(l->each[i].mhd);
        }
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
    rc = take_options(argc, argv, &w.o);
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
    base_close_fd(&w.peers.fd);
    web_listen_end(&l);
    free(w.token);
    free(tls.cert);
    free(tls.key);
    free(tls.ca);
    return rc;
}
