/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front of piped-link with a listener that negates, and a client of it with libpiped.
 *
 *     front_node serve SOCKET
 *
 * obeys lines on stdin and says "ready" after each:
 *
 *     models NAME|NAME:big ...   which may be opened: f32[3][5] and u8[100], or f32[262144]
 *     order now|hold|random      answers at once, never, or one at random when nothing else comes
 *     refuse STATUS              refuses frames; 0: no longer
 *     share COUNT                of a user's frames it takes so many at a time; 0: all
 *     answer                     answers what it holds, at random
 *     drain                      from now on, a write waits until the client has read all of it
 *     stats                      "stats taken= answered= held= gone= told=": held frames whose
 *                                client left or cancelled; how often it was told so
 *     late SECONDS               the front's clock is so much further
 *     exit
 *
 *     front_node client SOCKET MODEL FRAMES inline|shared
 *
 * sends that many frames and checks every answer. It says "progress N" after each twentieth of
 * them, and "done answered=N resent=N reconnects=N reordered=N duplicated=N".
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "apps/link/front/server.h"
#include "base/base.h"
#include "ipc/piped.h"
#include "ipc/server/mapped_memory.h"

#define HELD_MAX 4096

static const struct brd_tensor small[2] = {{PIPED_F32, 2, {3, 5}, 60}, {PIPED_U8, 1, {100}, 100}},
                               big[1] = {{PIPED_F32, 2, {1, 262144}, 1 << 20}};

static struct node {
    struct front *front;
    struct brd_routes routes;
    enum { NOW, HOLD, RANDOM } order;
    int refuse;
    uint32_t share;
    bool ended, drains;
    size_t held_count;
    struct front_frame *held[HELD_MAX];
    uint64_t random, taken, answered, gone, told, late_ns;
} n = {.random = 7};

ssize_t __real_send(int fd, const void *bytes, size_t count, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags);

/* With drain: as if the client were faster than the front, which leaves nothing unwritten. */
ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags)
{
    ssize_t done = __real_send(fd, bytes, count, flags);

    while (n.drains && done < 0 && errno == EAGAIN) {
        poll(&(struct pollfd){fd, POLLOUT, 0}, 1, -1);
        done = __real_send(fd, bytes, count, flags);
    }
    return done;
}

int __real_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    int rc = __real_clock_gettime(id, ret);

    ret->tv_sec += (time_t)(n.late_ns / BASE_NS_PER_S);
    return rc;
}

/* Negates floats and bytes. */
static void negate(const struct brd_tensor *t, size_t count, const uint8_t *in, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = front_offset(t, count, i);

        for (size_t b = 0; b < t[i].bytes; b++) {
            bool sign = t[i].dtype == PIPED_F32 && b % 4 == 3;

            out[at + b] = in[at + b] ^ (t[i].dtype == PIPED_F32 ? (sign ? 0x80 : 0) : 0xff);
        }
    }
}

static void answer(struct front_frame *fr)
{
    for (size_t i = 0; i < n.routes.count; i++) {
        const struct brd_route *r = &n.routes.route[i];

        if (strcmp(r->model, fr->model) == 0) {
            negate(r->input, r->input_count, fr->input, fr->output);
        }
    }
    n.gone += fr->gone;
    n.answered++;
    front_answer(n.front, fr, 0, NULL, 7, 1000, 2000);
}

static void answer_one_at_random(void)
{
    size_t i = base_splitmix64(&n.random) % n.held_count;
    struct front_frame *fr = n.held[i];

    n.held[i] = n.held[--n.held_count];
    answer(fr);
}

static int take(void *user, struct front_frame *fr)
{
    if (n.refuse || n.held_count == HELD_MAX) {
        return n.refuse ? n.refuse : PIPED_RESOURCE_EXHAUSTED;
    }
    n.taken++;
    if (n.order == NOW) {
        answer(fr);
    } else {
        n.held[n.held_count++] = fr;
    }
    return 0;
}

static uint32_t share(void *user, const char *model)
{
    (void)user;
    (void)model;
    return n.share ? n.share : UINT32_MAX;
}

static void forsaken(void *user, struct front_frame *fr)
{
    (void)user;
    n.told += fr->gone;
}

static void set_models(void)
{
    char *word;

    n.routes.count = 0;
    while ((word = strtok(NULL, " \n")) && n.routes.count < BRD_ROUTES_MAX) {
        struct brd_route *r = &n.routes.route[n.routes.count++];
        char *kind = strchr(word, ':');
        const struct brd_tensor *t = kind ? big : small;

        *r = (struct brd_route){.number = 1, .hop_count = 1};
        snprintf(r->model, sizeof(r->model), "%.*s", (int)strcspn(word, ":"), word);
        r->hop[0].board_count = 1;
        r->input_count = r->output_count = kind ? 1 : 2;
        memcpy(r->input, t, r->input_count * sizeof(*t));
        memcpy(r->output, t, r->output_count * sizeof(*t));
    }
    front_models(n.front, &n.routes);
}

