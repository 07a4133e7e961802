/* SPDX-License-Identifier: Apache-2.0 */
/* What cores stream, measured and as the tuner is told. */
#include "base/base.h"
#include "daemon/plans/profile.h"
#include "governor/bandwidth.h"
#include "tests/harness.h"

static struct dmn_streams streams;

static void on(size_t e, const char *name, double one, double all)
{
    struct pl_ep *ep = &streams.on.eps[e];

    snprintf(ep->name, sizeof(ep->name), "%s", name);
    streams.one[e] = one;
    streams.all[e] = all;
    streams.on.count = e + 1;
}

static struct tun_problem with_eps(const char *a, const char *b, const char *c)
{
    struct tun_ep eps[3] = {{.cores = 1, .speed = 1, .bandwidth = 1},
                            {.cores = 1, .speed = 1, .bandwidth = 1},
                            {.cores = 1, .speed = 1, .bandwidth = 1}};
    struct tun_problem p;

    snprintf(eps[0].name, sizeof(eps[0].name), "%s", a);
    snprintf(eps[1].name, sizeof(eps[1].name), "%s", b);
    snprintf(eps[2].name, sizeof(eps[2].name), "%s", c);
    if (tun_problem_init(&p, 1, eps, 3) < 0) {
        abort();
    }
    return p;
}

/* Two memories: Shisha's fast places are those at the first. */
TEST(eps_have_their_own_bandwidth)
{
    struct tun_problem p = with_eps("node0", "node1", "node2");

    streams = (struct dmn_streams){.machine = 70};
    on(0, "node0", 20, 40);
    on(1, "node1", 5, 10);
    on(2, "node2", 19, 38);
    dmn_streams_enter(&streams, &p);
    T_NEAR(p.eps[0].gbytes, 20, 0);
    T_NEAR(p.eps[1].gbytes_max, 10, 0);
    T_NEAR(p.gbytes_max, 70, 0);
    T_NEAR(p.eps[0].bandwidth, 1, 0);
    T_NEAR(p.eps[1].bandwidth, 0.25, 0);
    T_NEAR(p.eps[2].bandwidth, 1, 0); /* but for the noise */
    tun_problem_deinit(&p);
}

TEST(parts_have_the_bandwidth_of_their_ep)
{
    struct tun_problem p = with_eps("big", "big.1", "late");

    streams = (struct dmn_streams){.machine = 30};
    on(0, "big", 20, 30);
    dmn_streams_enter(&streams, &p);
    T_NEAR(p.eps[1].gbytes, 20, 0);
    T_NEAR(p.eps[2].gbytes, 0, 0); /* was not measured */
    T_NEAR(p.eps[2].bandwidth, 1, 0);
    tun_problem_deinit(&p);
}

TEST(nothing_measured_is_nothing_known)
{
    struct tun_problem p = with_eps("a", "b", "c");

    streams = (struct dmn_streams){0};
    dmn_streams_enter(&streams, &p);
    T_NEAR(p.gbytes_max, 0, 0);
    T_NEAR(p.eps[0].gbytes, 0, 0);
    T_NEAR(p.eps[0].bandwidth, 1, 0);
    tun_problem_deinit(&p);
}

TEST(cores_stream)
{
    const uint16_t cpus[2] = {0, 0};
    double rate = 0;

    T_EQ(gov_bandwidth_measure(cpus, 0, 1 << 20, 8, &rate), -EINVAL);
    T_EQ(gov_bandwidth_measure(cpus, 1, 16, 8, &rate), -EINVAL);
    T_EQ(gov_bandwidth_measure(cpus, 1, 1 << 20, 0, &rate), -EINVAL);
    T_NEAR(rate, 0, 0);
    T_EQ(gov_bandwidth_measure(cpus, 2, 1 << 20, 8, &rate), 0);
    T_TRUE(rate > 0 && isfinite(rate));
}

/* All cores move no less than one of them, however the measurements come out. */
TEST(the_machine_streams_no_less_than_its_cores)
{
    streams = (struct dmn_streams){0};
    on(0, "a", 0, 0);
    on(1, "b", 0, 0);
    streams.on.eps[0].cpu_count = streams.on.eps[1].cpu_count = 1;
    dmn_streams_measure(&streams);
    T_TRUE(streams.one[0] > 0 && streams.one[1] > 0);
    T_TRUE(streams.all[0] >= streams.one[0] && streams.all[1] >= streams.one[1]);
    T_TRUE(streams.machine >= streams.all[0] && streams.machine >= streams.all[1]);
}

TEST_MAIN()
