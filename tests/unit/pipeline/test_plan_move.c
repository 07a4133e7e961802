/* SPDX-License-Identifier: Apache-2.0 */
/* Plans on EPs that were split, joined or have lost cores. */
#include "base/base.h"
#include "pipeline/plan_move.h"
#include "tests/harness.h"

#define UNITS 10u
#define CORES 4u /* of each EP */

/* big has the cores 0-3, little 4-7. */
static struct pl_ep_set two_eps(void)
{
    struct pl_ep_set eps = {.count = 2, .eps = {{.name = "big"}, {.name = "little"}}};

    for (size_t e = 0; e < eps.count; e++) {
        eps.eps[e].cpu_count = CORES;
        eps.eps[e].speed = 1;
        for (size_t i = 0; i < CORES; i++) {
            eps.eps[e].cpus[i] = (uint16_t)(CORES * e + i);
        }
    }
    return eps;
}

static void parse(const char *text, const struct pl_ep_set *eps, struct pl_plan *ret)
{
    char error[160] = "";

    T_EQ(pl_plan_parse(text, eps, UNITS, error, sizeof(error), ret), 0);
    T_STR(error, "");
}

/* @from on the EPs after the cores were split off is @to, and @back after that; NULL: none fits. */
static void expect(const char *from, const uint16_t *cpus, size_t count, const char *to,
                   const char *back)
{
    struct pl_ep_set whole = two_eps(), parts;
    struct pl_plan p, moved, again;
    char text[PL_PLAN_TEXT_MAX];

    parse(from, &whole, &p);
    T_EQ(pl_eps_split(&whole, cpus, count, &parts), 0);
    if (!to) {
        T_TRUE(!pl_plan_move(&p, &whole, &parts, UNITS, &moved));
        return;
    }
    T_TRUE(pl_plan_move(&p, &whole, &parts, UNITS, &moved));
    T_EQ(pl_plan_format(&moved, &parts, text, sizeof(text)), 0);
    T_STR(text, to);
    T_TRUE(pl_plan_move(&moved, &parts, &whole, UNITS, &again));
    T_EQ(pl_plan_format(&again, &whole, text, sizeof(text)), 0);
    T_STR(text, back);
}

TEST(split_places_are_named_by_their_cores_and_come_last)
{
    static const uint16_t cpus[] = {2, 5, 99};
    struct pl_ep_set whole = two_eps(), parts;

    T_EQ(pl_eps_split(&whole, cpus, base_array_count(cpus), &parts), 0);
    T_EQ(parts.count, 4);
    T_STR(parts.eps[0].name, "big");
    T_EQ(parts.eps[0].cpu_count, 3);
    T_EQ(parts.eps[0].cpus[2], 3);
    T_STR(parts.eps[2].name, "big.2");
    T_EQ(parts.eps[2].cpu_count, 1);
    T_EQ(parts.eps[2].cpus[0], 2);
    T_STR(parts.eps[3].name, "little.5");
    T_EQ(pl_ep_base(parts.eps[3].name), 6);
    T_EQ(pl_ep_like(&whole, &parts.eps[3]), 1);
}

TEST(the_last_core_of_a_place_stays)
{
    static const uint16_t cpus[] = {0, 1, 2, 3};
    struct pl_ep_set whole = two_eps(), parts;

    T_EQ(pl_eps_split(&whole, cpus, base_array_count(cpus), &parts), 0);
    T_EQ(parts.count, 5);
    T_EQ(parts.eps[0].cpu_count, 1);
    T_EQ(parts.eps[0].cpus[0], 3);
    whole.count = PL_EP_MAX;
    T_EQ(pl_eps_split(&whole, cpus, base_array_count(cpus), &parts), -ENOSPC);
}

