/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "apps/link/front/server_private.h"
#include "ipc/listen.h"

#define EVENTS_MAX 32
#define ACCEPTS_MAX 16
#define PAUSE_NS (BASE_NS_PER_S / 2)
#define TICK_NS BASE_NS_PER_S
#define SLOW_NS (30 * BASE_NS_PER_S)  /* so long may a client read nothing */
#define HELLO_NS (10 * BASE_NS_PER_S) /* so long may it say nothing */
#define SOCKET_MODE 0660

/* The daemon has a connection for each model. Root and users who have none have kept places. */
static const struct ipc_places places = {.most = 56, .of_user = BRD_ROUTES_MAX, .kept = 8};

struct front {
    struct front_room room;
    struct ipc_socket_file file;
    gid_t group;
    int listen_fd, wake_fd;
    int remake_error; /* of the last try to make the socket's file again */
    uint64_t ticked_ns;
    uint64_t paused_ns; /* since when it accepts nobody, for lack of descriptors; 0: it accepts */
    bool woken;         /* wake_fd is readable */
    bool dispatching;
};

static int wait_for(struct front *f, int fd, void *ptr)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = ptr};

    return epoll_ctl(f->room.epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int listen_at(struct front *f, const char *path)
{
    if (ipc_group_find("piped-clients", &f->group) < 0 || ipc_group_allowed(f->group) < 0) {
        f->group = IPC_NO_GROUP;
    }
    f->listen_fd = ipc_listen(path, SOCKET_MODE, f->group, &f->file);
    return f->listen_fd < 0 ? f->listen_fd : wait_for(f, f->listen_fd, &f->listen_fd);
}

int front_open(const char *path, const struct front_listener *l, struct front **ret)
{
    struct front *f = calloc(1, sizeof(*f));
    int error;

    if (!f) {
        return -ENOMEM;
    }
    f->room.listener = *l;
    ipc_server_init(&f->room.server, &front_messages);
    f->listen_fd = -1;
    f->room.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = f->room.epoll_fd < 0 || f->wake_fd < 0 ? -errno : wait_for(f, f->wake_fd, &f->wake_fd);
    if (error == 0) {
        error = listen_at(f, path);
    }
    if (error < 0) {
        front_close(f);
        return error;
    }
    *ret = f;
    return 0;
}

struct front *front_close(struct front *f)
{
    if (!f) {
        return NULL;
    }
    while (!LIST_EMPTY(&f->room.server.conns)) {
        front_conn_close(front_conn_of(LIST_FIRST(&f->room.server.conns)));
    }
    while (!LIST_EMPTY(&f->room.orphans)) {
        front_conn_end_orphan(LIST_FIRST(&f->room.orphans));
    }
    ipc_socket_file_remove(&f->file);
    base_close_fd(&f->listen_fd);
    base_close_fd(&f->wake_fd);
    base_close_fd(&f->room.epoll_fd);
    free(f);
    return NULL;
}

int front_fd(const struct front *f)
{
    return f->room.epoll_fd;
}

/* Makes front_fd() readable: what became possible outside of front_dispatch() is done there. */
static void wake_if_unsettled(struct front *f)
{
    if (!f->woken && !f->dispatching && !LIST_EMPTY(&f->room.server.unsettled)) {
        f->woken = eventfd_write(f->wake_fd, 1) == 0;
    }
}

static void sleep_again(struct front *f)
{
    eventfd_t count;

    if (f->woken) {
        f->woken = eventfd_read(f->wake_fd, &count) < 0;
    }
}

static void accept_one(void *front, int fd, const struct ucred *peer)
{
    struct front *f = front;
    size_t has = front_conns_of(&f->room, peer->uid);
    enum ipc_place place =
        ipc_place_for(&places, f->room.server.conn_count, has, peer->uid == 0 || has == 0);
    const char *why = NULL;

    if (place == IPC_PLACE_NONE_OF_USER) {
        why = "this user has too many connections to piped-link; close some";
    } else if (place == IPC_PLACE_NONE) {
        why = "piped-link has too many connections; try again later";
    } else if (front_conn_new(&f->room, fd, peer->uid) < 0) {
        why = "piped-link is out of memory for the connection; try again";
    }
    if (why) {
        ipc_server_refuse(fd, IPC_RESOURCE_EXHAUSTED, why);
    }
}

static void accept_clients(struct front *f)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        struct ucred peer;
        int fd, rc = ipc_accept(f->listen_fd, &fd, &peer);

        if (rc < 0) { /* the socket stays readable: without a pause the loop would spin */
            epoll_ctl(f->room.epoll_fd, EPOLL_CTL_DEL, f->listen_fd, NULL);
            f->paused_ns = base_now_ns();
        }
        if (rc != 0) {
            return;
        }
        accept_one(f, fd, &peer);
    }
}

