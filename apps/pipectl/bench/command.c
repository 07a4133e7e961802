/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl bench: streams frames and measures. */
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include "apps/pipectl/bench/bench.h"

#define HOPELESS 64u
#define DRAIN_STALL_MS 60000 /* no answer for this long: the rest is lost */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
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

static int take_size(struct bench *b)
{
    const char *text = b->o.size;
    char end;

    if (text && (text[strspn(text, "0123456789x")] ||
                 sscanf(text, "%5ux%5u%c", &b->width, &b->height, &end) != 2 || b->width == 0 ||
                 b->height == 0)) {
        return ctl_usage("bench", "--size needs WIDTHxHEIGHT, not '%s'", text);
    }
    return CTL_DONE;
}

static int take_args(int argc, char **argv, struct bench *b)
{
    struct ctl_options *o = &b->o;
    int rc = ctl_take_all(argc, argv, o, NULL);

    if (o->autodice) { /* one client, one frame after the other */
        o->frames = BENCH_AUTODICE_RUNS;
        o->clients = o->in_flight = 1;
        o->seconds = o->rate = 0;
    }
    if (o->frames == 0 && o->seconds == 0) {
        o->seconds = 5;
    }
    return rc ? rc : take_size(b);
}

/* Return: energy that this board has counted so far; NAN: unknown. */
static double joules_now(const struct ctl *ctl)
{
    json_auto_t *reply = NULL;

    ctl_call(ctl, "Status", json_object(), &reply);
    return ctl_value(reply, "status.sensors.energy.joules");
}

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

/* Return: no more frames are to be sent. */
static bool is_over(const struct bench *b, uint64_t now)
{
    return interrupted || is_hopeless(b) || (b->end_ns && now >= b->end_ns) ||
           (b->o.frames && b->sent >= b->o.frames);
}

/* Return: when the next frame is due, with a rate. */
static uint64_t due_ns(const struct bench *b)
{
    return b->start_ns + (uint64_t)((double)b->sent * 1e9 / b->o.rate);
}

/* Sends what may be sent now, by one client after the other. @turn: the next client. Return: frames
 * are due, but no client can send one before an answer comes. */
static bool send_frames(struct bench *b, size_t *turn)
{
    size_t full = 0;

    while (full < b->o.clients) {
        uint64_t now = base_now_ns(), time_ns = b->o.rate > 0 ? due_ns(b) : now;

        if (is_over(b, now) || time_ns > now) {
            return false;
        }
        full = bench_client_send(b, &b->clients[*turn], time_ns) ? 0 : full + 1;
        *turn = (*turn + 1) % b->o.clients;
    }
    return true;
}

static bool failed(const struct bench *b)
{
    return b->lost || b->reordered || b->duplicated || b->wrong || unexpected(b);
}

static bool are_gone(const struct bench *b)
{
    bool all_gone = true;

    for (size_t i = 0; i < b->o.clients; i++) {
        all_gone &= b->clients[i].gone;
    }
    return all_gone;
}

/* Return: ms until the next frame is due, unless @full, or the run ends; when @over, until the rest
 * is lost. */
static int poll_timeout(const struct bench *b, bool full, bool over)
{
    uint64_t now = base_now_ns(), next = now + DRAIN_STALL_MS * BASE_NS_PER_MS;

    if (over) {
        return DRAIN_STALL_MS;
    }
    if (b->o.rate > 0 && !full) {
        next = base_min(next, due_ns(b));
    }
    if (b->end_ns) {
        next = base_min(next, b->end_ns);
    }
    return next <= now ? 0 : (int)((next - now + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS);
}

static void run(struct bench *b, struct pollfd *fds)
{
    size_t turn = 0;

    b->start_ns = base_now_ns();
    if (b->o.seconds > 0) {
        b->end_ns = b->start_ns + (uint64_t)(b->o.seconds * 1e9);
    }
    for (;;) {
        bool full = send_frames(b, &turn), over = are_gone(b) || is_over(b, base_now_ns());
        int n;

        if (over && b->answered == b->sent) {
            break;
        }
        n = poll(fds, b->o.clients, poll_timeout(b, full, over));
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
        int rc = bench_client_open(ctl, b, &b->clients[i], b->o.seed * CTL_CLIENTS_MAX + i);

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
    int rc = take_args(argc, argv, &b);

    if (rc) {
        return rc;
    }
    fds = calloc(b.o.clients, sizeof(*fds));
    b.clients = calloc(b.o.clients, sizeof(*b.clients));
    rc = fds && b.clients ? open_clients(ctl, &b, fds) : CTL_FAILED;
    cpu_before = cpu_seconds();
    if (rc == CTL_DONE) {
        catch_interrupt();
        b.joules = b.o.autodice ? -joules_now(ctl) : 0;
        run(&b, fds);
        b.joules += b.o.autodice ? joules_now(ctl) : 0;
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