TEST(teams_go_where_their_cores_are)
{
    static const uint16_t second[] = {1}, first[] = {0}, two[] = {1, 4};

    expect("0-9@big*4", second, 1, "0-9@big*3+big.1", "0-9@big*4");
    expect("0-9@big*2+little", second, 1, "0-9@big+big.1+little", "0-9@big*2+little");
    expect("0-9@big*2+little", two, 2, "0-9@big+big.1+little.4", "0-9@big*2+little");
    expect("0-4@big|5-9@big", second, 1, "0-4@big|5-9@big.1", "0-4@big|5-9@big");
    expect("0-4@big|5-9@big/4", first, 1, "0-4@big.0|5-9@big/4", "0-4@big|5-9@big/4");
    expect("0-9@bigx2*2", second, 1, NULL, NULL);       /* a team has a core in either part */
    expect("0-4@bigx2|5-9@big", second, 1, NULL, NULL); /* though other cores would suffice */
    expect("0-4@big*2|5-9@bigx2", second, 1, "0-4@big+big.1|5-9@bigx2", "0-4@big*2|5-9@bigx2");
    expect("0-9@littlex4", second, 1, "0-9@littlex4", "0-9@littlex4");
    expect("0-9@big*8", second, 1, "0-9@big*6+big.1*2", "0-9@big*8"); /* two on each core */
}

TEST(cores_that_went_take_their_teams_along)
{
    struct pl_ep_set whole = two_eps(), less = two_eps();
    struct pl_plan p, moved;

    parse("0-4@bigx2|5-9@little*3", &whole, &p);
    less.eps[1].cpu_count = 3;
    T_TRUE(pl_plan_move(&p, &whole, &less, UNITS, &moved));
    T_TRUE(pl_plan_equal(&p, &moved));
    less.eps[1].cpu_count = 2;
    T_TRUE(!pl_plan_move(&p, &whole, &less, UNITS, &moved));
    less.count = 1;
    T_TRUE(!pl_plan_move(&p, &whole, &less, UNITS, &moved));
}

static unsigned draw(uint64_t *state, unsigned below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % below;
}

/* A plan of one-core teams that gives out no core twice, with the groups of a stage in the order of
 * their EPs. */
static struct pl_plan random_plan(uint64_t *state)
{
    struct pl_plan p = {.stage_count = 1 + draw(state, 3)};
    unsigned left[2] = {CORES, CORES};

    for (size_t s = 0; s < p.stage_count; s++) {
        struct pl_stage_plan *stage = &p.stages[s];

        stage->first_unit = (uint16_t)(s * UNITS / p.stage_count);
        stage->last_unit = (uint16_t)((s + 1) * UNITS / p.stage_count - 1);
        for (uint16_t e = 0; e < 2; e++) {
            unsigned spare = left[e] - (unsigned)(p.stage_count - s - 1);
            unsigned count =
                e == 0 && stage->group_count == 0 ? 1 + draw(state, spare) : draw(state, spare + 1);

            if (count > 0) {
                stage->groups[stage->group_count++] =
                    (struct pl_group){.ep = e,
                                      .width = 1,
                                      .count = (uint16_t)count,
                                      .more = (uint16_t)draw(state, 2)};
                left[e] -= count;
            }
        }
    }
    return p;
}

/* Splitting and joining are inverse, and no team changes its core by it. */
TEST(random_plans_come_back_as_they_were)
{
    uint64_t state = t_seed;

    for (int run = 0; run < 2000; run++) {
        struct pl_ep_set whole = two_eps(), parts;
        struct pl_plan p = random_plan(&state), moved, back;
        uint16_t cpus[3];
        size_t teams[2] = {0};

        for (size_t i = 0; i < base_array_count(cpus); i++) {
            cpus[i] = (uint16_t)draw(&state, 2 * CORES);
        }
        T_EQ(pl_eps_split(&whole, cpus, base_array_count(cpus), &parts), 0);
        T_TRUE(pl_plan_move(&p, &whole, &parts, UNITS, &moved));
        T_TRUE(!pl_plan_oversubscribed(&moved, &parts));
        for (size_t e = 0; e < parts.count; e++) {
            teams[pl_ep_like(&whole, &parts.eps[e])] += pl_plan_cores(&moved, e);
        }
        T_EQ(teams[0], pl_plan_cores(&p, 0));
        T_EQ(teams[1], pl_plan_cores(&p, 1));
        T_TRUE(pl_plan_move(&moved, &parts, &whole, UNITS, &back));
        T_TRUE(pl_plan_equal(&back, &p));
    }
}

TEST_MAIN()
