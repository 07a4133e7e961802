/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: a stream of the daemon here, opened on a thread of its own. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "apps/link/hop/hop_private.h"
#include "ipc/boards/route_window.h"

#define CONNECT_MS 200u           /* how long to look for a daemon that went away */
#define SLOTS 16u                 /* frames that one may have, computed or waiting */
#define SLOTS_BYTES (64ull << 20) /* unless they take more than that */
#define STACK_BYTES (256u << 10)

struct segment_opening {
    char path[128], model[128];
    uint32_t pixfmt;
    int fd; /* eventfd, owned */
    struct segment_opened result;
    atomic_flag first; /* set by who of thread and loop is done first; the other one frees */
    atomic_bool over;
};

static void free_opening(struct segment_opening *o)
{
    piped_close(o->result.piped);
    base_close_fd(&o->fd);
    free(o);
}

static int open_stream(struct segment_opening *o)
{
    struct segment_opened *r = &o->result;
    struct piped_options to = {sizeof(to), o->path, "piped-link", CONNECT_MS};
    struct piped_stream_options of = {.size = sizeof(of), .model = o->model, .pixfmt = o->pixfmt};
    const struct piped_stream_info *info;
    int rc = piped_connect(&to, &r->piped);
    uint64_t slots;

    r->reached = rc == 0;
    rc = rc < 0 ? rc : piped_stream_open(r->piped, &of, &r->stream);
    if (rc < 0) {
        return rc;
    }
    info = piped_stream_info(r->stream);
    slots = SLOTS_BYTES / base_max(info->input_bytes + info->output_bytes, 1ull);
    slots = base_min(slots, (uint64_t)SLOTS);
    if (slots > info->slots || o->pixfmt) {
        of.width = o->pixfmt ? BRD_PICTURE_WIDTH : 0;
        of.height = o->pixfmt ? brd_picture_room((enum pixfmt)o->pixfmt, info->input_bytes) : 0;
        of.slots = (uint32_t)slots;
        r->stream = piped_stream_close(r->stream);
        rc = piped_stream_open(r->piped, &of, &r->stream);
    }
    return rc;
}

static void *run(void *arg)
{
    struct segment_opening *o = arg;
    struct segment_opened *r = &o->result;

    r->rc = open_stream(o);
    if (r->rc < 0) {
        snprintf(r->why, sizeof(r->why), "%s", piped_last_error());
        r->piped = piped_close(r->piped);
    }
    atomic_store(&o->over, true);
    eventfd_write(o->fd, 1);
    if (atomic_flag_test_and_set(&o->first)) {
        free_opening(o);
    }
    return NULL;
}

static int start(struct segment_opening *o)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_t thread;
    int rc = pthread_attr_init(&attr);

    if (rc != 0) {
        return -rc;
    }
    sigfillset(&all);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, &attr, run, o);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -rc;
}

int segment_open(const char *path, const char *model, uint32_t pixfmt, struct segment_opening **ret)
{
    struct segment_opening *o = calloc(1, sizeof(*o));
    int rc;

    if (!o) {
        return -ENOMEM;
    }
    o->pixfmt = pixfmt;
    o->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = o->fd < 0 ? -errno : 0;
    if (strlen(path) >= sizeof(o->path) || strlen(model) >= sizeof(o->model)) {
        rc = -ENAMETOOLONG;
    }
    if (rc == 0) {
        strcpy(o->path, path);
        strcpy(o->model, model);
        atomic_flag_clear(&o->first);
        rc = start(o);
    }
    if (rc < 0) {
        free_opening(o);
        return rc;
    }
    *ret = o;
    return 0;
}

int segment_open_fd(const struct segment_opening *o)
{
    return o->fd;
}

bool segment_open_take(struct segment_lane *lane, struct segment_opened *ret)
{
    struct segment_opening *o = lane->opening;

    if (!o || !atomic_load(&o->over)) {
        return false;
    }
    *ret = o->result;
    lane->piped = base_take(o->result.piped);
    lane->stream = ret->stream;
    lane->opening = segment_open_leave(o);
    return true;
}

struct segment_opening *segment_open_leave(struct segment_opening *o)
{
    if (o && atomic_flag_test_and_set(&o->first)) {
        free_opening(o);
    }
    return NULL;
}
