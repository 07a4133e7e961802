/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/web.h - piped-http: the Open Inference Protocol v2 before the daemon
 *
 * libmicrohttpd gives each connection a thread. A request is received into memory within limits,
 * then answered by one function, which may wait: for a stream of the pool, for the daemon. Frames
 * go by libpiped, which keeps them over restarts of the daemon; questions go by the control socket.
 *
 * Threads: one for each connection, one for each listening socket, the watch (watch.c), and the
 * main thread, which waits for signals. What they share is behind a mutex of its own module, or
 * atomic; struct web itself does not change while connections are served.
 */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <stdatomic.h>

#include "apps/http/memory.h"
#include "base/base.h"
#include "base/cli/cli.h"
#include "ipc/listen.h"

/* ---- the program ---- */

#define WEB_PROGRAM "piped-http"
#define WEB_LISTEN_MAX 8u
#define WEB_EXIT_USAGE 2
#define WEB_EXIT_CONFIG 6 /* trying again does not help */
#define WEB_CODES 600u
#define WEB_HOST_BYTES 256u
#define WEB_FRESH_MS 100u
#define WEB_QUESTION_MS 5000

struct web_pool;
struct web_watch;
struct web_conn;
struct web_control;
struct web_reply;

struct web_options {
    struct cli_texts listen;
    const char *group, *socket, *control, *token_file, *tls_cert, *tls_key, *tls_client_ca, *policy;
    unsigned connections, per_address, per_user, streams, streams_total, queue;
    double request_s, body_mb, memory_mb, image_mpixels, answer_s, reconnect_s, drain_s,
        deadline_ms;
    char frames_path[108], control_path[108]; /* of socket and control, or the defaults */
};

/* What piped-http says of itself, a line on standard error; web_refuse() is @code, and says why it
 * does not serve. Threads: any. */
#define web_log(...) shown_say(WEB_PROGRAM, __VA_ARGS__)
#define web_refuse(code, ...) shown_refuse(code, WEB_PROGRAM, __VA_ARGS__)

/* Each is added to by any thread. */
struct web_counters {
    _Atomic uint64_t codes[WEB_CODES]; /* answers by status */
    _Atomic uint64_t received_bytes, sent_bytes, cut, refused, infers, infer_ns;
};

struct web {
    struct web_options o;
    struct web_pool *pool;
    struct web_watch *watch;
    struct web_control *control;
    char *token; /* owned; NULL: none is needed */
    struct web_counters count;
    struct web_memory memory;
    struct web_peers peers;
    _Atomic bool draining;
};

/* Texts of --tls-cert, --tls-key and --tls-client-ca. */
struct web_tls {
    char *cert, *key, *ca; /* owned; NULL: none */
};

struct web_listener {
    struct web *web; /* borrowed */
    int fd;
    bool local, tls;                /* a Unix socket; TLS */
    char text[160];                 /* its address */
    struct MHD_Daemon *_Atomic mhd; /* its threads read it */
};

struct web_listeners {
    struct web_listener each[WEB_LISTEN_MAX];
    struct ipc_socket_file files[WEB_LISTEN_MAX];
    size_t count;
    int netlink; /* for web_peers_open(), which takes it; -1: none was passed */
};

enum web_body {
    WEB_BODY_NONE,
    WEB_BODY_JSON,
    WEB_BODY_RAW,
    WEB_BODY_FORM,    /* holds a picture */
    WEB_BODY_PICTURE, /* its bytes say which */
    WEB_BODY_JPEG,
    WEB_BODY_PNG,
};

/* What the first line of a request asks for, as it came. */
struct web_target {
    bool plain;   /* no spaces, no control characters */
    size_t bytes; /* up to a NUL */
};

/* One request, from its header on. */
struct web_request {
    struct web_listener *listener; /* borrowed */
    struct MHD_Connection *http;   /* borrowed until it is completed */
    struct web_target target;
    const struct web_route *route;
    const char *host;               /* whom it is for, with a port perhaps; NULL: it does not say */
    char authority[WEB_HOST_BYTES]; /* of a target that is a whole address */
    char model[64];                 /* IPC_NAME_BYTES */
    struct web_owner *owner;        /* borrowed from its connection; NULL: none */
    size_t claimed;                 /* of memory.h, until it is over */
    enum web_body body_kind;
    bool untyped;        /* JSON, if it is not a picture: it has no type, or that of curl */
    size_t header_bytes; /* Inference-Header-Content-Length; SIZE_MAX: there was none */
    uint8_t *body;       /* owned; a NUL follows the bytes */
    size_t bytes, room, all_bytes;
    unsigned refused; /* a status that is answered once the body is over */
    uint64_t begin_ns;
};

