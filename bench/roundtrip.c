/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roundtrip [--model M] [--frames N] [--hold SECONDS] - what a frame costs beyond computing it
 *
 * Sends 224x224 RGB images one at a time through shared memory to the daemon at PIPED_RUNTIME_DIR
 * and prints one line of JSON: round trip (submitted to answered, on the client's clock) less the
 * service time that the daemon reports.
 * --hold: afterwards stays connected that long without sending, for whoever measures an idle
 * daemon.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc/piped.h"

#define SIDE 224

/* Where a frame's time went, in us. */
struct trip {
    double beyond;  /* all but computing: the three below */
    double there;   /* submitted by the client to read by the daemon */
    double queue;   /* read by the daemon to taken by the first stage */
    double back;    /* last stage done to answered at the client */
    double service; /* computing, hand-offs between stages included */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

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
    trips = calloc(frames, sizeof(*trips));
    sorted = calloc(frames, sizeof(*sorted));
    if (!trips || !sorted || measure(s, frames, trips) != 0) {
        return 1;
    }
    printf("{\"frames\": %zu", frames);
    print_spread("beyond_us", trips, frames, offsetof(struct trip, beyond), sorted);
    print_spread("there_us", trips, frames, offsetof(struct trip, there), sorted);
    print_spread("queue_us", trips, frames, offsetof(struct trip, queue), sorted);
    print_spread("back_us", trips, frames, offsetof(struct trip, back), sorted);
    print_spread("service_us", trips, frames, offsetof(struct trip, service), sorted);
    printf("}\n");
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
