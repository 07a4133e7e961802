/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "pipeline/plan.h"
#include "tests/harness.h"

static struct pl_ep_set some_eps(void)
{
    struct pl_ep_set eps = {.count = 4};
    const char *names[] = {"big", "little", "apex", "big1"};

    for (size_t i = 0; i < eps.count; i++) {
        snprintf(eps.eps[i].name, sizeof(eps.eps[i].name), "%s", names[i]);
        eps.eps[i].cpu_count = 4;
        eps.eps[i].speed = 1;
    }
    return eps;
}

static void expect_error(const char *text, size_t units, const char *part)
{
    struct pl_ep_set eps = some_eps();
    struct pl_plan before, plan;
    char error[160] = "";

    memset(&plan, 0x5a, sizeof(plan));
    before = plan;
    T_EQ(pl_plan_parse(text, &eps, units, error, sizeof(error), &plan), -EINVAL);
    T_CONTAINS(error, part);
    T_EQ(memcmp(&plan, &before, sizeof(plan)), 0);
}

/* Which nodes read the weights of a stage. */
TEST(stages_have_the_nodes_of_their_cores)
{
    struct pl_ep_set eps = some_eps();
    struct pl_plan p;
    char error[160];

    eps.eps[0].nodes = 1;
    eps.eps[1].nodes = 2;
    eps.eps[2].nodes = 12;
    T_EQ(pl_plan_parse("0-3@bigx2|4-5@little*2|6-6@big+little|7-7@apex|8-8@big1|9-9@big+big1", &eps,
                       10, error, sizeof(error), &p),
         0);
    T_EQ(pl_stage_nodes(&p.stages[0], &eps, ~0u), 1);
    T_EQ(pl_stage_nodes(&p.stages[1], &eps, ~0u), 2);
    T_EQ(pl_stage_nodes(&p.stages[2], &eps, ~0u), 3);
    T_EQ(pl_stage_nodes(&p.stages[2], &eps, 2), 2);
    T_EQ(pl_stage_nodes(&p.stages[3], &eps, ~0u), 12);
    T_EQ(pl_stage_nodes(&p.stages[4], &eps, ~0u), 0);
    T_EQ(pl_stage_nodes(&p.stages[5], &eps, ~0u), 0); /* half is not known */
    T_EQ(pl_stage_nodes(&p.stages[5], &eps, 1), 1);
}

TEST(parses_the_documented_forms)
{
    struct pl_ep_set eps = some_eps();
    struct pl_plan p;
    char error[160], text[PL_PLAN_TEXT_MAX];

    T_EQ(pl_plan_parse("0-15@bigx4|16-25@littlex2*2", &eps, 26, error, sizeof(error), &p), 0);
    T_EQ(p.stage_count, 2);
    T_EQ(p.stages[0].last_unit, 15);
    T_EQ(p.stages[0].groups[0].width, 4);
    T_EQ(p.stages[0].groups[0].count, 1);
    T_EQ(p.stages[1].groups[0].ep, 1);
    T_EQ(p.stages[1].groups[0].width, 2);
    T_EQ(p.stages[1].groups[0].count, 2);
    T_EQ(pl_plan_cores(&p, 0), 4);
    T_EQ(pl_plan_cores(&p, 1), 4);
    T_TRUE(!pl_plan_oversubscribed(&p, &eps));
    T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
    T_STR(text, "0-15@bigx4|16-25@littlex2*2");

    T_EQ(pl_plan_parse("0-25@big*4+little*4", &eps, 26, error, sizeof(error), &p), 0);
    T_EQ(p.stages[0].group_count, 2);
    T_EQ(pl_plan_cores(&p, 1), 4);
    T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
    T_STR(text, "0-25@big*4+little*4");

    /* a name that holds an x, one that begins like another, widths of 1 written out */
    T_EQ(pl_plan_parse("0-0@apexx2+big1x3|1-1@bigx1*1", &eps, 2, error, sizeof(error), &p), 0);
    T_EQ(p.stages[0].groups[0].ep, 2);
    T_EQ(p.stages[0].groups[1].ep, 3);
    T_EQ(p.stages[1].groups[0].ep, 0);
    T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
    T_STR(text, "0-0@apexx2+big1x3|1-1@big");

    T_EQ(pl_plan_parse("0-4@big*2|5-7@bigx2/4+little*2/8+big/1", &eps, 8, error, sizeof(error), &p),
         0);
    T_EQ(pl_group_batch(&p.stages[0].groups[0]), 1);
    T_EQ(pl_group_batch(&p.stages[1].groups[0]), 4);
    T_EQ(pl_group_batch(&p.stages[1].groups[1]), 8);
    T_EQ(p.stages[1].groups[2].more, 0);
    T_EQ(pl_plan_batched(&p), 4 + 2 * 8);
    T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
    T_STR(text, "0-4@big*2|5-7@bigx2/4+little*2/8+big");

    T_EQ(pl_plan_parse("0-1@big*5", &eps, 2, error, sizeof(error), &p), 0);
    T_TRUE(pl_plan_oversubscribed(&p, &eps));
}

