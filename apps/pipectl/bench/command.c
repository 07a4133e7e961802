/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl bench: streams frames and measures. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "apps/pipectl/bench/bench.h"
#include "base/pixfmt.h"

#define CLIENTS_MAX 256
#define HOPELESS 64u
#define DRAIN_STALL_MS 60000 /* no answer for this long: the rest is lost */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* The first Ctrl-C ends the run with a summary, the second at once. */
static void catch_interrupt(void)
{
    struct sigaction a = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int number_option(const char *name, const char *text, double least, double most, double *ret)
{
    return ctl_number(text, least, most, ret)
               ? CTL_DONE
               : ctl_usage("bench", "--%s needs a number from %.15g to %.15g, not '%s'", name,
                           least, most, text);
}

static int size_option(const char *text, struct bench_options *o)
{
    char end;

    if (text[strspn(text, "0123456789x")] ||
        sscanf(text, "%5ux%5u%c", &o->width, &o->height, &end) != 2 || o->width == 0 ||
        o->height == 0) {
        return ctl_usage("bench", "--size needs WIDTHxHEIGHT, not '%s'", text);
    }
    return CTL_DONE;
}

static int policy_option(const char *text, struct bench_options *o)
{
    static const char *const names[] = {"block", "latest", "reject"};

    for (uint32_t i = 0; i < base_array_count(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            o->policy = i;
            return CTL_DONE;
        }
    }
    return ctl_usage("bench", "--policy needs block, latest or reject, not '%s'", text);
}

static int take_option(int c, const char *name, struct bench_options *o)
{
    double n;
    int rc = CTL_DONE;

    switch (c) {
    case 'm':
        o->model = optarg;
        break;
    case 'f':
        rc = number_option(name, optarg, 1, 1e12, &n);
        o->frames = rc ? 0 : (uint64_t)n;
        break;
    case 's':
        rc = number_option(name, optarg, 0.001, 1e9, &o->seconds);
        break;
    case 'c':
        rc = number_option(name, optarg, 1, CLIENTS_MAX, &n);
        o->clients = rc ? 0 : (uint32_t)n;
        break;
    case 'n':
        rc = number_option(name, optarg, 1, 256, &n);
        o->in_flight = rc ? 0 : (uint32_t)n;
        break;
    case 'r':
        rc = number_option(name, optarg, 0.001, 1e7, &o->rate);
        break;
    case 'd':
        rc = number_option(name, optarg, 0.001, 1e9, &n);
        o->deadline_ns = rc ? 0 : (uint64_t)(n * 1e6);
        break;
    case 'R':
        rc = number_option(name, optarg, 0.001, 1e6, &n);
        o->reconnect_ms = rc ? 0 : (uint32_t)(n * 1e3);
        break;
    case 'S':
        rc = number_option(name, optarg, 0, 1e15, &n);
        o->seed = rc ? 0 : (uint64_t)n;
        break;
    case 'i':
        o->inline_frames = true;
        break;
    case 'v':
        o->verify = true;
        break;
    case 'A':
        bench_autodice_options(o);
        break;
    case 'z':
        rc = size_option(optarg, o);
        break;
    case 'P':
        rc = policy_option(optarg, o);
        break;
    case 'p':
        if (!ctl_pixfmt(optarg, &o->pixfmt)) {
            rc = ctl_usage("bench", "no pixel format '%s'; formats: " PIXFMT_NAMES, optarg);
        }
        break;
    default:
        break;
    }
    return rc;
}

static int take_args(int argc, char **argv, struct bench_options *o)
{
    const struct cli_option *row;
    int c, rc = CTL_DONE;

    while ((c = ctl_option(argc, argv, &rc, &row)) != -1) {
        rc = take_option(c, row->name, o);
    }
    rc = rc ? rc : ctl_no_more(argc, argv);
    if (rc) {
        return rc;
    }
    if (o->frames == 0 && o->seconds == 0) {
        o->seconds = 5;
    }
    return CTL_DONE;
}

/* When the run began and ends. */
struct pace {
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end 0: none */
};

static uint64_t unexpected(const struct bench *b)
{
    uint64_t count = 0;

    for (int s = 0; s < BENCH_STATUS_COUNT; s++) {
        count += bench_is_asked_for(&b->o, s) ? 0 : b->errors[s];
    }
    return count;
}

/* Nothing but refusals: more of them tell nothing new. */
static bool is_hopeless(const struct bench *b)
{
    return b->ok == 0 && unexpected(b) >= HOPELESS;
}

/* @ret_time_ns: when the frame was due. Return: true if a frame may be sent now. */
static bool may_send(const struct bench *b, struct pace *p, uint64_t now, uint64_t *ret_time_ns)
{
    if (interrupted || is_hopeless(b) || (p->end_ns && now >= p->end_ns) ||
        (b->o.frames && b->sent >= b->o.frames)) {
        return false;
    }
    *ret_time_ns = now;
    if (b->o.rate > 0) {
        *ret_time_ns = p->start_ns + (uint64_t)((double)b->sent * 1e9 / b->o.rate);
        return *ret_time_ns <= now;
    }
    return true;
}

/* Sends what may be sent now, by one client after the other. @turn: the next client. Return: frames
 * are due, but no client can send one before an answer comes. */
static bool send_frames(struct bench *b, struct pace *p, size_t *turn)
{
    size_t full = 0;
    uint64_t time_ns;

    while (full < b->o.clients && may_send(b, p, base_now_ns(), &time_ns)) {
        full = bench_client_send(b, &b->clients[*turn], time_ns) ? 0 : full + 1;
        *turn = (*turn + 1) % b->o.clients;
    }
    return full == b->o.clients;
}

static bool failed(const struct bench *b)
{
    return b->lost || b->reordered || b->duplicated || b->wrong || unexpected(b);
}

static bool sending_is_over(const struct bench *b, const struct pace *p)
{
    bool all_gone = true;

    for (size_t i = 0; i < b->o.clients; i++) {
        all_gone &= b->clients[i].gone;
    }
    return all_gone || interrupted || is_hopeless(b) || (p->end_ns && base_now_ns() >= p->end_ns) ||
           (b->o.frames && b->sent >= b->o.frames);
}

/* Return: ms until the next frame is due, unless @full, or the run ends; when @over, until the rest
 * is lost. */
static int poll_timeout(const struct bench *b, const struct pace *p, bool full, bool over)
{
    uint64_t now = base_now_ns(), next = now + DRAIN_STALL_MS * BASE_NS_PER_MS;

    if (over) {
        return DRAIN_STALL_MS;
    }
    if (b->o.rate > 0 && !full) {
        next = base_min(next, p->start_ns + (uint64_t)((double)b->sent * 1e9 / b->o.rate));
    }
    if (p->end_ns) {
        next = base_min(next, p->end_ns);
    }
    return next <= now ? 0 : (int)((next - now + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS);
}

static void run(struct bench *b, struct pollfd *fds)
{
    struct pace pace = {.start_ns = base_now_ns()};
    size_t turn = 0;

    if (b->o.seconds > 0) {
        pace.end_ns = pace.start_ns + (uint64_t)(b->o.seconds * 1e9);
    }
    for (;;) {
        bool full = send_frames(b, &pace, &turn), over;
        int n;

        over = sending_is_over(b, &pace);
        if (over && b->answered == b->sent) {
            break;
        }
        n = poll(fds, b->o.clients, poll_timeout(b, &pace, full, over));
        if (n < 0 && errno != EINTR) {
            ctl_say("poll: %s", strerror(errno));
            break;
        }
        if (n == 0 && over) {
            break; /* the rest is lost */
        }
        for (size_t i = 0; n > 0 && i < b->o.clients; i++) {
            if (!fds[i].revents) {
                continue;
            }
            if (piped_dispatch(b->clients[i].client, 0) < 0) {
                b->clients[i].gone = true;
                fds[i].fd = -1;
            } else if (i == 0) {
                ctl_say_trouble(b->clients[i].client, &b->said_trouble);
            }
            bench_client_collect(b, &b->clients[i]);
        }
    }
    b->lost = b->sent - b->answered;
}

static int open_clients(const struct ctl *ctl, struct bench *b, struct pollfd *fds)
{
    for (size_t i = 0; i < b->o.clients; i++) {
        int rc = bench_client_open(ctl, b, &b->clients[i], b->o.seed * CLIENTS_MAX + i);

        if (rc) {
            return rc;
        }
        fds[i] = (struct pollfd){.fd = piped_fd(b->clients[i].client), .events = POLLIN};
    }
    return CTL_DONE;
}

int ctl_bench(const struct ctl *ctl, int argc, char **argv)
{
    struct bench b = {.o = {.clients = 1, .seed = 1}};
    base_autofree struct pollfd *fds = NULL;
    double cpu_before;
    int rc = take_args(argc, argv, &b.o);

    if (rc) {
        return rc;
    }
    fds = calloc(b.o.clients, sizeof(*fds));
    b.clients = calloc(b.o.clients, sizeof(*b.clients));
    rc = fds && b.clients ? open_clients(ctl, &b, fds) : CTL_FAILED;
    cpu_before = cpu_seconds();
    if (rc == CTL_DONE) {
        catch_interrupt();
        b.joules = b.o.autodice ? -bench_joules(ctl) : 0;
        run(&b, fds);
        b.joules += b.o.autodice ? bench_joules(ctl) : 0;
    }
    for (size_t i = 0; b.clients && i < b.o.clients; i++) {
        bench_client_close(&b, &b.clients[i]);
    }
    if (rc == CTL_DONE) {
        bench_report(ctl, &b, cpu_seconds() - cpu_before);
        rc = failed(&b) ? CTL_FAILED : CTL_DONE;
    }
    free(b.latency_ms);
    free(b.clients);
    return rc;
}
