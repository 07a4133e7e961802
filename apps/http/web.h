/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/web.h - piped-http: the Open Inference Protocol v2 before the daemon
 *
 * libmicrohttpd gives each connection a thread. A request is received into memory within limits,
 * then answered by one function, which may wait: for a stream of the pool, for the daemon. Frames
 * go by libpiped, which keeps them over restarts of the daemon; questions go by the control socket.
 *
 * Threads: one for each connection, one for each listening socket, the watch (watch.h), and the
 * main thread, which waits for signals. What they share is behind a mutex of its own module, or
 * atomic; struct web itself does not change while connections are served.
 */
#pragma once

#include <microhttpd.h>
#include <stdatomic.h>

#include "apps/http/memory.h"
#include "apps/http/options.h"
#include "apps/http/peer.h"
#include "base/base.h"

#define WEB_CODES 600u
#define WEB_HOST_BYTES 256u

struct web_pool;
struct web_watch;
struct web_control;
struct web_reply;

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
