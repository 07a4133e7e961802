/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autodice - a model over several boards run as AutoDiCE runs it, for comparison
 *
 * usage: mpirun ... autodice MODEL FIRST-LAST,FIRST-LAST,... FRAMES [--lockstep] [--polite]
 *
 * Each rank computes one segment by the daemon of its board (PIPED_RUNTIME_DIR), which has loaded
 * MODEL#FIRST-LAST: it receives an image's border from the rank before, blocking, computes, and
 * sends to the rank behind, blocking. So a rank's time for an image is computing plus
 * communication. Ranks work on different images at a time.
 *
 * --lockstep: one image at a time through all ranks, as AutoDiCE's own measurements
 * --polite: sleep while waiting, instead of Open MPI's spinning
 *
 * Rank 0 prints JSON: frames a second from the first answer to the last, and for each rank the
 * milliseconds a frame that it computed and that it communicated.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "ipc/piped.h"

#define POLITE_NS 50000
#define NAME_BYTES 64u

enum tag { BORDER, ANSWERED };

struct run {
    int rank, count; /* of ranks */
    long frames;
    bool lockstep, polite;
    struct piped *p;
    struct piped_stream *s;
    uint64_t computed_ns, first_ns, last_ns; /* answers of this rank */
};

static void fail(const struct run *r, const char *what)
{
    fprintf(stderr, "autodice: rank %d: %s: %s\n", r->rank, what, piped_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void rest(void)
{
    nanosleep(&(struct timespec){0, POLITE_NS}, NULL);
}

static void receive(const struct run *r, void *data, size_t bytes, int from, enum tag tag)
{
    int there = !r->polite;

    while (!there) {
        MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        if (!there) {
            rest();
        }
    }
    MPI_Recv(data, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send(const struct run *r, const void *data, size_t bytes, int to, enum tag tag)
{
    MPI_Request request;
    int done = 0;

    if (!r->polite) {
        MPI_Send(data, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
        return;
    }
    MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) {
        rest();
    }
}

/* The segment of this rank. */
static void open_segment(struct run *r, const char *model, const char *ranges)
{
    struct piped_stream_options options = {.size = sizeof(options)};
    char name[NAME_BYTES];
    const char *at = ranges;
    int count = 1, n;

    for (const char *c = ranges; *c; c++) {
        count += *c == ',';
    }
    if (count != r->count) {
        fprintf(stderr, "autodice: %d segments for %d ranks\n", count, r->count);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < r->rank; i++) {
        at = strchr(at, ',') + 1;
    }
    n = snprintf(name, sizeof(name), "%s#%.*s", model, (int)strcspn(at, ","), at);
    options.model = count == 1 ? model : name;
    if (n < 0 || (size_t)n >= sizeof(name) || piped_connect(NULL, &r->p) != 0 ||
        piped_stream_open(r->p, &options, &r->s) != 0) {
        fail(r, "no stream");
    }
}

/* One image. */
static void turn(struct run *r, long number)
{
    const int next = r->rank + 1;
    struct piped_frame *f;
    uint64_t began;

    if (piped_acquire(r->s, &f) != 0) {
        fail(r, "no slot");
    }
    if (r->rank == 0) {
        memset(f->input, (int)(number % 3), f->input_size);
    } else {
        receive(r, f->input, f->input_size, r->rank - 1, BORDER);
    }
    began = base_now_ns();
    if (piped_infer(r->s, f, -1) != 0 || f->status != PIPED_OK) {
        fail(r, "a frame failed");
    }
    r->last_ns = base_now_ns();
    r->computed_ns += r->last_ns - began;
    r->first_ns = r->first_ns ? r->first_ns : r->last_ns;
    if (next < r->count) {
        send(r, f->output, f->output_bytes, next, BORDER);
    }
    piped_release(r->s, f);
    if (r->lockstep && r->count > 1) {
        char token = 0;

        if (next == r->count) {
            send(r, &token, 1, 0, ANSWERED);
        } else if (r->rank == 0) {
            receive(r, &token, 1, r->count - 1, ANSWERED);
        }
    }
}

static void report(const struct run *r, uint64_t began_ns)
{
    double mine[4] = {(double)r->computed_ns / 1e6 / (double)r->frames,
                      (double)(base_now_ns() - began_ns) / 1e6 / (double)r->frames,
                      (double)(r->last_ns - r->first_ns) / 1e9, 0};
    double *all = r->rank == 0 ? calloc((size_t)r->count, sizeof(mine)) : NULL;

    MPI_Gather(mine, 4, MPI_DOUBLE, all, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (!all) {
        return;
    }
    printf("{\"fps\": %.3f, \"frames\": %ld, \"compute_ms\": [",
           (double)(r->frames - 1) / all[4 * (r->count - 1) + 2], r->frames);
    for (int i = 0; i < r->count; i++) {
        printf("%s%.2f", i ? ", " : "", all[4 * i]);
    }
    printf("], \"other_ms\": [");
    for (int i = 0; i < r->count; i++) {
        printf("%s%.2f", i ? ", " : "", all[4 * i + 1] - all[4 * i]);
    }
    puts("]}");
    free(all);
}

int main(int argc, char **argv)
{
    struct run r = {0};
    uint64_t began;

    if (argc < 4 || (r.frames = atol(argv[3])) < 2) {
        fputs("usage: mpirun ... autodice MODEL FIRST-LAST,... FRAMES [--lockstep] [--polite]\n",
              stderr);
        return 2;
    }
    for (int i = 4; i < argc; i++) {
        r.lockstep |= strcmp(argv[i], "--lockstep") == 0;
        r.polite |= strcmp(argv[i], "--polite") == 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.count);
    open_segment(&r, argv[1], argv[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    began = base_now_ns();
    for (long i = 0; i < r.frames; i++) {
        turn(&r, i);
    }
    report(&r, began);
    piped_close(r.p);
    MPI_Finalize();
    return 0;
}
