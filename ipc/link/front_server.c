/* SPDX-License-Identifier: Apache-2.0 */
/* The front: its socket, and what its owner calls. */
#include "ipc/link/front_server.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base.h"
#include "ipc/link/front_server_private.h"
#include "ipc/listen.h"

#define EVENTS_MAX 32
#define ACCEPTS_MAX 16
#define PAUSE_NS (BASE_NS_PER_S / 2)

static int wait_for(struct front *f, int fd, void *ptr)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = ptr};

    return epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
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
    f->listener = *l;
    f->listen_fd = -1;
    f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = f->epoll_fd < 0 || f->wake_fd < 0 ? -errno : wait_for(f, f->wake_fd, &f->wake_fd);
    if (error == 0) {
        error = listen_at(f, path);
    }
    if (error < 0) {
        front_close(f);
        return error;
    }
    if (getrandom(&f->instance, sizeof(f->instance), GRND_NONBLOCK) != sizeof(f->instance)) {
        f->instance = base_now_ns() ^ ((uint64_t)getpid() << 40);
    }
    *ret = f;
    return 0;
}

struct front *front_close(struct front *f)
{
    if (!f) {
        return NULL;
    }
    while (!LIST_EMPTY(&f->conns)) {
        front_conn_close(LIST_FIRST(&f->conns));
    }
    while (!LIST_EMPTY(&f->orphans)) {
        struct front_stream *s = LIST_FIRST(&f->orphans);
        struct front_conn *c = s->conn;

        LIST_REMOVE(s, linked);
        front_stream_free(s);
        c->orphans--;
        front_conn_release(c);
    }
    if (f->path) {
        unlink(f->path);
    }
    free(f->path);
    base_close_fd(&f->listen_fd);
    base_close_fd(&f->wake_fd);
    base_close_fd(&f->epoll_fd);
    free(f);
    return NULL;
}

int front_fd(const struct front *f)
{
    return f->epoll_fd;
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
            if (f->conn_count == FRONT_CONNS_MAX || front_conn_new(f, fd) < 0) {
                refuse(fd);
            }
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            /* the socket stays readable: without a pause the loop would spin */
            epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, f->listen_fd, NULL);
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
        for (c = LIST_FIRST(&f->conns); c; c = next) {
            next = LIST_NEXT(c, linked);
            again |= front_conn_settle(c);
        }
    } while (again || f->again);
}

void front_dispatch(struct front *f)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(f->epoll_fd, events, EVENTS_MAX, 0);

    f->dispatching = true;
    sleep_again(f);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == &f->listen_fd) {
            accept_clients(f);
        } else if (events[i].data.ptr != &f->wake_fd) {
            front_conn_read(events[i].data.ptr, events[i].events); /* closes none of the others */
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

    f->model_count = 0;
    for (size_t i = 0; i < r->count && i < BRD_ROUTES_MAX; i++) {
        f->model_count += front_model_set(&r->route[i], &f->model[f->model_count]);
    }
    LIST_FOREACH(c, &f->conns, linked) {
        for (size_t i = 0; i < c->stream_count; i++) {
            struct front_stream *s = c->streams[i];
            const struct front_model *m = front_model_find(f, s->model);
            bool there = m && memcmp(&m->format, &s->format, sizeof(s->format)) == 0;

            if (s->there && !there) {
                front_stream_event(s, IPC_EVENT_UNLOADING);
            }
            s->there = there;
        }
        front_conn_flush(c);
    }
}

static void put_answer(struct front_record *r, int status, const char *text, uint32_t epoch)
{
    assert(r->state == FRONT_TAKEN);
    r->state = FRONT_DONE;
    r->status = (enum ipc_status)status;
    r->epoch = epoch;
    r->done_ns = base_now_ns();
    if (status != 0) {
        snprintf(r->text, sizeof(r->text), "%s",
                 text && *text ? text : ipc_status_name((enum ipc_status)status));
    }
    r->stream->taken--;
}

static void answer_orphan(struct front_stream *s)
{
    struct front_conn *c = s->conn;

    if (s->taken == 0) {
        LIST_REMOVE(s, linked);
        front_stream_free(s);
        c->orphans--;
        front_conn_release(c);
    }
}

void front_answer(struct front *f, struct front_frame *fr, int status, const char *text,
                  uint32_t epoch, uint64_t queue_ns, uint64_t service_ns)
{
    struct front_record *r = base_container_of(fr, struct front_record, frame);
    struct front_stream *s = r->stream;
    struct front_conn *c = s->conn;

    put_answer(r, status, text, epoch);
    r->queue_ns = queue_ns;
    r->service_ns = service_ns;
    if (c->closed) {
        answer_orphan(s);
    } else if (f->dispatching) {
        f->again = true;
    } else {
        front_stream_answer(s);
        front_conn_flush(c);
        if (c->broken || c->ending || s->closing || c->intake.used > 0) {
            wake(f);
        }
    }
}
