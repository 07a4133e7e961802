/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: the listening sockets. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include "apps/http/web.h"

#define DEFAULT_ADDRESS "127.0.0.1:8000"
#define BACKLOG 128
#define FIRST_FD 3 /* of the service manager */

/* What an address that others can reach lacks; NULL: nothing. */
static const char *lacks(const struct web *w)
{
    return !w->o.tls_cert                     ? "TLS: give --tls-cert and --tls-key"
           : !w->token && !w->o.tls_client_ca ? "a way to know its clients: give --token-file or "
                                                "--tls-client-ca"
                                              : NULL;
}

/* A passed descriptor may be anything. */
static bool can_listen(int fd)
{
    int type = 0, listens = 0;
    socklen_t bytes = sizeof(type), more = sizeof(listens);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &more) == 0 && listens;
}

/* Fills in what is known of a bound socket, if it may listen. */
static int describe(struct web *w, int fd, struct web_listener *ret)
{
    union web_address a = {.all = {0}};
    socklen_t bytes = sizeof(a);
    char ip[INET6_ADDRSTRLEN] = "";
    bool v6;
    int on = 1;

    if (getsockname(fd, &a.any, &bytes) < 0) {
        return web_refuse(WEB_EXIT_CONFIG, "descriptor %d: %s", fd, strerror(errno));
    }
    *ret = (struct web_listener){.web = w, .fd = fd, .local = a.any.sa_family == AF_UNIX};
    if (ret->local) {
        snprintf(ret->text, sizeof(ret->text), "unix:%s",
                 ((const struct sockaddr_un *)&a.all)->sun_path);
        return 0;
    }
    v6 = a.any.sa_family == AF_INET6;
    if (a.any.sa_family != AF_INET && !v6) {
        return web_refuse(WEB_EXIT_CONFIG, "descriptor %d is neither a Unix nor an IP socket", fd);
    }
    ret->tls = w->o.tls_cert != NULL;
    inet_ntop(a.any.sa_family, v6 ? (void *)&a.v6.sin6_addr : (void *)&a.v4.sin_addr, ip,
              sizeof(ip));
    snprintf(ret->text, sizeof(ret->text), "%s://%s%s%s:%u", ret->tls ? "https" : "http",
             v6 ? "[" : "", ip, v6 ? "]" : "", ntohs(v6 ? a.v6.sin6_port : a.v4.sin_port));
    if (!web_peer_is_loopback(&a) && lacks(w)) {
        return web_refuse(WEB_EXIT_CONFIG,
                          "%s: other machines can reach this address, but it lacks %s", ret->text,
                          lacks(w));
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return 0;
}

/* Reads "IP:PORT", "[IPv6]:PORT" or "localhost:PORT". */
static bool read_address(const char *text, union web_address *ret, socklen_t *ret_bytes)
{
    const char *colon = strrchr(text, ':');
    char host[64], *end;
    unsigned long port;
    size_t n = colon ? (size_t)(colon - text) : 0;

    *ret = (union web_address){.all = {0}};
    if (!colon || n >= sizeof(host) || colon[1] < '0' || colon[1] > '9') {
        return false;
    }
    port = strtoul(colon + 1, &end, 10);
    if (*end || port > 65535) {
        return false;
    }
    if (n > 2 && text[0] == '[' && colon[-1] == ']') {
        snprintf(host, sizeof(host), "%.*s", (int)(n - 2), text + 1);
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons((uint16_t)port);
        *ret_bytes = sizeof(ret->v6);
        return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1;
    }
    snprintf(host, sizeof(host), "%.*s", (int)n, text);
    ret->v4.sin_family = AF_INET;
    ret->v4.sin_port = htons((uint16_t)port);
    *ret_bytes = sizeof(ret->v4);
    return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                     &ret->v4.sin_addr) == 1;
}

static int open_ip(const char *text, int *ret)
{
    base_autoclose int fd = -1;
    union web_address a;
    socklen_t bytes;
    int on = 1;

    if (!read_address(text, &a, &bytes)) {
        return web_refuse(WEB_EXIT_USAGE,
                          "--listen '%s': IP:PORT, [IPv6]:PORT, localhost:PORT or unix:PATH", text);
    }
    fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, &a.any, bytes) < 0) {
        return web_refuse(EXIT_FAILURE, "cannot listen at %s: %s", text, strerror(errno));
    }
    *ret = base_take_fd(&fd);
    return 0;
}

static int open_unix(const struct web *w, const char *path, int *ret, struct ipc_socket_file *file)
{
    gid_t group = IPC_NO_GROUP;
    int rc = ipc_group_find(w->o.group ? w->o.group : "", &group);
    int fd = rc < 0 ? rc : ipc_listen(path, 0660, group, file);

    if (fd < 0) {
        return web_refuse(EXIT_FAILURE, "cannot listen at unix:%s: %s", path,
                          fd == -ESRCH        ? "there is no such group"
                          : fd == -EADDRINUSE ? "another process serves there"
                                              : strerror(-fd));
    }
    *ret = fd;
    return 0;
}

static int add(struct web *w, const char *text, struct web_listeners *l)
{
    struct ipc_socket_file file = {0};
    bool local = strncmp(text, "unix:", 5) == 0;
    int fd = -1, rc = local ? open_unix(w, text + 5, &fd, &file) : open_ip(text, &fd);

    if (rc) {
        return rc;
    }
    l->files[l->count] = file;
    l->each[l->count++] = (struct web_listener){.web = w, .fd = fd};
    rc = describe(w, fd, &l->each[l->count - 1]);
    /* Not before it is known that it may: nobody can connect until here. */
    if (rc == 0 && !local && listen(fd, BACKLOG) < 0) {
        web_log("cannot listen at %s: %s", text, strerror(errno));
        rc = EXIT_FAILURE;
    }
    return rc;
}

/* The sockets that the service manager passes: their number. */
static size_t passed(void)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    size_t count = pid && fds && atol(pid) == (long)getpid() ? (size_t)strtoul(fds, NULL, 10) : 0;

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return base_min(count, (size_t)WEB_LISTEN_MAX);
}

int web_listen(struct web *w, struct web_listeners *ret)
{
    size_t inherited = passed();
    int rc = 0;

    *ret = (struct web_listeners){.netlink = -1};
    for (size_t i = 0; rc == 0 && i < inherited; i++) {
        int fd = FIRST_FD + (int)i;

        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        if (web_peer_is_netlink(fd) && ret->netlink < 0) {
            ret->netlink = fd;
            continue;
        }
        ret->each[ret->count++].fd = fd;
        if (!can_listen(fd)) {
            return web_refuse(
                WEB_EXIT_CONFIG,
                "descriptor %d of the service manager is not a listening stream socket", fd);
        }
        rc = describe(w, fd, &ret->each[ret->count - 1]);
    }
    for (size_t i = 0; rc == 0 && i < w->o.listen.count; i++) {
        if (ret->count == WEB_LISTEN_MAX) {
            return web_refuse(WEB_EXIT_USAGE, "at most %u addresses", WEB_LISTEN_MAX);
        }
        rc = add(w, w->o.listen.text[i], ret);
    }
    return rc == 0 && ret->count == 0 ? add(w, DEFAULT_ADDRESS, ret) : rc;
}

void web_listen_end(struct web_listeners *l)
{
    for (size_t i = 0; i < l->count; i++) {
        ipc_socket_file_remove(&l->files[i]);
        base_close_fd(&l->each[i].fd);
    }
    l->count = 0;
}
