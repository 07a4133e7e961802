/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/daemon_call.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base.h"
#include "ipc/varlink.h"

#define RETRY_NS (250 * BASE_NS_PER_MS)
/* Each connection starts a service again that fails to start. */
#define NOT_STARTED_NS (10 * BASE_NS_PER_S)
#define READ_BYTES (64u << 10)

struct pending {
    daemon_reply *reply;
    void *arg;
    bool answered; /* by a reply that continues */
};
struct daemon_conn {
    const char *path;
    int fd; /* -1: not connected */
    unsigned ups;
    uint64_t retry_ns;
    bool not_started;  /* said by this connection */
    uint64_t heard_ns; /* the last reply came then, or a call when none was out */
    struct pending pending[DAEMON_CALLS_MAX];
    size_t pending_count;
    char *out; /* owned: bytes that are not yet written */
    size_t out_bytes, out_sent;
    struct ipc_varlink_reader reader;
};

int daemon_conn_new(const char *path, struct daemon_conn **ret)
{
    struct daemon_conn *c;

    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        return -ENAMETOOLONG;
    }
    c = calloc(1, sizeof(*c));
    if (!c) {
        return -ENOMEM;
    }
    c->path = path;
    c->fd = -1;
    *ret = c;
    return 0;
}

struct daemon_conn *daemon_conn_free(struct daemon_conn *c)
{
    if (c) {
        base_close_fd(&c->fd);
        ipc_varlink_reader_deinit(&c->reader);
        free(c->out);
        free(c);
    }
    return NULL;
}

unsigned daemon_conn_up(const struct daemon_conn *c)
{
    return c->fd < 0 ? 0 : c->ups;
}

uint64_t daemon_conn_waits_ns(const struct daemon_conn *c, uint64_t now_ns)
{
    bool owes = c->pending_count > 0 && !c->pending[0].answered;

    return owes && now_ns > c->heard_ns ? now_ns - c->heard_ns : 0;
}

struct pollfd daemon_conn_poll(const struct daemon_conn *c)
{
    short out = c->out_sent < c->out_bytes ? POLLOUT : 0;

    return (struct pollfd){.fd = c->fd, .events = (short)(POLLIN | out)};
}

static void lost(struct daemon_conn *c, uint64_t now_ns)
{
    struct pending p[DAEMON_CALLS_MAX];
    size_t count = c->pending_count;

    base_close_fd(&c->fd);
    ipc_varlink_reader_deinit(&c->reader);
    c->out_bytes = c->out_sent = 0;
    c->retry_ns = now_ns + (c->not_started ? NOT_STARTED_NS : RETRY_NS);
    c->not_started = false;
    memcpy(p, c->pending, sizeof(p));
    c->pending_count = 0;
    for (size_t i = 0; i < count; i++) {
        p[i].reply(p[i].arg, DAEMON_LOST, NULL);
    }
}

/* A Unix socket connects at once or not at all. */
static void try_connect(struct daemon_conn *c, uint64_t now_ns)
{
    base_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    strcpy(to.sun_path, c->path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        c->retry_ns = now_ns + RETRY_NS;
        return;
    }
    c->fd = fd;
    fd = -1;
    c->ups++;
}

int daemon_conn_call(struct daemon_conn *c, const char *method, json_t *parameters, bool more,
                     daemon_reply *reply, void *arg)
{
    base_autofree char *text = NULL;
    size_t bytes;
    char *grown;
    int rc = c->fd < 0 ? -ENOTCONN
             : c->pending_count == DAEMON_CALLS_MAX
                 ? -EBUSY
                 : ipc_varlink_call(method, parameters, more, &text, &bytes);

    json_decref(parameters);
    if (rc < 0) {
        return rc;
    }
    if (c->out_sent > 0) {
        memmove(c->out, c->out + c->out_sent, c->out_bytes - c->out_sent);
        c->out_bytes -= c->out_sent;
    }
    c->out_sent = 0;
    grown = realloc(c->out, c->out_bytes + bytes);
    if (!grown) {
        return -ENOMEM;
    }
    c->out = grown;
    memcpy(c->out + c->out_bytes, text, bytes);
    c->out_bytes += bytes;
    c->heard_ns = c->pending_count == 0 ? base_now_ns() : c->heard_ns;
    c->pending[c->pending_count++] = (struct pending){reply, arg, false};
    return 0;
}

/* Return: false: the connection is unusable. */
static bool write_out(struct daemon_conn *c)
{
    while (c->out_sent < c->out_bytes) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_bytes - c->out_sent, MSG_NOSIGNAL);

        if (n < 0) {
            /* EPIPE: what came says why */
            return errno == EAGAIN || errno == EINTR || errno == EPIPE;
        }
        c->out_sent += (size_t)n;
    }
    return true;
}

/* A call whose reply continues stays the first that waits. Return: false: not a reply to a call. */
static bool take_reply(struct daemon_conn *c, json_t *message)
{
    const char *error = json_string_value(json_object_get(message, "error"));
    bool more = !error && json_is_true(json_object_get(message, "continues"));
    struct pending first = c->pending[0];

    c->not_started |= error && strcmp(error, IPC_VARLINK_NOT_STARTED) == 0;
    if (c->pending_count == 0) {
        return false;
    }
    c->heard_ns = base_now_ns();
    c->pending[0].answered = true;
    if (!more) {
        c->pending_count--;
        memmove(c->pending, c->pending + 1, c->pending_count * sizeof(first));
    }
    first.reply(first.arg, error, json_object_get(message, "parameters"));
    return true;
}

static bool read_in(struct daemon_conn *c)
{
    char bytes[READ_BYTES];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);
    bool good = true;
    json_t *message;
    int rc;

    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    if (ipc_varlink_feed(&c->reader, bytes, (size_t)n) != 0) {
        return false;
    }
    while (good && (rc = ipc_varlink_next(&c->reader, &message)) == 0) {
        good = take_reply(c, message);
        json_decref(message);
    }
    return good && rc == IPC_VARLINK_E_NONE;
}

void daemon_conn_go(struct daemon_conn *c, uint64_t now_ns)
{
    if (c->fd < 0 && now_ns >= c->retry_ns) {
        try_connect(c, now_ns);
    }
    if (c->fd >= 0 && (!write_out(c) || !read_in(c))) {
        lost(c, now_ns);
    }
}