static void obey(char *line)
{
    char *verb = strtok(line, " \n"), *word = NULL;

    if (verb && strcmp(verb, "models") == 0) {
        set_models();
    } else if (verb && strcmp(verb, "order") == 0) {
        word = strtok(NULL, " \n");
        n.order = strcmp(word, "hold") == 0 ? HOLD : strcmp(word, "random") == 0 ? RANDOM : NOW;
    } else if (verb && strcmp(verb, "refuse") == 0) {
        n.refuse = atoi(strtok(NULL, " \n"));
    } else if (verb && strcmp(verb, "share") == 0) {
        n.share = (uint32_t)atoi(strtok(NULL, " \n"));
    } else if (verb && strcmp(verb, "answer") == 0) {
        while (n.held_count > 0) {
            answer_one_at_random();
        }
    } else if (verb && strcmp(verb, "drain") == 0) {
        n.drains = true;
    } else if (verb && strcmp(verb, "stats") == 0) {
        printf("stats taken=%llu answered=%llu held=%zu gone=%llu told=%llu\n",
               (unsigned long long)n.taken, (unsigned long long)n.answered, n.held_count,
               (unsigned long long)n.gone, (unsigned long long)n.told);
    } else if (verb && strcmp(verb, "late") == 0) {
        n.late_ns += strtoull(strtok(NULL, " \n"), NULL, 10) * BASE_NS_PER_S;
        front_dispatch(n.front);
    } else {
        n.ended = true;
    }
    puts("ready");
}

static int serve(const char *path)
{
    struct front_listener listener = {.frame = take, .gone = forsaken, .share = share};
    int guarded = ipc_pool_guard_start();
    int error = front_open(path, &listener, &n.front);
    char line[512];

    if (error < 0) {
        printf("cannot open %s: %s\n", path, strerror(-error));
        return 1;
    }
    puts(guarded < 0 ? "pools are not guarded" : "pools are guarded");
    puts("ready");
    while (!n.ended) {
        struct pollfd fds[2] = {{front_fd(n.front), POLLIN, 0}, {0, POLLIN, 0}};
        bool waiting = n.order == RANDOM && n.held_count > 0;
        int some = poll(fds, 2, waiting ? 0 : -1);

        if (fds[1].revents && !fgets(line, sizeof(line), stdin)) {
            break;
        }
        if (fds[1].revents) {
            obey(line);
        }
        if (fds[0].revents) {
            front_dispatch(n.front);
        } else if (some == 0) {
            answer_one_at_random();
        }
    }
    n.front = front_close(n.front);
    return 0;
}

static void fill(struct piped_frame *f, uint64_t number)
{
    uint64_t state = number, *to = f->input;

    for (size_t i = 0; i < f->input_size / sizeof(*to); i++) {
        to[i] = base_splitmix64(&state);
    }
    f->time_ns = number;
}

/* Return: the answer is that of frame @number. */
static bool is_right(const struct piped_frame *f, uint64_t number, uint8_t *scratch)
{
    bool is_big = f->output_bytes == big[0].bytes;

    if (f->status != PIPED_OK || f->time_ns != number || f->epoch != 7 || f->service_ns != 2000) {
        printf("frame %llu came as %llu: status %d %s\n", (unsigned long long)number,
               (unsigned long long)f->time_ns, f->status, f->text);
        return false;
    }
    memcpy(scratch, f->output, f->output_bytes); /* gaps between tensors are nobody's */
    negate(is_big ? big : small, is_big ? 1 : 2, f->input, scratch);
    return memcmp(scratch, f->output, f->output_bytes) == 0;
}

static int frames(struct piped *p, struct piped_stream *s, uint64_t count, uint8_t *scratch)
{
    uint64_t sent = 0, answered = 0;
    struct piped_stream_stats stats;
    struct piped_frame *f;

    while (answered < count) {
        while (sent < count && piped_acquire(s, &f) == 0) {
            fill(f, ++sent);
            if (piped_submit(s, f) < 0) {
                printf("submit: %s\n", piped_last_error());
                return 1;
            }
        }
        if (piped_wait(s, -1, &f) < 0 || !is_right(f, ++answered, scratch)) {
            printf("wrong answer to frame %llu\n", (unsigned long long)answered);
            return 1;
        }
        piped_release(s, f);
        if (answered % base_max(count / 20, 1ull) == 0) {
            printf("progress %llu\n", (unsigned long long)answered);
        }
    }
    piped_stream_stats(s, &stats);
    printf("done answered=%llu resent=%llu reconnects=%llu reordered=%llu duplicated=%llu\n",
           (unsigned long long)answered, (unsigned long long)stats.resent,
           (unsigned long long)piped_reconnects(p), (unsigned long long)stats.reordered,
           (unsigned long long)stats.duplicated);
    return 0;
}

static int client(char **argv)
{
    struct piped_options o = {.size = sizeof(o), .path = argv[0], .client = "front_node"};
    struct piped_stream_options so = {.size = sizeof(so), .model = argv[1]};
    uint8_t *scratch = malloc(big[0].bytes);
    struct piped *p = NULL;
    struct piped_stream *s;
    int rc = 1;

    so.inline_frames = strcmp(argv[3], "inline") == 0;
    if (!scratch || piped_connect(&o, &p) < 0 || piped_stream_open(p, &so, &s) < 0) {
        printf("cannot connect: %s\n", piped_last_error());
    } else {
        rc = frames(p, s, strtoull(argv[2], NULL, 10), scratch);
    }
    piped_close(p);
    free(scratch);
    return rc;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* poll() must see every line */
    if (argc == 3 && strcmp(argv[1], "serve") == 0) {
        return serve(argv[2]);
    }
    if (argc == 6 && strcmp(argv[1], "client") == 0) {
        return client(argv + 2);
    }
    return 2;
}