/* What is asked for, and what answers it. */
struct web_route {
    bool open;               /* needs no token: it says nothing about this server */
    bool body;               /* a request to infer, by POST; else by GET or HEAD */
    const char *type, *text; /* the answer; NULL: answer() makes it */
    void (*answer)(struct web_request *q, struct web_reply *r);
};

/** web_route_methods() - Return: those that it takes, as Allow has them. */
static inline const char *web_route_methods(const struct web_route *route)
{
    return route->body ? "POST" : "GET, HEAD";
}

/* What becomes the answer. */
struct web_reply {
    unsigned status;
    const char *type, *fixed; /* fixed: a body that is borrowed for good */
    char *body;               /* owned: malloc'ed */
    size_t bytes;
    size_t json_bytes; /* of a body with binary tensors; 0: there are none */
    unsigned retry_s;  /* Retry-After; 0: none */
    bool close;        /* nothing more is read from the connection */
    char timing[96];   /* Server-Timing; "": none */
};

/* listen.c: sockets are those that the service manager passes, else those of --listen, else
 * 127.0.0.1:8000. An address that other machines can reach needs TLS, and a token or certificates
 * of clients. */
/** web_listen() - Return: 0; WEB_EXIT_USAGE, WEB_EXIT_CONFIG or 1, with a message. */
int web_listen(struct web *w, struct web_listeners *ret);
/** web_listen_end() - closes all, and removes the files of Unix sockets. */
void web_listen_end(struct web_listeners *l);

/* guard.c */
/** web_guard_token() - reads the file of the token. @ret: owned. Return: 0; WEB_EXIT_CONFIG, with a
 * message. */
int web_guard_token(const char *path, char **ret);
/** web_guard_tls() - reads certificates and keys and tries them. Return: as web_guard_token(). */
int web_guard_tls(const struct web_options *o, struct web_tls *ret);
/** web_guard_allows() - @open: the request needs no token. Return: false: @r says why not. */
bool web_guard_allows(const struct web_request *q, bool open, struct web_reply *r);

/* watch.c: the connections, and a thread that cuts slow ones. One that receives a request, sends an
 * answer or says nothing may do so for request_s, however many bytes it moves meanwhile. The time
 * in which an answer is computed does not count.
 *
 * An address (--listen) has --connections places, of which one user of this machine gets
 * --per-user, and one IP address --per-address. Where none is free, whoever has most of them loses
 * the one that has waited or been idle for longest, to a client of somebody who has fewer.
 *
 * Threads: any. */
/** web_watch_new() - starts the thread. Return: 0; -ENOMEM, -EAGAIN. */
int web_watch_new(struct web *w, struct web_watch **ret);
/** web_watch_free() - ends it; when no connection is left. Return: NULL. */
struct web_watch *web_watch_free(struct web_watch *watch);
/** web_conn_add() - a client has connected to @l. Without a place for it, it is cut at once; the
 * caller goes on as with others. Return: NULL: no memory. */
struct web_conn *web_conn_add(struct web_watch *watch, const struct web_listener *l, int fd);
/** web_conn_owner() - Return: NULL for NULL. */
struct web_owner *web_conn_owner(struct web_conn *c);
/** web_conn_target() - Return: where the target of the request that comes in is kept until its head
 * is here; NULL for NULL. Threads: the connection's. */
struct web_target *web_conn_target(struct web_conn *c);
/** web_conn_remove() - it has ended; @c is gone. */
void web_conn_remove(struct web_watch *watch, struct web_conn *c);
/** web_conn_works() - @works: an answer is computed; false: the time begins again. */
void web_conn_works(struct web_watch *watch, struct web_conn *c, bool works);
/** web_conn_owes() - a request has begun, or is over. @c may be NULL. */
void web_conn_owes(struct web_watch *watch, struct web_conn *c, bool owes);
/** web_watch_connections() - Return: how many there are. @ret_owed: requests under way. */
size_t web_watch_connections(struct web_watch *watch, size_t *ret_owed);
/** web_watch_drain() - waits until no request is under way, or for @s seconds. */
void web_watch_drain(struct web_watch *watch, double s);

/* control.c: questions to the daemon's control socket. All threads share one connection at a time,
 * and an answer is as good for all that ask within WEB_FRESH_MS; so is a failure. However many
 * clients ask, the daemon is asked ten times a second.
 *
 * Threads: any; a call waits at most WEB_QUESTION_MS for the daemon. */
enum web_question { WEB_STATUS, WEB_MODELS, WEB_HISTORY, WEB_METRICS, WEB_QUESTIONS };

/** web_control_new() - @path: of the socket, borrowed. Return: NULL: no memory. */
struct web_control *web_control_new(const char *path);
struct web_control *web_control_free(struct web_control *c);
/** web_ask() - @r: NULL: nobody is told. Return: the reply's parameters, the caller's reference;
 * NULL: @r is the error. */