/* Listens anew where its file was, which is gone. Return: 0 or -errno. */
static int listen_again(struct front *f)
{
    int error;

    epoll_ctl(f->room.epoll_fd, EPOLL_CTL_DEL, f->listen_fd, NULL); /* it watches the old socket */
    error = ipc_listen_again(f->listen_fd, &f->file, SOCKET_MODE, f->group, accept_one, f);
    /* without an entry it would never accept again: the next dispatch tries after a pause */
    f->paused_ns = wait_for(f, f->listen_fd, &f->listen_fd) < 0 ? base_now_ns() : 0;
    return error;
}

/* The file may have vanished, or its folder. */
static void look_at_file(struct front *f)
{
    base_autofree char *path = NULL;
    int error = 0;

    if (!ipc_socket_file_there(&f->file)) {
        path = strdup(f->file.path);
        error = path ? listen_again(f) : -ENOMEM;
        if (path && f->room.listener.vanished && (error != f->remake_error || !error)) {
            f->room.listener.vanished(f->room.listener.user, path, error ? strerror(-error) : NULL);
        }
    }
    f->remake_error = error;
}

/* Once a second: clients may not greet, or not read; the file may have vanished. */
static void tick(struct front *f)
{
    uint64_t now_ns = base_now_ns();
    struct ipc_conn *c, *next;

    if (now_ns - f->ticked_ns < TICK_NS) {
        return;
    }
    f->ticked_ns = now_ns;
    for (c = LIST_FIRST(&f->room.server.conns); c; c = next) {
        next = LIST_NEXT(c, linked);
        if (ipc_conn_silent(c, now_ns, HELLO_NS)) {
            ipc_conn_fail(c, IPC_DEADLINE_EXCEEDED, "no HELLO within 10 s of connecting");
        }
        if (ipc_conn_stuck(c, now_ns, SLOW_NS)) {
            front_conn_close(front_conn_of(c));
        }
    }
    front_conns_let_go(&f->room);
    look_at_file(f);
}

void front_dispatch(struct front *f)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(f->room.epoll_fd, events, EVENTS_MAX, 0);

    f->dispatching = true;
    sleep_again(f);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == &f->listen_fd) {
            accept_clients(f);
        } else if (events[i].data.ptr != &f->wake_fd) {
            front_conn_read(events[i].data.ptr, events[i].events); /* closes nobody */
        }
    }
    tick(f);
    while (!LIST_EMPTY(&f->room.server.unsettled)) {
        front_conn_settle(front_conn_of(LIST_FIRST(&f->room.server.unsettled)));
    }
    f->dispatching = false;
    if (f->paused_ns && base_now_ns() - f->paused_ns > PAUSE_NS &&
        wait_for(f, f->listen_fd, &f->listen_fd) == 0) {
        f->paused_ns = 0;
    }
}

void front_models(struct front *f, const struct brd_routes *r)
{
    struct ipc_conn *c;

    front_list_set(&f->room.models, r);
    LIST_FOREACH(c, &f->room.server.conns, linked) {
        for (size_t i = 0; i < c->stream_count; i++) {
            struct front_stream *s = front_stream_of(c->streams[i]);

            front_stream_serves(s, front_list_find(&f->room.models, s->model));
        }
    }
    front_conns_let_go(&f->room);
    wake_if_unsettled(f);
}

void front_answer(struct front *f, struct front_frame *fr, int status, const char *text,
                  uint32_t epoch, uint64_t queue_ns, uint64_t service_ns)
{
    struct front_record *r = base_container_of(fr, struct front_record, frame);
    struct front_stream *s = r->stream;
    struct ipc_conn *c = &s->conn->base;

    front_stream_done(r, status, text, epoch);
    r->answer.queue_ns = queue_ns;
    r->answer.service_ns = service_ns;
    front_conns_let_go(&f->room);
    if (c->closed) {
        if (s->taken == 0) {
            front_conn_end_orphan(s);
        }
    } else if (f->dispatching) {
        ipc_conn_mark(c);
    } else {
        front_conn_answer(front_conn_of(c));
    }
    wake_if_unsettled(f);
}
