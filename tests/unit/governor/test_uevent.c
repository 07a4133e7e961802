/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams as the kernel sends them, as it never would, and from somebody else. */
#include <poll.h>
#include <unistd.h>

#include "base.h"
#include "governor/uevent.h"
#include "tests/harness.h"

#define PARSE(text, event) gov_uevent_parse(text, sizeof(text), event)

TEST(cores_come_and_go)
{
    struct gov_uevent e;

    T_EQ(PARSE("offline@/devices/system/cpu/cpu3\0ACTION=offline\0"
               "DEVPATH=/devices/system/cpu/cpu3\0SUBSYSTEM=cpu\0SEQNUM=1",
               &e),
         0);
    T_EQ(e.kind, GOV_UEVENT_CPU_OFFLINE);
    T_EQ(e.cpu, 3);
    T_STR(e.action, "offline");
    T_EQ(PARSE("online@/devices/system/cpu/cpu127\0SUBSYSTEM=cpu", &e), 0);
    T_EQ(e.kind, GOV_UEVENT_CPU_ONLINE);
    T_EQ(e.cpu, 127);
    T_EQ(PARSE("add@/devices/system/cpu/cpu0\0SUBSYSTEM=cpu", &e), 0);
    T_EQ(e.kind, GOV_UEVENT_CPU_ONLINE);
    T_EQ(PARSE("change@/devices/system/cpu/cpu0\0SUBSYSTEM=cpu", &e), 0);
    T_EQ(e.kind, GOV_UEVENT_OTHER);
}

TEST(other_subsystems)
{
    struct gov_uevent e;

    T_EQ(PARSE("change@/devices/virtual/thermal/thermal_zone0\0SUBSYSTEM=thermal", &e), 0);
    T_EQ(e.kind, GOV_UEVENT_THERMAL);
    T_EQ(e.cpu, -1);
    T_EQ(PARSE("remove@/devices/platform/x/gpiochip1\0SUBSYSTEM=gpio", &e), 0);
    T_EQ(e.kind, GOV_UEVENT_GPIO);
    T_EQ(PARSE("change@/devices/x\0SUBSYSTEM=power_supply", &e), 0);
    T_EQ(e.kind, GOV_UEVENT_POWER);
    T_EQ(PARSE("offline@/devices/system/cpu/cpu3\0SUBSYSTEM=machinecheck", &e), 0);
    T_EQ(e.kind, GOV_UEVENT_OTHER);
    T_EQ(e.cpu, -1);
    T_EQ(PARSE("offline@/devices/system/cpu/cpu3", &e), 0); /* no subsystem */
    T_EQ(e.kind, GOV_UEVENT_OTHER);
}

TEST(numbers_of_no_core)
{
    static const char *const paths[] = {"cpu",      "cpu-1",     "cpu3/x",  "cpu8192",
                                        "cpu99999", "cpu123456", "cpufreq", "cpu4294967299"};

    for (size_t i = 0; i < base_array_count(paths); i++) {
        char text[256];
        struct gov_uevent e;
        int n = snprintf(text, sizeof(text), "offline@/devices/system/cpu/%s%cSUBSYSTEM=cpu",
                         paths[i], 0);

        T_EQ(gov_uevent_parse(text, (size_t)n + 1, &e), 0);
        T_EQ(e.cpu, -1);
        T_EQ(e.kind, GOV_UEVENT_OTHER);
    }
}