json_t *web_ask(struct web_control *c, enum web_question q, struct web_reply *r);
/** web_ask_units() - the units of a model; not kept for others. Return: as web_ask(). */
json_t *web_ask_units(struct web_control *c, const char *model);

/* server.c */
/** web_server_start() - serves a listening socket. @tls: borrowed until it stops. Return: false,
 * with a message. */
bool web_server_start(struct web_listener *l, const struct web_tls *tls);

/* routes.c */
/** web_route_find() - @ret_model: 64 bytes, written if the path names one. Return: NULL: @r says
 * why. */
const struct web_route *web_route_find(const char *path, char *ret_model, struct web_reply *r);

/* infer.c */
/** web_infer() - answers POST /v2/models/MODEL/infer, whose body is there; waits for the daemon. */
void web_infer(struct web_request *q, struct web_reply *r);

/* head.c: the head of a request: nothing that two servers could read in two ways.
 *
 * libmicrohttpd is lenient: it takes the first of two lengths, joins folded lines, takes a bare LF
 * for the end of a line, cuts the target at a NUL. A proxy in front may read such a request in
 * another way, and then the two disagree where the next one begins. Here it is refused.
 *
 * Threads: any. */
/** web_head_strictness() - for MHD_OPTION_STRICT_FOR_CLIENT. Where web_head_doubt() knows how the
 * head is kept, it refuses more than libmicrohttpd would, and says why. */
int web_head_strictness(void);
/** web_head_target_of() - @text: the target as it came, before libmicrohttpd cuts and unescapes it.
 * Return: what web_head_doubt() needs of it. */
struct web_target web_head_target_of(const char *text);
/** web_head_doubt() - @method, @version: as libmicrohttpd passed them. Return: what is ambiguous;
 * the connection must be closed then. NULL: nothing is. */
const char *web_head_doubt(const struct web_request *q, const char *method, const char *version);
/** web_head_number() - Return: @text is digits alone, of at most @most, which is *@ret. */
bool web_head_number(const char *text, uint64_t most, uint64_t *ret);
/**
 * web_head_target() - splits "http://HOST:PORT/PATH", which proxies and some clients send
 *
 * @ret_host: WEB_HOST_BYTES; "": @target is a path alone.
 *
 * Return: the path, borrowed from @target; NULL: it is neither a path nor such an address.
 */
const char *web_head_target(const char *target, char *ret_host);
/** web_head_host() - cuts ":PORT" off. @ret: WEB_HOST_BYTES, an address in brackets with them.
 * Return: false: it is not HOST or HOST:PORT. */
bool web_head_host(const char *authority, char *ret);
/** web_head_unescape() - an unescape callback of libmicrohttpd. What would end the text (%00), or
 * make one part of a path look like two (%2F), stays as it is. */
size_t web_head_unescape(void *arg, struct MHD_Connection *http, char *text);

/* reply.c: answers: bodies that grow, errors in the protocol's form, and sending. */

/* A text that grows. */
struct web_text {
    char *data; /* owned */
    size_t used, size;
    bool failed; /* no memory: data is incomplete */
};

void web_text_add(struct web_text *t, const void *bytes, size_t count);
void web_text_printf(struct web_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** web_text_json() - adds a JSON value, compact. Takes the reference. */
void web_text_json(struct web_text *t, json_t *value);

/** web_reply_forget() - frees what was answered so far, for another answer. */
void web_reply_forget(struct web_reply *r);
/** web_fail() - {"error": "..."}. Return: false. */
bool web_fail(struct web_reply *r, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** web_claim() - memory for a request, until it is over. @r: NULL: the caller answers. Return: as
 * web_memory_claim(); false: @r is the error. */
bool web_claim(struct web_request *q, size_t bytes, struct web_reply *r);
/** web_claim_less() - gives some of it back before. */
void web_claim_less(struct web_request *q, size_t bytes);
/** web_fail_memory() - a claim did not fit (memory.h). Return: false. */
bool web_fail_memory(struct web_reply *r, const struct web *w);
/** web_fail_frame() - an error of the daemon. @status: enum piped_status. */
void web_fail_frame(struct web_reply *r, int status, const char *text);
/** web_fail_open() - an error of piped_connect(), or of piped_stream_open() (@connected). @rc:
 * -errno. */
void web_fail_open(struct web_reply *r, int rc, bool connected, const char *text);
/** web_reply_text() - takes @t's bytes. */
void web_reply_text(struct web_reply *r, const char *type, struct web_text *t);
/** web_reply_json() - takes the reference; without a value an error. */
void web_reply_json(struct web_reply *r, json_t *value);

/** web_send() - hands the answer to libmicrohttpd, and frees it. */
enum MHD_Result web_send(struct web_request *q, struct web_reply *r);
