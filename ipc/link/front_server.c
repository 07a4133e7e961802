/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/front_server.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base.h"
#include "ipc/link/front_conn.h"
#include "ipc/link/front_messages.h"
#include "ipc/listen.h"

#define CONNS_MAX 16u
#define EVENTS_MAX 32
#define ACCEPTS_MAX 16
#define PAUSE_NS (BASE_NS_PER_S / 2)

struct front {
    struct front_room room;
    char *path; /* owned */
    int listen_fd, wake_fd;
    uint64_t paused_ns; /* since when it accepts nobody, for lack of descriptors; 0: it accepts */
    bool woken;         /* wake_fd is readable */
    bool dispatching, again; /* again: front_answer() was called meanwhile */
};

static int wait_for(struct front *f, int fd, void *ptr)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = ptr};

    return epoll_ctl(f->room.epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int listen_at(struct front *f, const char *path)
{
    f->listen_fd = ipc_listen(path, 0660, "piped-clients");
    /* EINVAL: a user namespace without that group */
    if (f->listen_fd == -ESRCH || f->listen_fd == -EPERM || f->listen_fd == -EINVAL) {
        f->listen_fd = ipc_listen(path, 0660, "");
    }
    if (f->listen_fd < 0) {
        return f->listen_fd;
    }
    f->path = strdup(path);
    return f->path ? wait_for(f, f->listen_fd, &f->listen_fd) : -ENOMEM;
}

int front_open(const char *path, const struct front_listener *l, struct front **ret)
{
    struct front *f = calloc(1, sizeof(*f));
    int error;

    if (!f) {
        return -ENOMEM;
    }
    f->room.listener = *l;
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
    if (getrandom(&f->room.instance, sizeof(f->room.instance), GRND_NONBLOCK) !=
        sizeof(f->room.instance)) {
        f->room.instance = base_now_ns() ^ ((uint64_t)getpid() << 40);
    }
    *ret = f;
    return 0;
}

struct front *front_close(struct front *f)
{
    if (!f) {
        return NULL;
    }
    while (!LIST_EMPTY(&f->room.conns)) {
        front_conn_close(LIST_FIRST(&f->room.conns));
    }
    while (!LIST_EMPTY(&f->room.orphans)) {
        front_conn_end_orphan(LIST_FIRST(&f->room.orphans));
    }
    if (f->path) {
        unlink(f->path);
    }
    free(f->path);
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
static void wake(struct front *f)
{
    uint64_t one = 1;

    if (!f->woken) {
        f->woken = write(f->wake_fd, &one, sizeof(one)) == sizeof(one);
    }
}

static void sleep_again(struct front *f)
{
    uint64_t count;

    if (f->woken) {
        f->woken = read(f->wake_fd, &count, sizeof(count)) < 0;
    }
}

/* Too many connections: says so as far as the socket has room. */
static void refuse(int fd)
{
    struct ipc_outgoing out = {0};
    static const char text[] = "too many connections";

    if (ipc_outgoing_add(&out,
                         (struct ipc_header){.type = IPC_ERROR, .status = IPC_RESOURCE_EXHAUSTED},
                         NULL, 0, text, sizeof(text) - 1)) {
        ipc_outgoing_flush(&out, fd);
    }
    ipc_outgoing_deinit(&out);
    close(fd);
}

static void accept_clients(struct front *f)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            if (f->room.conn_count == CONNS_MAX || front_conn_new(&f->room, fd) < 0) {
                refuse(fd);
            }
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            /* the socket stays readable: without a pause the loop would spin */
            epoll_ctl(f->room.epoll_fd, EPOLL_CTL_DEL, f->listen_fd, NULL);
            f->paused_ns = base_now_ns();
        }
        if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void settle_all(struct front *f)
{
    struct front_conn *c, *next;
    bool again;

    do {
        f->again = again = false;
        for (c = LIST_FIRST(&f->room.conns); c; c = next) {
            next = LIST_NEXT(c, linked);
            again |= front_messages_settle(c);
        }
    } while (again || f->again);
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
            front_messages_read(events[i].data.ptr,
                                events[i].events); /* closes none of the others */
        }
    }
    settle_all(f);
    f->dispatching = false;
    if (f->paused_ns && base_now_ns() - f->paused_ns > PAUSE_NS &&
        wait_for(f, f->listen_fd, &f->listen_fd) == 0) {
        f->paused_ns = 0;
    }
}

void front_models(struct front *f, const struct brd_routes *r)
{
    struct front_conn *c;

    front_list_set(&f->room.models, r);
    LIST_FOREACH(c, &f->room.conns, linked) {
        for (size_t i = 0; i < c->stream_count; i++) {
            struct front_stream *s = c->streams[i];

            front_stream_serves(s, front_list_find(&f->room.models, s->model));
        }
        front_conn_flush(c);
    }
}

void front_answer(struct front *f, struct front_frame *fr, int status, const char *text,
                  uint32_t epoch, uint64_t queue_ns, uint64_t service_ns)
{
    struct front_record *r = base_container_of(fr, struct front_record, frame);
    struct front_stream *s = r->stream;
    struct front_conn *c = base_container_of(s->peer, struct front_conn, peer);

    front_stream_done(r, status, text, epoch);
    r->answer.queue_ns = queue_ns;
    r->answer.service_ns = service_ns;
    if (c->closed) {
        if (s->taken == 0) {
            front_conn_end_orphan(s);
        }
    } else if (f->dispatching) {
        f->again = true;
    } else {
        front_stream_answer(s);
        front_conn_flush(c);
        if (c->broken || c->peer.ending || s->closing || c->intake.used > 0) {
            wake(f);
        }
    }
}
