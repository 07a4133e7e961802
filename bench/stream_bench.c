/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_bench - a client that streams for as long as it is told, and says when each frame went and
 * came
 *
 *     stream_bench [--model M] [--input FILE.f32] [--in-flight N]
 *
 * Connects to the daemon at PIPED_RUNTIME_DIR and prints "ready". Every line on stdin is a number
 * of seconds: so long it keeps N frames in flight (default: as many as keep the pipeline full now),
 * then takes the last answers and prints them all as JSON, {"frames": [[submitted_ns, answered_ns],
 * ...]} on CLOCK_MONOTONIC. So a script can run it in turns with other programs. Inputs go through
 * shared memory and are written once for each slot, as other programs reuse their input.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ipc/piped.h"

#define SLOTS_MAX 256

struct client {
    struct piped *p;
    struct piped_stream *s;
    void *input; /* owned; NULL: the slots stay as they are */
    size_t input_bytes, in_flight;
    const void *written[SLOTS_MAX]; /* slots that hold the input */
    size_t written_count;
    uint64_t *times; /* owned, [capacity][2]: submitted, answered */
    size_t count, capacity;
};

static int failed(const char *what)
{
    fprintf(stderr, "stream_bench: %s: %s\n", what, piped_last_error());
    return -1;
}

static void write_input(struct client *c, const struct piped_frame *f)
{
    for (size_t i = 0; i < c->written_count; i++) {
        if (c->written[i] == f->input) {
            return;
        }
    }
    if (c->input && f->input_size >= c->input_bytes) {
        memcpy(f->input, c->input, c->input_bytes);
    }
    if (c->written_count < SLOTS_MAX) {
        c->written[c->written_count++] = f->input;
    }
}

static int submit(struct client *c)
{
    struct piped_frame *f;

    if (piped_acquire(c->s, &f) != 0) {
        return failed("no slot");
    }
    write_input(c, f);
    return piped_submit(c->s, f) != 0 ? failed("submit") : 0;
}

static int take(struct client *c)
{
    struct piped_frame *f;

    if (piped_wait(c->s, -1, &f) != 0 || f->status != PIPED_OK) {
        return failed("a frame failed");
    }
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 4096;
        uint64_t *times = realloc(c->times, capacity * 2 * sizeof(*times));

        if (!times) {
            return failed("no memory");
        }
        c->times = times;
        c->capacity = capacity;
    }
    c->times[2 * c->count] = f->submitted_ns;
    c->times[2 * c->count + 1] = f->answered_ns;
    c->count++;
    piped_release(c->s, f);
    return 0;
}

/* Return: the frames to keep in flight: those asked for, or what the present plan needs. */
static size_t wanted(const struct client *c)
{
    const struct piped_stream_info *info = piped_stream_info(c->s);
    size_t count = c->in_flight ? c->in_flight : info->depth;

    return count > info->slots ? info->slots : count;
}

static int stream(struct client *c, double seconds)
{
    uint64_t end = base_now_ns() + (uint64_t)(seconds * 1e9);
    size_t waiting = 0;

    c->count = 0;
    while (base_now_ns() < end) {
        for (; waiting < wanted(c); waiting++) {
            if (submit(c) != 0) {
                return -1;
            }
        }
        if (take(c) != 0) {
            return -1;
        }
        waiting--;
    }
    for (; waiting > 0; waiting--) {
        if (take(c) != 0) {
            return -1;
        }
    }
    printf("{\"frames\": [");
    for (size_t i = 0; i < c->count; i++) {
        printf("%s[%llu, %llu]", i ? ", " : "", (unsigned long long)c->times[2 * i],
               (unsigned long long)c->times[2 * i + 1]);
    }
    puts("]}");
    fflush(stdout);
    return 0;
}

static int read_input(struct client *c, const char *path)
{
    FILE *f = fopen(path, "rb");
    bool ok;

    c->input_bytes = piped_stream_info(c->s)->input_bytes;
    c->input = malloc(c->input_bytes + 1);
    ok = f && c->input && fread(c->input, 1, c->input_bytes, f) == c->input_bytes;
    if (f) {
        fclose(f);
    }
    if (!ok) {
        fprintf(stderr, "stream_bench: %s does not hold %zu bytes\n", path, c->input_bytes);
        return -1;
    }
    return 0;
}

static int serve(struct client *c, const struct piped_stream_options *options, const char *input)
{
    char line[64];

    if (piped_connect(NULL, &c->p) != 0 || piped_stream_open(c->p, options, &c->s) != 0) {
        return failed("no stream");
    }
    if (input && read_input(c, input) != 0) {
        return -1;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (stream(c, strtod(line, NULL)) != 0) {
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct piped_stream_options options = {.size = sizeof(options)};
    struct client c = {0};
    const char *input = NULL;
    int error;

    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--model") == 0) {
            options.model = argv[i + 1];
        } else if (i + 1 < argc && strcmp(argv[i], "--input") == 0) {
            input = argv[i + 1];
        } else if (i + 1 < argc && strcmp(argv[i], "--in-flight") == 0) {
            c.in_flight = strtoul(argv[i + 1], NULL, 10);
        } else {
            fputs("usage: stream_bench [--model M] [--input FILE.f32] [--in-flight N]\n", stderr);
            return 2;
        }
    }
    error = serve(&c, &options, input);
    piped_stream_close(c.s);
    piped_close(c.p);
    free(c.input);
    free(c.times);
    return error ? 1 : 0;
}