TEST(a_team_may_have_cores_of_several_eps)
{
    struct pl_ep_set eps = some_eps();
    struct pl_plan p;
    char error[160], text[PL_PLAN_TEXT_MAX];

    T_EQ(pl_plan_parse("0-3@bigx2&little*2+apex|4-7@big1&little&apexx3/2", &eps, 8, error,
                       sizeof(error), &p),
         0);
    T_EQ(p.stages[0].group_count, 2);
    T_TRUE(pl_group_spans(&p.stages[0].groups[0]));
    T_TRUE(!pl_group_spans(&p.stages[0].groups[1]));
    T_EQ(pl_group_width(&p.stages[0].groups[0]), 3);
    T_EQ(pl_group_on(&p.stages[0].groups[0], 0), 2);
    T_EQ(pl_group_on(&p.stages[0].groups[0], 1), 1);
    T_EQ(pl_group_on(&p.stages[0].groups[0], 2), 0);
    T_EQ(pl_group_width(&p.stages[1].groups[0]), 5);
    T_EQ(pl_group_batch(&p.stages[1].groups[0]), 2);
    T_EQ(pl_plan_teams(&p), 4);
    T_EQ(pl_plan_cores(&p, 0), 4);
    T_EQ(pl_plan_cores(&p, 1), 3);
    T_EQ(pl_plan_cores(&p, 2), 4);
    T_TRUE(pl_group_spans(&p.stages[0].groups[0]));
    T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
    T_STR(text, "0-3@bigx2&little*2+apex|4-7@big1&little&apexx3/2");

    expect_error("0-3@big&big", 4, "a team names big twice");
    expect_error("0-3@big&little&little", 4, "a team names little twice");
    expect_error("0-3@big&", 4, "ends at byte 8");
    expect_error("0-3@big*2&little", 4, "'|', ';', '+' or the end is expected");
    expect_error("0-3@big&littlex0", 4, "1 to 64 cores");
    expect_error("0-3@big&littlex65", 4, "1 to 64 cores");
    expect_error("0-3@big&littlex5", 4, "little has 4 cores");
    p.stages[0].groups[0].also[1] = (struct pl_also){2, 0};
    T_EQ(pl_plan_check(&p, &eps, 8, NULL, 0), -EINVAL);
    p.stages[0].groups[0].also[1] = (struct pl_also){9, 1};
    T_EQ(pl_plan_check(&p, &eps, 8, NULL, 0), -EINVAL);
}

