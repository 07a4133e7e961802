/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/slicer.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "pipeline/members.h"

/* A tenth of the weight of a thread of nice 0. It never starves: others wait for its slices. */
#define SLICER_NICE 10

static void work(struct dmn_slice *s)
{
    const struct krn_exec exec = {.width = 1, .scratch = s->scratch};
    uint64_t start = base_now_ns();

    krn_preprocess_slice(&s->image, &s->preproc, &s->shape, s->input, s->begin, s->end, &exec);
    s->took_ns = base_now_ns() - start;
}

static void *slicer_main(void *arg)
{
    struct dmn_slicer *s = arg;

    pthread_setname_np(pthread_self(), "piped:images");
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), SLICER_NICE);
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->state == DMN_SLICER_IDLE || s->state == DMN_SLICER_BACK) {
            pthread_cond_wait(&s->changed, &s->lock);
        }
        if (s->state == DMN_SLICER_END) {
            break;
        }
        pthread_mutex_unlock(&s->lock);
        work(&s->slice);
        pthread_mutex_lock(&s->lock);
        if (s->state == DMN_SLICER_BUSY) {
            s->state = DMN_SLICER_BACK;
            uv_async_send(&s->async);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int dmn_slicer_start(struct dmn_slicer *s, uv_loop_t *loop, uv_async_cb back, void *data)
{
    int error = uv_async_init(loop, &s->async, back);

    if (error < 0) {
        return error;
    }
    s->async.data = data;
    s->state = DMN_SLICER_IDLE;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    error = pl_thread_start(&s->thread, slicer_main, s);
    if (error < 0) {
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->lock);
        uv_close((uv_handle_t *)&s->async, NULL);
        return error;
    }
    s->running = true;
    return 0;
}

static void set_state(struct dmn_slicer *s, enum dmn_slicer_state state)
{
    pthread_mutex_lock(&s->lock);
    s->state = state;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void dmn_slicer_stop(struct dmn_slicer *s)
{
    if (!s->running) {
        return;
    }
    set_state(s, DMN_SLICER_END);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    uv_close((uv_handle_t *)&s->async, NULL);
    s->running = false;
}

void dmn_slicer_give(struct dmn_slicer *s, const struct dmn_slice *slice)
{
    s->slice = *slice; /* the thread is idle, and reads it only when it is told to */
    set_state(s, DMN_SLICER_BUSY);
}

bool dmn_slicer_take_back(struct dmn_slicer *s, uint64_t *ret_took_ns)
{
    bool back;

    pthread_mutex_lock(&s->lock);
    back = s->state == DMN_SLICER_BACK;
    if (back) {
        s->state = DMN_SLICER_IDLE;
        *ret_took_ns = s->slice.took_ns;
    }
    pthread_mutex_unlock(&s->lock);
    return back;
}
