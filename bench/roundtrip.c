/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roundtrip [--model M] [--frames N] [--hold SECONDS] - what a frame costs beyond computing it
 *
 * Sends 224x224 RGB images one at a time through shared memory to the daemon at PIPED_RUNTIME_DIR
 * and prints one line of JSON: round trip (submitted to answered, on the client's clock) less the
 * service time that the daemon reports.
 *
 * In turns, BLOCK frames each, cores may sleep as usual, or are kept awake: a thread of class
 * SCHED_IDLE spins on every core, which gives way to whoever wakes. The figures of N frames of each
 * come out: those of cores that may sleep by their names, the others as "awake". The difference is
 * what it costs to wake cores, of which a virtual machine's take longest.
 * --hold: afterwards stays connected that long without sending, for whoever measures an idle
 * daemon.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/median.h"
#include "ipc/piped.h"

#define SIDE 224
#define BLOCK 25
#define CORES_MAX 64

/* Where a frame's time went, in us. */
struct trip {
    double beyond;  /* all but computing: the three below */
    double there;   /* submitted by the client to read by the daemon */
    double queue;   /* read by the daemon to taken by the first stage */
    double back;    /* last stage done to answered at the client */
    double service; /* computing, hand-offs between stages included */
};

/* A figure of all trips as a JSON object; @offset: of the figure in struct trip. */
static void print_spread(const char *name, const struct trip *trips, size_t count, size_t offset,
                         double *sorted)
{
    for (size_t i = 0; i < count; i++) {
        sorted[i] = *(const double *)((const char *)&trips[i] + offset);
    }
    qsort(sorted, count, sizeof(double), by_value);
    printf(", \"%s\": {\"p50\": %.1f, \"p95\": %.1f, \"p99\": %.1f, \"min\": %.1f, \"max\": %.1f}",
           name, sorted[count / 2], sorted[count * 95 / 100], sorted[count * 99 / 100], sorted[0],
           sorted[count - 1]);
}

/* Threads that keep cores awake. */
struct spinners {
    pthread_t threads[CORES_MAX];
    size_t count;
    _Atomic bool over;
};

static void *spin(void *arg)
{
    struct spinners *s = arg;

    while (!atomic_load_explicit(&s->over, memory_order_relaxed)) {
    }
    return NULL;
}

static void stay_awake(struct spinners *s)
{
    const struct sched_param none = {0};
    cpu_set_t allowed, one;

    s->count = 0;
    atomic_store(&s->over, false);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE && s->count < CORES_MAX; cpu++) {
        pthread_attr_t a;

        if (!CPU_ISSET(cpu, &allowed)) {
            continue;
        }
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_attr_init(&a);
        pthread_attr_setaffinity_np(&a, sizeof(one), &one);
        pthread_attr_setinheritsched(&a, PTHREAD_INHERIT_SCHED);
        if (pthread_create(&s->threads[s->count], &a, spin, s) == 0) {
            pthread_setschedparam(s->threads[s->count++], SCHED_IDLE, &none);
        }
        pthread_attr_destroy(&a);
    }
}

static void may_sleep(struct spinners *s)
{
    atomic_store(&s->over, true);
    for (size_t i = 0; i < s->count; i++) {
        pthread_join(s->threads[i], NULL);
    }
}

static int measure(struct piped_stream *s, size_t frames, struct trip *trips)
{
    for (size_t i = 0; i < frames; i++) {
        struct piped_frame *f;

        if (piped_acquire(s, &f) != 0) {
            return -1;
        }
        memset(f->input, (int)(i & 0xff), (size_t)SIDE * SIDE * 3);
        if (piped_infer(s, f, 10000) != 0 || f->status != PIPED_OK) {
            fprintf(stderr, "roundtrip: frame %zu: %s\n", i, piped_last_error());
            return -1;
        }
        trips[i].service = (double)f->service_ns / 1e3;
        trips[i].beyond = (double)(f->answered_ns - f->submitted_ns) / 1e3 - trips[i].service;
        trips[i].queue = (double)f->queue_ns / 1e3;
        trips[i].back = (double)(f->answered_ns - f->done_ns) / 1e3;
        trips[i].there = trips[i].beyond - trips[i].queue - trips[i].back;
        piped_release(s, f);
    }
    return 0;
}

/* Blocks of both kinds in turns. Return: 0 or -1. */
static int measure_both(struct piped_stream *s, size_t frames, struct trip *asleep,
                        struct trip *awake)
{
    struct spinners spinners;
    int failed = 0;

    for (size_t i = 0; i < frames && !failed; i += BLOCK) {
        size_t count = frames - i < BLOCK ? frames - i : BLOCK;

        failed = measure(s, count, asleep + i);
        stay_awake(&spinners);
        failed = failed ? failed : measure(s, count, awake + i);
        may_sleep(&spinners);
    }
    return failed;
}

static void print_trips(const struct trip *trips, size_t frames, double *sorted)
{
    printf("\"frames\": %zu", frames);
    print_spread("beyond_us", trips, frames, offsetof(struct trip, beyond), sorted);
    print_spread("there_us", trips, frames, offsetof(struct trip, there), sorted);
    print_spread("queue_us", trips, frames, offsetof(struct trip, queue), sorted);
    print_spread("back_us", trips, frames, offsetof(struct trip, back), sorted);
    print_spread("service_us", trips, frames, offsetof(struct trip, service), sorted);
}

int main(int argc, char **argv)
{
    struct piped_stream_options options = {
        .size = sizeof(options), .pixfmt = PIPED_RGB24, .width = SIDE, .height = SIDE};
    struct piped *p = NULL;
    struct piped_stream *s = NULL;
    size_t frames = 2000;
    unsigned hold = 0;
    struct trip *trips;
    double *sorted;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--model") == 0) {
            options.model = argv[i + 1];
        } else if (strcmp(argv[i], "--frames") == 0) {
            frames = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--hold") == 0) {
            hold = (unsigned)strtoul(argv[i + 1], NULL, 10);
        }
    }
    if (frames == 0 || piped_connect(NULL, &p) != 0 || piped_stream_open(p, &options, &s) != 0) {
        fprintf(stderr, "roundtrip: %s\n", piped_last_error());
        return 1;
    }
    trips = calloc(2 * frames, sizeof(*trips)); /* asleep, awake */
    sorted = calloc(frames, sizeof(*sorted));
    if (!trips || !sorted || measure_both(s, frames, trips, trips + frames) != 0) {
        return 1;
    }
    printf("{");
    print_trips(trips, frames, sorted);
    printf(", \"awake\": {");
    print_trips(trips + frames, frames, sorted);
    printf("}}\n");
    fflush(stdout);
    if (hold) {
        piped_dispatch(p, (int)hold * 1000);
    }
    piped_stream_close(s);
    piped_close(p);
    free(trips);
    free(sorted);
    return 0;
}