TEST(says_what_is_wrong)
{
    expect_error("", 4, "ends at byte 0");
    expect_error("x", 4, "a first unit is expected at byte 0, not 'x'");
    expect_error("0", 4, "'-'");
    expect_error("0-3", 4, "'@'");
    expect_error("0-3@", 4, "execution place");
    expect_error("0-3@huge", 4, "no execution place \"huge\"");
    expect_error("0-3@bigx", 4, "no execution place \"bigx\"");
    expect_error("0-3@bigx0", 4, "width of 0");
    expect_error("0-3@big*0", 4, "number of teams of 0");
    expect_error("0-3@bigx5", 4, "has 4 cores");
    expect_error("0-3@big/0", 4, "a team takes 1 to 8 frames at once, not 0");
    expect_error("0-3@big/9", 4, "a team takes 1 to 8 frames at once, not 9");
    expect_error("0-3@big/", 4, "a number of frames is expected");
    expect_error("0-3@big/2*2", 4, "'|', ';', '+' or the end is expected");
    expect_error("0-3@big*", 4, "a number of teams is expected");
    expect_error("0-3@big|", 4, "ends at byte 8");
    expect_error("0-3@big+", 4, "ends at byte 8");
    expect_error("0-3@big ", 4, "not ' '");
    expect_error("0-3@big\n", 4, "0x0a");
    expect_error("0-3@big\xff", 4, "0xff");
    expect_error("0-2@big", 4, "units 3 to 3 are in no stage");
    expect_error("0-4@big", 4, "the last unit is 3");
    expect_error("1-3@big", 4, "begins at unit 1");
    expect_error("0-1@big|3-3@big", 4, "begins at unit 3, not at unit 2");
    expect_error("0-1@big|1-3@big", 4, "begins at unit 1, not at unit 2");
    expect_error("0-1@big|2-1@big|2-3@big", 4, "before it begins");
    expect_error("0-70000@big", 4, "above 65535");
    expect_error("0-99999999999999999999@big", 4, "above 65535");
    expect_error("0-3@big*129", 4, "more than 128 teams");
    expect_error("0-3@big+big+big+big+big+big+big+big+big+big+big+big+big+big+big+big+big", 4,
                 "more than 16 groups");
    expect_error("0-0@big", 0, "the last unit is -1");
    expect_error("0-3@big|0-3@little", 4, "a route begins at unit 0, behind a ';' (byte 7)");
    expect_error("0-1@big;2-3@little", 4, "a route begins at unit 0, behind a ';' (byte 7)");
    expect_error("0-3@big;", 4, "a route begins at unit 0");
    expect_error("60%:0-3@big;30%:0-3@little", 4, "add up to 90.0 %, not to 100");
    expect_error("60%:0-3@big;0-3@little", 4, "has no part of the frames");
    expect_error("100%:0-3@big", 4, "the only route has all frames, not 100.0 %");
    expect_error("0%:0-3@big;100%:0-3@little", 4, "a route has 0.1 to 100 %");
    expect_error("101%:0-3@big", 4, "a route has 0.1 to 100 %");
    expect_error("50.05%:0-3@big", 4, "\"%:\" is expected");
    expect_error("50.%:0-3@big", 4, "a digit is expected");
    expect_error("50%0-3@big", 4, "\"%:\" is expected");
    expect_error("50%:0-1@big|50%:2-3@little", 4, "a route begins at unit 0");
    expect_error("0-3@big;0-1@little", 4, "units 2 to 3 are in no stage");
    expect_error("0-3@big;0-3@big;0-3@big;0-3@big;0-3@big;0-3@big;0-3@big;0-3@big;0-3@big", 4,
                 "at most 8 routes");
}

TEST(several_routes)
{
    struct pl_ep_set eps = some_eps();
    char text[PL_PLAN_TEXT_MAX], error[160];
    struct pl_plan p, q;

    T_EQ(pl_plan_parse("62.5%:0-3@big*4;37.5%:0-1@big|2-3@little*2", &eps, 4, error, sizeof(error),
                       &p),
         0);
    T_EQ(p.stage_count, 3);
    T_EQ(pl_plan_routes(&p), 2);
    T_EQ(pl_route_end(&p, 0), 1);
    T_EQ(pl_route_end(&p, 1), 3);
    T_NEAR(pl_route_part(&p, 0), 0.625, 1e-9);
    T_NEAR(pl_route_part(&p, 2), 0.375, 1e-9);
    T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
    T_STR(text, "62.5%:0-3@big*4;37.5%:0-1@big|2-3@little*2");
    T_EQ(pl_plan_parse("0-3@big;0-3@little;0-3@apex", &eps, 4, error, sizeof(error), &q), 0);
    T_EQ(pl_plan_format(&q, &eps, text, sizeof(text)), 0);
    T_STR(text, "33.3%:0-3@big;33.3%:0-3@little;33.4%:0-3@apex");
    T_EQ(pl_plan_cores(&p, 0), 4);
    T_EQ(pl_plan_cores(&p, 1), 2);
    T_TRUE(!pl_plan_oversubscribed(&p, &eps));
    q = p;
    q.stages[0].share--;
    q.stages[1].share++;
    T_TRUE(!pl_plan_equal(&p, &q));
    q.stages[1].share++;
    T_EQ(pl_plan_check(&q, &eps, 4, error, sizeof(error)), -EINVAL);
}

