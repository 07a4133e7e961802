/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA nodes of the places that plans are made of, on trees in place of the machine. */
#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "pipeline/plan_move.h"
#include "tests/harness.h"
#include "tests/unit/governor/tree.h"

#define TWO_NODES                                                                                  \
    "present = 0-3\nonline = 0-3\n/sys/devices/system/node/online = 0-1\n"                         \
    "/sys/devices/system/node/node0/cpulist = 0-1\n/sys/devices/system/node/node1/cpulist = 2-3\n"

static struct gov_topology topology;
static char error[DMN_CONFIG_ERROR_MAX];

static int read_eps(const char *description, const struct dmn_config *config, struct pl_ep_set *ret)
{
    tree_auto struct tree t = tree_new(description);

    return dmn_eps_read(config, t.root, &topology, error, ret);
}

static void name_ep(struct dmn_config *c, const char *name, const char *cpus)
{
    c->eps[c->ep_count].name = (char *)(uintptr_t)name;
    c->eps[c->ep_count].cpus = (char *)(uintptr_t)cpus;
    c->eps[c->ep_count++].speed = 1;
}

TEST(places_have_the_nodes_of_their_cores)
{
    static const struct dmn_config nothing;
    static struct pl_ep_set eps;

    T_EQ(read_eps(TWO_NODES, &nothing, &eps), 0);
    T_EQ(eps.count, 2);
    T_STR(eps.eps[1].name, "node1");
    T_EQ(eps.eps[0].nodes, 1);
    T_EQ(eps.eps[1].nodes, 2);
    T_EQ(read_eps("present = 0-3\nonline = 0-3", &nothing, &eps), 0);
    T_EQ(eps.count, 1);
    T_EQ(eps.eps[0].nodes, 0);
}

TEST(so_do_places_that_the_configuration_names)
{
    static struct dmn_config_ep list[4];
    static struct dmn_config config = {.eps = list};
    static struct pl_ep_set eps;

    name_ep(&config, "left", "0-1");
    name_ep(&config, "both", "1-2");
    name_ep(&config, "right", "3");
    T_EQ(read_eps(TWO_NODES, &config, &eps), 0);
    T_EQ(eps.count, 3);
    T_EQ(eps.eps[0].nodes, 1);
    T_EQ(eps.eps[1].nodes, 3);
    T_EQ(eps.eps[2].nodes, 2);
}

TEST(cores_that_are_not_there_are_refused)
{
    static struct dmn_config_ep list[2];
    static char file[] = "c.json";
    static struct dmn_config config = {.eps = list, .files = {file}, .eps_line = 7};
    static struct pl_ep_set eps;

    name_ep(&config, "here", "0-1");
    name_ep(&config, "away", "3,5-6,9");
    T_EQ(read_eps("present = 0-4\nonline = 0-1", &config, &eps), -EINVAL);
    T_STR(error, "c.json:7: eps[1].cpus: \"3,5-6,9\": this machine has no cores 5-6,9; it has 0-4");
    T_EQ(read_eps("present = 0-9\nonline = 0-1", &config, &eps), 0); /* they may come back */
    T_EQ(eps.count, 2);
    T_EQ(read_eps("online = 0-1", &config, &eps), 0); /* nobody knows */
}

/* Cores went: EPs without one go, too, and the machine has the others once it is told. */
TEST(places_are_found_again_by_usable_cores)
{
    tree_auto struct tree t = tree_new(TWO_NODES);
    static const struct dmn_config nothing;
    static const struct dmn_config *config = &nothing;
    static struct dmn_machine m;
    static struct pl_ep_set eps, none;
    struct gov_cpuset usable = {0};

    m = (struct dmn_machine){.config = (struct dmn_config *const *)&config, .sysfs_root = t.root};
    T_EQ(dmn_machine_read(&m, error), 0);
    T_EQ(m.eps.count, 2);
    T_EQ(dmn_eps_find(&m, &usable, &topology, error, &eps), -ENODEV);
    T_CONTAINS(error, "no execution place has a core left");
    gov_cpuset_add(&usable, 3);
    T_EQ(dmn_eps_find(&m, &usable, &topology, error, &eps), 0);
    T_EQ(eps.count, 1);
    T_STR(eps.eps[0].name, "node1");
    T_EQ(eps.eps[0].cpu_count, 1);
    T_EQ(eps.eps[0].cpus[0], 3);
    T_EQ(m.eps.count, 2); /* nothing is replaced yet */
    dmn_eps_replace(&m, &eps, &none, &topology);
    T_EQ(m.eps.count, 1);
    T_TRUE(dmn_machine_whole(&m) == &m.eps);
    dmn_eps_replace(&m, &none, &eps, &topology);
    T_TRUE(dmn_machine_whole(&m) == &m.whole);
    dmn_machine_deinit(&m);
}

/* big with the cores 0-2, of which @split is split off; 9: none is. */
static void machine_of(uint16_t split, struct dmn_machine *ret)
{
    struct pl_ep_set whole = {.count = 1,
                              .eps = {{.name = "big", .cpu_count = 3, .cpus = {0, 1, 2}}}};

    memset(ret, 0, sizeof(*ret));
    T_EQ(pl_eps_split(&whole, &split, 1, &ret->eps), 0);
    if (split != 9) {
        ret->whole = whole;
    }
}

/* @wanted: the plan as it is on the present places; NULL: it has to wait. */
static void expect_plan(const struct dmn_machine *m, const char *text, const char *wanted)
{
    char got[PL_PLAN_TEXT_MAX], why[256] = "";
    struct pl_plan plan;

    if (!wanted) {
        T_EQ(dmn_eps_plan(m, text, 10, why, sizeof(why), &plan), -EAGAIN);
        T_CONTAINS(why, "is split");
        return;
    }
    T_EQ(dmn_eps_plan(m, text, 10, why, sizeof(why), &plan), 0);
    T_EQ(pl_plan_format(&plan, &m->eps, got, sizeof(got)), 0);
    T_STR(got, wanted);
}

TEST(plans_may_name_places_as_they_are_when_whole)
{
    static struct dmn_machine whole, parts;
    struct pl_plan plan;
    char why[256] = "";

    machine_of(9, &whole);
    machine_of(1, &parts);
    T_STR(dmn_machine_whole(&parts)->eps[0].name, "big");
    T_EQ(dmn_machine_whole(&parts)->eps[0].cpu_count, 3);
    T_TRUE(dmn_machine_whole(&whole) == &whole.eps);
    expect_plan(&whole, "0-9@big*3", "0-9@big*3");
    expect_plan(&parts, "0-9@big*3", "0-9@big*2+big.1");
    expect_plan(&parts, "0-9@big", "0-9@big");
    expect_plan(&parts, "0-9@bigx3", NULL);
    expect_plan(&parts, "0-4@big.1|5-9@bigx2", "0-4@big.1|5-9@bigx2");
    T_EQ(dmn_eps_plan(&whole, "0-9@big.1", 10, why, sizeof(why), &plan), -EINVAL);
    T_CONTAINS(why, "there is no execution place \"big.1\"");
    T_EQ(dmn_eps_plan(&parts, "0-9@little", 10, why, sizeof(why), &plan), -EINVAL);
    T_CONTAINS(why, "there is no execution place \"little\"");
}

TEST_MAIN()
