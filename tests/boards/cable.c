/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cable - a cable between two network namespaces that is slow or loses packets, for kernels without
 * sch_netem
 *
 * usage: cable NAMESPACE DEVICE NAMESPACE DEVICE
 *
 * Makes a tap device in each namespace (paths such as /proc/PID/ns/net), prints "ready", and
 * carries packets from one to the other. Lines on stdin change it while it runs: "delay US" for
 * each direction, "loss PERCENT"; each is answered with itself. It ends, and the devices with it,
 * at the end of stdin.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull
#define PACKET_BYTES 2048u
#define PACKETS 4096u /* in flight in one direction; a full cable loses the next */

struct packet {
    uint64_t due_ns;
    size_t bytes;
    uint8_t data[PACKET_BYTES];
};
struct direction {
    int from, to;
    size_t first, count; /* of the ring */
    struct packet packet[PACKETS];
};

static uint64_t delay_ns;
static double loss; /* 0 to 1 */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static int fail(const char *what)
{
    fprintf(stderr, "cable: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int tap(const char *space, const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd = open(space, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0) {
        fail(space);
    }
    close(fd);
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0) {
        fail("/dev/net/tun");
    }
    return fd;
}

/* All packets that wait there. */
static void take(struct direction *d)
{
    for (;;) {
        struct packet *p = &d->packet[(d->first + d->count) % PACKETS];
        uint8_t spare[PACKET_BYTES];
        bool full = d->count == PACKETS;
        ssize_t n = read(d->from, full ? spare : p->data, PACKET_BYTES);

        if (n <= 0) {
            return;
        }
        if (full || drand48() < loss) {
            continue;
        }
        p->bytes = (size_t)n;
        p->due_ns = now_ns() + delay_ns;
        d->count++;
    }
}

/* Those that have been under way long enough. Return: when the next one has; 0: there is none. */
static uint64_t give(struct direction *d)
{
    uint64_t now = now_ns();

    while (d->count && d->packet[d->first].due_ns <= now) {
        struct packet *p = &d->packet[d->first];

        /* A device that is down, or whose queue is full, loses it, as a real one would. */
        if (write(d->to, p->data, p->bytes) < 0 && errno == EBADFD) {
            fail("a device is gone");
        }
        d->first = (d->first + 1) % PACKETS;
        d->count--;
    }
    return d->count ? d->packet[d->first].due_ns : 0;
}

/* Return: false at the end of the input. */
static bool command(void)
{
    char line[64];
    ssize_t n = read(0, line, sizeof(line) - 1);
    double value;

    if (n <= 0) {
        return false;
    }
    line[n] = 0;
    if (sscanf(line, "delay %lf", &value) == 1) {
        delay_ns = (uint64_t)(value * 1e3);
    } else if (sscanf(line, "loss %lf", &value) == 1) {
        loss = value / 100;
    }
    fputs(line, stdout);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv)
{
    static struct direction way[2];
    struct pollfd fds[3] = {{0, POLLIN, 0}};

    if (argc != 5) {
        fputs("usage: cable NAMESPACE DEVICE NAMESPACE DEVICE\n", stderr);
        return 2;
    }
    way[0].from = way[1].to = tap(argv[1], argv[2]);
    way[1].from = way[0].to = tap(argv[3], argv[4]);
    fds[1] = (struct pollfd){way[0].from, POLLIN, 0};
    fds[2] = (struct pollfd){way[1].from, POLLIN, 0};
    puts("ready");
    fflush(stdout);
    for (;;) {
        uint64_t a = give(&way[0]), b = give(&way[1]), now = now_ns();
        uint64_t next = a && (!b || a < b) ? a : b;
        uint64_t left = next > now ? next - now : 0;
        struct timespec wait = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};

        if (ppoll(fds, 3, next ? &wait : NULL, NULL) < 0 && errno != EINTR) {
            fail("poll");
        }
        if (fds[0].revents && !command()) {
            return 0;
        }
        take(&way[0]);
        take(&way[1]);
    }
}
