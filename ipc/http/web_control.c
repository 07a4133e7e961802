/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/http/web_control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base.h"
#include "ipc/show/fold_segments.h"
#include "ipc/varlink.h"

#define EVENTS 20 /* decisions that the status page shows */

struct kept {
    json_t *reply; /* owned; NULL: it failed */
    int rc;
    uint64_t at_ns; /* 0: never asked */
    char why[WEB_WHY_BYTES];
};

struct web_control {
    const char *path;
    pthread_mutex_t lock; /* of all below, and of being connected */
    struct kept kept[WEB_QUESTIONS];
};

struct web_control *web_control_new(const char *path)
{
    struct web_control *c = calloc(1, sizeof(*c));

    if (c) {
        c->path = path;
        pthread_mutex_init(&c->lock, NULL);
    }
    return c;
}

struct web_control *web_control_free(struct web_control *c)
{
    if (c) {
        for (size_t i = 0; i < WEB_QUESTIONS; i++) {
            json_decref(c->kept[i].reply);
        }
        pthread_mutex_destroy(&c->lock);
        free(c);
    }
    return NULL;
}

static int fail(int rc, char why[WEB_WHY_BYTES], const char *path, const char *text)
{
    snprintf(why, WEB_WHY_BYTES, "piped is not reachable at %s: %s", path, text);
    return rc;
}

static int connect_to(const char *path, char why[WEB_WHY_BYTES])
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    base_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int mine;

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        return fail(-errno, why, path, strerror(errno));
    }
    mine = fd;
    fd = -1;
    return mine;
}

/* Reads one reply. */
static int receive(int fd, const char *path, json_t **ret, char why[WEB_WHY_BYTES])
{
    struct ipc_varlink_reader reader = IPC_VARLINK_READER_NULL;
    uint64_t end_ns = base_now_ns() + WEB_QUESTION_MS * BASE_NS_PER_MS;
    int rc = IPC_VARLINK_E_NONE;

    while (rc == IPC_VARLINK_E_NONE) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t now = base_now_ns();
        char bytes[16384];
        ssize_t n;

        if (now >= end_ns) {
            rc = fail(-ETIMEDOUT, why, path, "it has not answered for 5 s");
            break;
        }
        poll(&p, 1, (int)((end_ns - now) / BASE_NS_PER_MS) + 1);
        n = recv(fd, bytes, sizeof(bytes), 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            continue;
        }
        if (n <= 0) {
            rc = fail(n < 0 ? -errno : -ECONNRESET, why, path,
                      n < 0 ? strerror(errno) : "it closed the connection");
            break;
        }
        rc = ipc_varlink_feed(&reader, bytes, (size_t)n);
        rc = rc ? fail(-EPROTO, why, path, "its answer is too long")
                : ipc_varlink_next(&reader, ret);
    }
    ipc_varlink_reader_deinit(&reader);
    return rc > 0 ? fail(-EPROTO, why, path, "its answer is not JSON") : rc;
}

/* Takes the reference @parameters. */
static int call(const char *path, const char *method, json_t *parameters, json_t **ret,
                char why[WEB_WHY_BYTES])
{
    base_autofree char *text = NULL;
    base_autoclose int fd = connect_to(path, why);
    json_t *message = NULL;
    size_t bytes;
    int rc = fd < 0 ? fd : ipc_varlink_call(method, parameters, false, &text, &bytes);
    ssize_t sent;

    json_decref(parameters);
    if (rc < 0) {
        return rc;
    }
    sent = send(fd, text, bytes, MSG_NOSIGNAL);
    if (sent != (ssize_t)bytes && !(sent < 0 && errno == EPIPE)) { /* EPIPE: what came says why */
        return fail(-EPIPE, why, path, "it closed the connection");
    }
    rc = receive(fd, path, &message, why);
    if (rc < 0) {
        return rc;
    }
    if (json_object_get(message, "error")) {
        ipc_varlink_error_text(json_string_value(json_object_get(message, "error")),
                               json_object_get(message, "parameters"), why, WEB_WHY_BYTES);
        rc = -EREMOTEIO;
    } else {
        *ret = json_incref(json_object_get(message, "parameters"));
        rc = *ret ? 0 : fail(-EPROTO, why, path, "its answer is empty");
    }
    json_decref(message);
    return rc;
}

int web_ask(struct web_control *c, enum web_question q, json_t **ret, char ret_why[WEB_WHY_BYTES])
{
    static const char *const methods[] = {"io.piped.Status", "io.piped.Models", "io.piped.History",
                                          "io.piped.Metrics"};
    struct kept *k = &c->kept[q];
    int rc;

    pthread_mutex_lock(&c->lock);
    if (k->at_ns == 0 || base_now_ns() - k->at_ns >= WEB_FRESH_MS * BASE_NS_PER_MS) {
        json_t *reply = NULL;

        k->rc = call(c->path, methods[q],
                     q == WEB_HISTORY ? json_pack("{s:i}", "limit", EVENTS) : json_object(), &reply,
                     k->why);
        if (q == WEB_STATUS && k->rc == 0) { /* before others see it */
            shw_fold_segments(json_object_get(reply, "status"));
        }
        json_decref(k->reply);
        k->reply = reply;
        k->at_ns = base_now_ns();
    }
    rc = k->rc;
    if (rc == 0) {
        /* Many threads read it at once, which jansson allows; its reference counts are atomic. */
        *ret = json_incref(k->reply);
    } else {
        snprintf(ret_why, WEB_WHY_BYTES, "%s", k->why);
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int web_ask_units(struct web_control *c, const char *model, json_t **ret,
                  char ret_why[WEB_WHY_BYTES])
{
    int rc;

    pthread_mutex_lock(&c->lock);
    rc = call(c->path, "io.piped.Units", json_pack("{s:s}", "model", model), ret, ret_why);
    pthread_mutex_unlock(&c->lock);
    return rc;
}
