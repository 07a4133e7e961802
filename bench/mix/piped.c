/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of piped: a connection and a stream for each model, and one thread. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "bench/mix/client.h"
#include "ipc/piped.h"

#define WARM_FRAMES 3
#define SLOTS_MAX 256

struct client {
    struct mix_model *model;
    struct piped *p;
    struct piped_stream *s;
    const void *written[SLOTS_MAX]; /* slots that hold the input */
    size_t written_count;
};

static struct client clients[MIX_MODELS_MAX];

static int failed(const struct client *c, const char *what)
{
    fprintf(stderr, "mix_piped: %s: %s: %s\n", c->model->name, what, piped_last_error());
    return -1;
}

static void write_input(struct client *c, const struct piped_frame *f)
{
    for (size_t i = 0; i < c->written_count; i++) {
        if (c->written[i] == f->input) {
            return;
        }
    }
    memcpy(f->input, c->model->input, base_min(c->model->input_bytes, f->input_size));
    if (c->written_count < SLOTS_MAX) {
        c->written[c->written_count++] = f->input;
    }
}

static int submit(struct client *c, size_t number)
{
    struct piped_frame *f;

    if (piped_acquire(c->s, &f) != 0) {
        return failed(c, "no slot");
    }
    write_input(c, f);
    f->time_ns = number;
    return piped_submit(c->s, f) != 0 ? failed(c, "submit") : 0;
}

static int warm_up(struct client *c)
{
    struct piped_frame *f;

    for (size_t i = 0; i < WARM_FRAMES; i++) {
        if (submit(c, 0) != 0) {
            return -1;
        }
        if (piped_wait(c->s, -1, &f) != 0 || f->status != PIPED_OK) {
            return failed(c, "a frame failed");
        }
        piped_release(c->s, f);
    }
    return 0;
}

int mix_open(struct mix *mix)
{
    for (size_t i = 0; i < mix->count; i++) {
        struct client *c = &clients[i];
        struct piped_stream_options options = {.size = sizeof(options),
                                               .model = mix->models[i].name,
                                               .credits = (uint32_t)mix->limit,
                                               .slots = (uint32_t)mix->limit + 1};

        c->model = &mix->models[i];
        if (piped_connect(NULL, &c->p) != 0 || piped_stream_open(c->p, &options, &c->s) != 0) {
            return failed(c, "no stream");
        }
        if (warm_up(c) != 0) {
            return -1;
        }
    }
    return 0;
}

static void take_answers(struct client *c)
{
    struct piped_frame *f;

    while (piped_next(c->s, &f) == 0) {
        mix_answer(c->model, f->time_ns, f->status == PIPED_OK ? f->answered_ns : MIX_REFUSED);
        piped_release(c->s, f);
    }
}

/* Until a frame is due or the daemon says something; due_ns: UINT64_MAX: never. */
static void sleep_until(const struct mix *mix, uint64_t due_ns)
{
    struct pollfd fds[MIX_MODELS_MAX];
    struct timespec left = {0};
    uint64_t now = base_now_ns();

    for (size_t i = 0; i < mix->count; i++) {
        fds[i] = (struct pollfd){.fd = piped_fd(clients[i].p), .events = POLLIN};
    }
    if (due_ns > now && due_ns != UINT64_MAX) {
        left.tv_sec = (time_t)((due_ns - now) / BASE_NS_PER_S);
        left.tv_nsec = (long)((due_ns - now) % BASE_NS_PER_S);
    }
    (void)ppoll(fds, mix->count, due_ns == UINT64_MAX ? NULL : &left, NULL);
}

static int take_all(const struct mix *mix)
{
    for (size_t i = 0; i < mix->count; i++) {
        if (piped_dispatch(clients[i].p, 0) < 0) {
            return failed(&clients[i], "the daemon is gone");
        }
        take_answers(&clients[i]);
    }
    return 0;
}

int mix_serve(struct mix *mix)
{
    for (;;) {
        size_t model, frame;
        uint64_t due = mix_next(mix, &model, &frame);

        if (due == 0) {
            if (submit(&clients[model], frame) != 0 || piped_dispatch(clients[model].p, 0) < 0) {
                return failed(&clients[model], "submit");
            }
            take_answers(&clients[model]); /* the descriptor does not tell of what was read now */
            continue;
        }
        if (due == UINT64_MAX && mix_in_flight(mix) == 0) {
            return 0;
        }
        sleep_until(mix, due);
        if (take_all(mix) != 0) {
            return -1;
        }
    }
}
