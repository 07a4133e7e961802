/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady_client - a client that streams frames whose right answers it knows
 *
 * usage: steady_client SOCKET MODEL INPUTS ANSWERS [--in-flight N] [--rate FPS] [--frames N]
 *
 * INPUTS holds inputs back to back, ANSWERS the answer to each; they are sent in turns. Each answer
 * is compared bit for bit. Lines on stdout: "ready"; "at N": so many answers have come; "gap MS
 * after N": longer than GAP_MS without one; "epoch E after N"; "error FRAME STATUS TEXT"; "wrong
 * FRAME". To the line "count ID" on stdin it says "count ID N": so many answers had come by then.
 * With any other line, at the end of stdin, or after N frames it takes the last answers, prints
 * "done" with its counts, and ends.
 */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ipc/piped.h"

#define GAP_MS 400
#define SAY_NS (20 * BASE_NS_PER_MS)
#define TURN_MS 20
#define SHOWN 20u /* errors and wrong answers; the rest is counted */
#define LINE_MAX_BYTES 64u

struct file {
    uint8_t *data; /* owned */
    size_t bytes;
};
struct client {
    struct piped *p;
    struct piped_stream *s;
    struct file inputs, answers;
    size_t count; /* of patterns */
    uint64_t in_flight, frames_max, waiting;
    double rate; /* 0: as fast as answers come */
    uint64_t sent, answered, wrong, errors, out_of_order;
    uint64_t began_ns, last_ns, said_ns, longest_ns;
    uint32_t epoch;
};

static uint64_t ms(uint64_t ns)
{
    return ns / BASE_NS_PER_MS;
}

static int failed(const char *what)
{
    printf("failed %s: %s\n", what, piped_last_error());
    return 1;
}

static bool read_file(const char *path, struct file *ret)
{
    FILE *f = fopen(path, "rb");
    long bytes;
    bool good;

    if (!f || fseek(f, 0, SEEK_END) != 0 || (bytes = ftell(f)) <= 0) {
        return false;
    }
    rewind(f);
    ret->bytes = (size_t)bytes;
    ret->data = malloc(ret->bytes);
    good = ret->data && fread(ret->data, 1, ret->bytes, f) == ret->bytes;
    fclose(f);
    return good;
}

static bool due(const struct client *c, uint64_t now)
{
    return c->waiting < c->in_flight && (!c->frames_max || c->sent < c->frames_max) &&
           (c->rate <= 0 || (double)(now - c->began_ns) * c->rate >= (double)c->sent * 1e9);
}

static int submit(struct client *c)
{
    size_t bytes = c->inputs.bytes / c->count;
    struct piped_frame *f;

    if (piped_acquire(c->s, &f) != 0) {
        return failed("no slot");
    }
    memcpy(f->input, c->inputs.data + c->sent % c->count * bytes, bytes);
    if (piped_submit(c->s, f) != 0) {
        return failed("submit");
    }
    c->sent++;
    c->waiting++;
    return 0;
}

static void judge(struct client *c, const struct piped_frame *f)
{
    size_t bytes = c->answers.bytes / c->count;

    if (f->number != c->answered + 1) {
        c->out_of_order++;
    }
    if (f->status != PIPED_OK) {
        if (c->errors++ < SHOWN) {
            printf("error %" PRIu64 " %s %s\n", f->number, piped_status_name(f->status), f->text);
        }
    } else if (f->output_bytes != bytes ||
               memcmp(f->output, c->answers.data + c->answered % c->count * bytes, bytes) != 0) {
        if (c->wrong++ < SHOWN) {
            printf("wrong %" PRIu64 "\n", f->number);
        }
    }
    if (f->status == PIPED_OK && f->epoch != c->epoch) {
        printf("epoch %u after %" PRIu64 "\n", f->epoch, c->answered);
        c->epoch = f->epoch;
    }
}

static void take(struct client *c)
{
    struct piped_frame *f;

    while (piped_next(c->s, &f) == 0) {
        uint64_t now = base_now_ns(), gap = now - c->last_ns;

        if (c->answered && gap > c->longest_ns) {
            c->longest_ns = gap;
        }
        if (c->answered && ms(gap) > GAP_MS) {
            printf("gap %" PRIu64 " after %" PRIu64 "\n", ms(gap), c->answered);
        }
        c->last_ns = now;
        judge(c, f);
        c->answered++;
        c->waiting--;
        piped_release(c->s, f);
        if (now - c->said_ns > SAY_NS) {
            printf("at %" PRIu64 "\n", c->answered);
            c->said_ns = now;
        }
    }
    fflush(stdout);
}

