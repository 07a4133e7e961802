/* SPDX-License-Identifier: Apache-2.0 */
/* What busy cores take, from joules: a machine whose watts are known is measured. */
#include "governor/watts.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "tests/harness.h"

#define IDLE_W 3.0
#define BIG_W 2.0 /* of each of two cores */
#define LITTLE_W 0.5

static const uint16_t big[] = {0, 1}, little[] = {2};
static const struct gov_cores cores[] = {{"big", big, 2}, {"little", little, 1}};

struct rig {
    struct gov_watts w;
    struct gov_snapshot s;
    double noise; /* relative */
};

static double draw(void)
{
    return (double)(t_random() >> 11) / 9007199254740992.0;
}

static struct rig *rig_new(double noise)
{
    struct rig *r = calloc(1, sizeof(*r));

    if (!r) {
        abort();
    }
    r->noise = noise;
    r->s.at_ns = 100 * BASE_NS_PER_S;
    r->s.cpu_count = 3;
    for (uint16_t c = 0; c < 3; c++) {
        r->s.cpus[c].cpu = c;
    }
    r->s.energy_count = 1;
    r->s.energy[0].counted = true;
    gov_watts_add(&r->w, &r->s, 1, cores, 2);
    return r;
}

/* Half a second in which so much of the cores 0, 1 and 2 is busy. */
static void run(struct rig *r, double a, double b, double c)
{
    double watts = IDLE_W + BIG_W * (a + b) + LITTLE_W * c;

    r->s.at_ns += BASE_NS_PER_S / 2;
    r->s.joules += watts * (1 + r->noise * (draw() - 0.5)) / 2;
    r->s.cpus[0].busy_ns += (uint64_t)(a * 5e8);
    r->s.cpus[1].busy_ns += (uint64_t)(b * 5e8);
    r->s.cpus[2].busy_ns += (uint64_t)(c * 5e8);
    gov_watts_add(&r->w, &r->s, 1, cores, 2);
}

static void run_any(struct rig *r, unsigned windows)
{
    for (unsigned i = 0; i < windows; i++) {
        run(r, draw(), draw(), draw());
    }
}

TEST(a_busy_core_of_each_group_is_told_from_the_rest)
{
    base_autofree struct rig *r = rig_new(0);

    run_any(r, GOV_WATTS_WINDOWS - 1);
    T_NEAR(gov_watts_known(&r->w, 0), 0, 0);
    run_any(r, 100);
    T_NEAR(gov_watts_known(&r->w, 0), BIG_W, 1e-4);
    T_NEAR(gov_watts_known(&r->w, 1), LITTLE_W, 1e-4);
    T_NEAR(gov_watts_known(&r->w, 2), 0, 0);
}

/* Noise of +-5 % of 6 W on average is 0.17 W a window; sigma of LITTLE_W after 3000 windows that
 * fade to 500 is 0.17 / (0.29 sqrt(500)) = 0.026: five of these. */
TEST(noise_is_averaged)
{
    base_autofree struct rig *r = rig_new(0.1);

    run_any(r, 3000);
    T_NEAR(gov_watts_known(&r->w, 0), BIG_W, 0.13);
    T_NEAR(gov_watts_known(&r->w, 1), LITTLE_W, 0.13);
}

TEST(what_never_changes_is_not_known)
{
    base_autofree struct rig *r = rig_new(0.01);

    for (unsigned i = 0; i < 500; i++) {
        run(r, draw(), 1, 1); /* the little core is always busy */
    }
    T_NEAR(gov_watts_known(&r->w, 0), BIG_W, 0.1);
    T_NEAR(gov_watts_known(&r->w, 1), 0, 0);
}

TEST(groups_that_are_busy_together_are_not_known)
{
    base_autofree struct rig *r = rig_new(0.01);

    for (unsigned i = 0; i < 500; i++) {
        double busy = draw();

        run(r, busy, busy, busy);
    }
    T_NEAR(gov_watts_known(&r->w, 0), 0, 0);
    T_NEAR(gov_watts_known(&r->w, 1), 0, 0);
}

TEST(another_state_of_the_machine_begins_anew)
{
    base_autofree struct rig *r = rig_new(0);

    run_any(r, 100);
    T_TRUE(gov_watts_known(&r->w, 0) > 0);
    gov_watts_add(&r->w, &r->s, 2, cores, 2);
    T_NEAR(gov_watts_known(&r->w, 0), 0, 0);
}

/* A battery that is charged, a core that went, a counter that was reset, a suspended machine: no
 * window. */
TEST(windows_that_say_nothing_do_not_count)
{
    base_autofree struct rig *r = rig_new(0);

    run_any(r, 100);
    for (unsigned i = 0; i < 100; i++) {
        r->s.energy[0].counted = i % 2;
        r->s.joules += 1000;
        run(r, 1, 0, 0);
    }
    r->s.energy[0].counted = true;
    run_any(r, 1);
    for (unsigned i = 0; i < 100; i++) {
        r->s.cpus[2].busy_ns = GOV_UNKNOWN;
        r->s.joules += 1000;
        r->s.at_ns += BASE_NS_PER_S;
        gov_watts_add(&r->w, &r->s, 1, cores, 2);
    }
    r->s.cpus[2].busy_ns = 0;
    gov_watts_add(&r->w, &r->s, 1, cores, 2);
    r->s.at_ns += 3600 * BASE_NS_PER_S;
    r->s.joules += 1000;
    gov_watts_add(&r->w, &r->s, 1, cores, 2);
    run_any(r, 1);
    T_NEAR(gov_watts_known(&r->w, 0), BIG_W, 1e-4);
    T_NEAR(gov_watts_known(&r->w, 1), LITTLE_W, 1e-4);
}

TEST_MAIN()