TEST(malformed_datagrams_are_refused)
{
    struct gov_uevent e;
    char *big = calloc(1, 2 * GOV_UEVENT_BYTES_MAX);

    T_TRUE(big);
    T_EQ(gov_uevent_parse(NULL, 0, &e), GOV_UEVENT_E_BAD);
    T_EQ(PARSE("", &e), GOV_UEVENT_E_BAD);
    T_EQ(PARSE("libudev\0\xfe\xed\xca\xfe@/x", &e), GOV_UEVENT_E_BAD); /* udevd's own */
    T_EQ(PARSE("@/devices/x", &e), GOV_UEVENT_E_BAD);
    T_EQ(PARSE("add@", &e), GOV_UEVENT_E_BAD);
    T_EQ(PARSE("add@relative", &e), GOV_UEVENT_E_BAD);
    T_EQ(PARSE("add@/x\0NOVALUE", &e), GOV_UEVENT_E_BAD);
    T_EQ(PARSE("add@/x\0=VALUE", &e), GOV_UEVENT_E_BAD);
    T_EQ(gov_uevent_parse("add@/x", 6, &e), GOV_UEVENT_E_BAD); /* not terminated */
    memcpy(big, "add@/x", 7);
    T_EQ(gov_uevent_parse(big, 2 * GOV_UEVENT_BYTES_MAX, &e), GOV_UEVENT_E_BAD);
    free(big);
}

TEST(long_actions_are_cut)
{
    struct gov_uevent e;
    char text[256];
    int n = snprintf(text, sizeof(text), "%0100d@/x", 0);

    T_EQ(gov_uevent_parse(text, (size_t)n + 1, &e), 0);
    T_EQ(strlen(e.action), GOV_UEVENT_TEXT_MAX - 1);
}

/* Mutations of a good one, in memory of exactly their size: a sanitizer sees a read beyond. */
TEST(hostile_bytes)
{
    static const char good[] = "offline@/devices/system/cpu/cpu3\0ACTION=offline\0SUBSYSTEM=cpu";

    for (int round = 0; round < 20000; round++) {
        size_t size = (size_t)t_range(1, sizeof(good));
        char *bytes = malloc(size);
        struct gov_uevent e;
        int outcome;

        T_TRUE(bytes);
        memcpy(bytes, good, size);
        for (int64_t i = t_range(0, 6); i > 0; i--) {
            bytes[t_range(0, (int64_t)size - 1)] = (char)t_range(0, 255);
        }
        outcome = gov_uevent_parse(bytes, size, &e);
        free(bytes);
        T_TRUE(outcome == 0 || outcome == GOV_UEVENT_E_BAD);
        if (outcome == 0) {
            T_TRUE(e.cpu >= -1 && e.cpu < 8192);
            T_TRUE(strlen(e.action) < sizeof(e.action));
        }
    }
}

TEST(only_the_kernel_is_believed)
{
    static const char lie[] = "offline@/devices/system/cpu/cpu0\0SUBSYSTEM=cpu";
    struct sockaddr_nl to = {.nl_family = AF_NETLINK};
    socklen_t bytes = sizeof(to);
    struct gov_uevent e;
    int fd, liar, outcome = gov_uevent_open(&fd);

    if (outcome == GOV_UEVENT_E_DENIED) {
        T_SKIP("netlink sockets are not allowed here");
    }
    T_EQ(outcome, 0);
    while (gov_uevent_read(fd, &e) != GOV_UEVENT_E_NONE) {
    }
    T_EQ(getsockname(fd, (struct sockaddr *)&to, &bytes), 0);
    to.nl_groups = 0;
    liar = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
    if (sendto(liar, lie, sizeof(lie), 0, (struct sockaddr *)&to, sizeof(to)) < 0) {
        close(liar);
        close(fd);
        T_SKIP("nobody but root can send such a datagram");
    }
    do { /* the kernel's own may come in between */
        struct pollfd p = {.fd = fd, .events = POLLIN};

        T_EQ(poll(&p, 1, 5000), 1);
        outcome = gov_uevent_read(fd, &e);
        T_NE(outcome, GOV_UEVENT_E_NONE);
        T_TRUE(outcome != 0 || e.kind != GOV_UEVENT_CPU_OFFLINE);
    } while (outcome != GOV_UEVENT_E_BAD);
    close(liar);
    close(fd);
}

TEST_MAIN()
