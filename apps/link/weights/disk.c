/* SPDX-License-Identifier: Apache-2.0 */
/* What fetches do on the thread. */
#include "apps/link/weights/fetch_private.h"

#define SLICE_LEAVES 8u /* read at a time, before others have their turn */

static void work_done(struct job *j)
{
    struct fetch_work *w = (struct fetch_work *)j;

    for (size_t i = 0; i < w->put_count; i++) {
        free((void *)(uintptr_t)w->put[i].data);
    }
    free(base_take(w->list));
    free(base_take(w->check));
    w->file->busy = false;
    if (!j->dropped) {
        w->then(w->file);
    }
    w->put_count = 0;
}

static void start(struct fetch_file *f, bool (*run)(struct job *j),
                  void (*then)(struct fetch_file *f))
{
    f->busy = true;
    f->work.job = (struct job){.run = run, .done = work_done};
    f->work.file = f;
    f->work.then = then;
    f->work.rc = 0;
    jobs_add(f->fetch->jobs, &f->work.job);
}

static bool run_open(struct job *j)
{
    struct fetch_work *w = (struct fetch_work *)j;
    struct fetch *fetch = w->file->fetch;

    if (!fetch->store) {
        w->rc = store_open(fetch->folder, fetch->bytes_max, &fetch->store, w->why);
    }
    if (w->rc == 0) {
        w->rc = store_file_open(fetch->store, w->file->identity, &w->file->is, w->why);
    }
    return false;
}

void fetch_disk_open(struct fetch_file *f, void (*then)(struct fetch_file *f))
{
    start(f, run_open, then);
}

static bool run_list(struct job *j)
{
    struct fetch_work *w = (struct fetch_work *)j;

    w->rc = store_file_list(w->file->is, w->list, w->list_bytes, w->why);
    return false;
}

void fetch_disk_list(struct fetch_file *f, void (*then)(struct fetch_file *f))
{
    f->work.list = base_take(f->list);
    f->work.list_bytes = f->list_bytes;
    start(f, run_list, then);
}

static bool run_put(struct job *j)
{
    struct fetch_work *w = (struct fetch_work *)j;

    w->rc = store_file_put(w->file->is, w->put, w->put_count, w->why);
    return false;
}

void fetch_disk_put(struct fetch_file *f, void (*then)(struct fetch_file *f))
{
    memcpy(f->work.put, f->arrived, f->arrived_count * sizeof(*f->arrived));
    f->work.put_count = f->arrived_count;
    f->arrived_count = 0;
    start(f, run_put, then);
}

static bool run_check(struct job *j)
{
    struct fetch_work *w = (struct fetch_work *)j;
    size_t count = store_file_leaves(w->file->is)->count;

    for (size_t n = 0; n < SLICE_LEAVES && w->check_at < count; w->check_at++) {
        if (w->check[w->check_at]) {
            int rc = store_file_check(w->file->is, w->check_at, w->why);

            n++;
            if (rc < 0 || rc == STORE_E_FULL) {
                w->rc = rc;
                return false;
            }
            /* A damaged one is fetched again. */
            w->room +=
                rc == STORE_E_BAD ? mdl_leaf_bytes(store_file_leaves(w->file->is), w->check_at) : 0;
        }
    }
    if (w->check_at < count) {
        return true;
    }
    w->rc = w->room ? store_room(w->file->fetch->store, w->room, w->why) : 0;
    return false;
}

void fetch_disk_check(struct fetch_file *f, bool *check, uint64_t room,
                      void (*then)(struct fetch_file *f))
{
    f->work.check = check;
    f->work.check_at = 0;
    f->work.room = room;
    start(f, run_check, then);
}

struct closing {
    struct job job; /* first */
    struct store_file *is;
};

static bool run_close(struct job *j)
{
    struct closing *c = (struct closing *)j;

    c->is = store_file_close(c->is);
    return false;
}

static void close_done(struct job *j)
{
    struct closing *c = (struct closing *)j;

    store_file_close(c->is); /* it was dropped, and the thread is gone */
    free(c);
}

void fetch_disk_free(struct fetch_file *f)
{
    struct closing *c = f->is && !f->fetch->closing ? calloc(1, sizeof(*c)) : NULL;

    if (c) {
        c->job = (struct job){.run = run_close, .done = close_done};
        c->is = f->is;
        jobs_add(f->fetch->jobs, &c->job);
    } else if (f->fetch->closing) {
        store_file_close(f->is);
    } /* else, without memory, it stays in use */
    for (size_t i = 0; i < f->arrived_count; i++) {
        free((void *)(uintptr_t)f->arrived[i].data);
    }
    free(f->have);
    free(f->checked);
    free(f->list);
    free(f);
}