TEST(refuses_what_is_too_long)
{
    char text[2 * PL_PLAN_TEXT_MAX];

    memset(text, '0', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    expect_error(text, 4, "longer than 4095");
    text[0] = '\0';
    for (int i = 0; i < 65; i++) {
        sprintf(text + strlen(text), "%s%d-%d@big", i > 0 ? "|" : "", i, i);
    }
    expect_error(text, 65, "more than 64 stages");
}

TEST(checks_plans_that_were_not_text)
{
    struct pl_ep_set eps = some_eps();
    struct pl_plan p = {.stage_count = 1, .stages = {{0, 3, 1, {{0, 1, 1}}}}}, bad;
    char text[8];

    T_EQ(pl_plan_check(&p, &eps, 4, NULL, 0), 0);
    bad = p;
    bad.stages[0].groups[0].ep = 4;
    T_EQ(pl_plan_check(&bad, &eps, 4, NULL, 0), -EINVAL);
    bad = p;
    bad.stage_count = 0;
    T_EQ(pl_plan_check(&bad, &eps, 4, NULL, 0), -EINVAL);
    bad.stage_count = PL_STAGE_MAX + 1;
    T_EQ(pl_plan_check(&bad, &eps, 4, NULL, 0), -EINVAL);
    bad = p;
    bad.stages[0].group_count = PL_GROUP_MAX + 1;
    T_EQ(pl_plan_check(&bad, &eps, 4, NULL, 0), -EINVAL);
    bad.stages[0].group_count = 0;
    T_EQ(pl_plan_check(&bad, &eps, 4, NULL, 0), -EINVAL);
    /* the whole text, or that there is none */
    T_EQ(pl_plan_format(&p, &eps, text, 7), -ENOSPC);
    T_STR(text, "(too l");
    T_EQ(pl_plan_format(&p, &eps, text, 8), 0);
    T_STR(text, "0-3@big");
}

static struct pl_plan random_plan(const struct pl_ep_set *eps, size_t units)
{
    struct pl_plan p = {0};
    size_t next = 0, teams = 0;

    while (next < units) {
        struct pl_stage_plan *s = &p.stages[p.stage_count++];

        s->first_unit = (uint16_t)next;
        s->last_unit = p.stage_count == PL_STAGE_MAX
                           ? (uint16_t)(units - 1)
                           : (uint16_t)t_range((int64_t)next, (int64_t)units - 1);
        next = (size_t)s->last_unit + 1;
        s->group_count = (uint16_t)t_range(1, 3);
        for (size_t g = 0; g < s->group_count; g++) {
            s->groups[g].ep = (uint16_t)t_range(0, (int64_t)eps->count - 1);
            s->groups[g].width = (uint16_t)t_range(1, 4);
            s->groups[g].count = (uint16_t)(teams < 64 ? t_range(1, 3) : 1);
            s->groups[g].more = (uint16_t)(t_range(0, 2) ? 0 : t_range(0, PL_BATCH_MAX - 1));
            if (t_range(0, 3) == 0) {
                s->groups[g].also[0] = (struct pl_also){
                    (uint8_t)((s->groups[g].ep + 1u) % eps->count), (uint8_t)t_range(1, 4)};
            }
            teams += s->groups[g].count;
        }
        if (teams > 100) {
            s->last_unit = (uint16_t)(units - 1);
            break;
        }
    }
    return p;
}

TEST(random_plans_survive_text)
{
    struct pl_ep_set eps = some_eps();
    char text[PL_PLAN_TEXT_MAX], error[160];

    for (int i = 0; i < 20000; i++) {
        size_t units = (size_t)t_range(1, 200);
        struct pl_plan p = random_plan(&eps, units), back;

        T_EQ(pl_plan_check(&p, &eps, units, error, sizeof(error)), 0);
        T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
        T_EQ(pl_plan_parse(text, &eps, units, error, sizeof(error), &back), 0);
        T_TRUE(pl_plan_equal(&p, &back));
        back.stages[0].groups[0].width ^= 1;
        T_TRUE(!pl_plan_equal(&p, &back));
        back = p;
        back.stages[0].groups[0].more ^= 1;
        T_TRUE(!pl_plan_equal(&p, &back));
        back.stages[0].groups[0].more = PL_BATCH_MAX;
        T_EQ(pl_plan_check(&back, &eps, units, error, sizeof(error)), -EINVAL);
        /* one unit more or less: no longer a cover */
        T_EQ(pl_plan_parse(text, &eps, units + 1, error, sizeof(error), &back), -EINVAL);
        T_EQ(pl_plan_parse(text, &eps, units - 1, error, sizeof(error), &back), -EINVAL);
    }
}

/* Whatever is done to a text, the parser either refuses it with a sentence or gives a plan that
 * passes the check and that its own text leads back to. */
TEST(hostile_texts)
{
    static const char alphabet[] = "0123456789-@|+*&xbigltea \t\x01\x80\xff";
    struct pl_ep_set eps = some_eps();
    size_t accepted = 0;

    for (int i = 0; i < 100000; i++) {
        size_t units = (size_t)t_range(1, 12);
        struct pl_plan p = random_plan(&eps, units), back;
        char text[PL_PLAN_TEXT_MAX], error[80] = "";
        size_t n, changes = (size_t)t_range(0, 4);
        int r;

        T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
        n = strlen(text);
        for (size_t k = 0; k < changes; k++) {
            size_t at = (size_t)t_range(0, (int64_t)n - 1);

            text[at] = alphabet[t_range(0, (int64_t)sizeof(alphabet) - 1)];
        }
        r = pl_plan_parse(text, &eps, units, error, sizeof(error), &p);
        if (r < 0) {
            T_EQ(r, -EINVAL);
            T_TRUE(error[0] != '\0' && memchr(error, '\0', sizeof(error)) != NULL);
            continue;
        }
        accepted++;
        T_EQ(pl_plan_check(&p, &eps, units, error, sizeof(error)), 0);
        T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
        T_EQ(pl_plan_parse(text, &eps, units, error, sizeof(error), &back), 0);
        T_TRUE(pl_plan_equal(&p, &back));
    }
    T_LT(20000, accepted); /* unchanged ones at least */
}

TEST(boards)
{
    struct pl_ep_set eps = {.count = 3, .board = "head"};
    char error[128] = "", text[128];
    struct pl_plan p;

    snprintf(eps.eps[0].name, PL_EP_NAME_MAX, "head:big");
    snprintf(eps.eps[1].name, PL_EP_NAME_MAX, "little");
    snprintf(eps.eps[2].name, PL_EP_NAME_MAX, "b2:bigx");
    for (size_t i = 0; i < eps.count; i++) {
        eps.eps[i].cpu_count = 4;
    }
    T_EQ(pl_plan_parse("0-1@big*2|2-3@b2:bigxx2+head:littlex4", &eps, 4, error, sizeof(error), &p),
         0);
    T_EQ(p.stages[0].groups[0].ep, 0);
    T_EQ(p.stages[1].groups[0].ep, 2);
    T_EQ(p.stages[1].groups[0].width, 2);
    T_EQ(p.stages[1].groups[1].ep, 1);
    T_EQ(pl_plan_format(&p, &eps, text, sizeof(text)), 0);
    T_STR(text, "0-1@head:big*2|2-3@b2:bigxx2+littlex4");
    T_EQ(pl_plan_parse("0-3@b2:big", &eps, 4, error, sizeof(error), &p), -EINVAL);
    T_CONTAINS(error, "b2:big");
    T_EQ(pl_plan_parse("0-3@b2:little", &eps, 4, error, sizeof(error), &p), -EINVAL);
}

TEST_MAIN()