/* Return: false if the client is to stop. Lines come one by one: who asks waits for the reply. */
static bool obey(const struct client *c)
{
    char line[LINE_MAX_BYTES + 1];
    ssize_t n = read(STDIN_FILENO, line, LINE_MAX_BYTES);
    unsigned id;

    line[n > 0 ? n : 0] = '\0';
    if (sscanf(line, "count %u", &id) != 1) {
        return false;
    }
    printf("count %u %" PRIu64 "\n", id, c->answered);
    fflush(stdout);
    return true;
}

static int stream(struct client *c)
{
    bool more = true;

    c->began_ns = base_now_ns();
    while (more || c->waiting) {
        struct pollfd fds[2] = {{piped_fd(c->p), POLLIN, 0}, {more ? 0 : -1, POLLIN, 0}};

        while (more && due(c, base_now_ns())) {
            if (submit(c) != 0) {
                return 1;
            }
        }
        poll(fds, 2, c->rate > 0 && more ? 1 : TURN_MS);
        more = more && !(c->frames_max && c->sent == c->frames_max);
        if (more && fds[1].revents) {
            more = obey(c);
        }
        if (piped_dispatch(c->p, 0) < 0 && c->waiting == 0) {
            return failed("the daemon is gone");
        }
        take(c);
    }
    return 0;
}

static int open_stream(struct client *c, const char *socket, const char *model)
{
    struct piped_options options = {.size = sizeof(options), .path = socket};
    struct piped_stream_options so = {.size = sizeof(so), .model = model};
    const struct piped_stream_info *info;

    so.credits = (uint32_t)c->in_flight;
    so.slots = (uint32_t)c->in_flight;
    if (piped_connect(&options, &c->p) != 0 || piped_stream_open(c->p, &so, &c->s) != 0) {
        return failed("open");
    }
    info = piped_stream_info(c->s);
    c->count = c->inputs.bytes / info->input_bytes;
    if (c->count == 0 || c->inputs.bytes != c->count * info->input_bytes ||
        c->answers.bytes % c->count != 0) {
        printf("failed: the files hold no inputs of %" PRIu64 " bytes\n", info->input_bytes);
        return 1;
    }
    c->in_flight = c->in_flight ? base_min(c->in_flight, info->slots) : info->slots;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"in-flight", 1, 0, 'n'}, {"rate", 1, 0, 'r'}, {"frames", 1, 0, 'f'}, {0}};
    static struct client c;
    struct piped_stream_stats stats;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'n') {
            c.in_flight = strtoull(optarg, NULL, 10);
        } else if (option == 'f') {
            c.frames_max = strtoull(optarg, NULL, 10);
        } else if (option == 'r') {
            c.rate = atof(optarg);
        } else {
            return 2;
        }
    }
    if (argc - optind != 4 || !read_file(argv[optind + 2], &c.inputs) ||
        !read_file(argv[optind + 3], &c.answers)) {
        puts("usage: steady_client SOCKET MODEL INPUTS ANSWERS [--in-flight N] [--rate FPS] "
             "[--frames N]");
        return 2;
    }
    if (open_stream(&c, argv[optind], argv[optind + 1]) != 0) {
        return 1;
    }
    puts("ready");
    fflush(stdout);
    if (stream(&c) != 0) {
        return 1;
    }
    piped_stream_stats(c.s, &stats);
    printf("done sent=%" PRIu64 " answered=%" PRIu64 " wrong=%" PRIu64 " errors=%" PRIu64
           " out_of_order=%" PRIu64 " reordered=%" PRIu64 " duplicated=%" PRIu64 " resent=%" PRIu64
           " reconnects=%" PRIu64 " longest_ms=%" PRIu64 " ms=%" PRIu64 "\n",
           c.sent, c.answered, c.wrong, c.errors, c.out_of_order, stats.reordered, stats.duplicated,
           stats.resent, piped_reconnects(c.p), ms(c.longest_ns), ms(c.last_ns - c.began_ns));
    fflush(stdout);
    piped_close(c.p);
    free(c.inputs.data);
    free(c.answers.data);
    return 0;
}
