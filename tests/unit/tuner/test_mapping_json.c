/* SPDX-License-Identifier: Apache-2.0 */
/* AutoDiCE's mapping.json: there and back, and what is refused. */
#include <string.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tuner/json/mapping_json.h"

static const char *const NAMES[] = {"a", "b", "c", "d", "e", "f"};
#define UNITS 6u

static const struct tun_ep EPS[] = {
    {.name = "nx1:cpu", .cores = 6, .speed = 0.2, .bandwidth = 1, .board = 0},
    {.name = "nx1:gpu", .cores = 1, .speed = 1, .bandwidth = 1, .board = 0},
    {.name = "nx2:big", .cores = 4, .speed = 0.2, .bandwidth = 1, .board = 1},
    {.name = "nx2:little", .cores = 4, .speed = 0.1, .bandwidth = 1, .board = 1}};

static struct tun_problem problem(void)
{
    struct tun_problem p;

    if (tun_problem_init(&p, UNITS, EPS, base_array_count(EPS))) {
        abort();
    }
    p.boards.count = 2;
    snprintf(p.boards.boards[0].name, sizeof(p.boards.boards[0].name), "nx1");
    snprintf(p.boards.boards[1].name, sizeof(p.boards.boards[1].name), "nx2");
    return p;
}

/* The plan of a mapping, or what is wrong with it. */
static const char *take(const struct tun_problem *p, const char *json)
{
    static char text[PL_PLAN_TEXT_MAX], error[TUN_READER_ERROR_MAX];
    struct tun_reader r = {.path = "mapping.json", .error = error};
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    struct pl_plan plan;
    struct pl_ep_set set;

    error[0] = '\0';
    tun_mapping_read(&r, root, p, NAMES, &plan);
    json_decref(root);
    if (error[0]) {
        return error;
    }
    tun_eps(p, &set);
    if (pl_plan_check(&plan, &set, UNITS, error, sizeof(error)) ||
        pl_plan_format(&plan, &set, text, sizeof(text))) {
        abort();
    }
    return text;
}

TEST(a_mapping_by_hand)
{
    struct tun_problem p = problem();
    char text[PL_PLAN_TEXT_MAX];

    snprintf(text, sizeof(text), "%s",
             take(&p,
                  "{\"nx1_gpu\": [\"c\", \"relu_of_c\"], \"nx1_cpu012345\": [\"b\", \"a\"],"
                  " \"nx2_arm4567\": [\"f\"], \"nx2_arm01\": [\"d\", \"e\"], \"nx2_cpu2\": []}"));
    T_CONTAINS(text, "cpux6|2-2@");
    T_CONTAINS(text, "nx2:bigx2|5-5@nx2:littlex4");
    tun_problem_deinit(&p);
}

/* To the same cores, while it is on a board and after another one. */
TEST(a_mapping_that_comes_back)
{
    struct tun_problem p = problem();

    T_STR(
        take(&p,
             "{\"nx1_gpu\": [\"a\", \"c\", \"e\", \"f\"], \"nx1_cpu0\": [\"b\"], \"nx2_cpu0123\": "
             "[\"d\"]}"),
        "0-0@nx1:gpu|1-1@nx1:cpu|2-2@nx1:gpu|3-3@nx2:bigx4|4-5@nx1:gpu");
    tun_problem_deinit(&p);
}

TEST(plans_there_and_back)
{
    static const char *const plans[] = {
        "0-5@nx1:cpux6", "0-1@nx1:gpu|2-3@nx1:cpux3|4-5@nx1:cpux3",
        "0-0@nx2:littlex2|1-1@nx2:bigx4|2-2@nx2:littlex2|3-4@nx1:gpu|5-5@nx1:cpu",
        "0-2@nx1:cpux6/8|3-4@nx1:gpu/2|5-5@nx2:bigx2",
        "0-0@nx1:gpu|1-1@nx2:bigx4|2-2@nx1:gpu|3-3@nx1:cpux6|4-5@nx1:gpu"};
    struct tun_problem p = problem();
    struct pl_ep_set set;

    tun_eps(&p, &set);
    for (size_t i = 0; i < base_array_count(plans); i++) {
        char error[TUN_ERROR_MAX], text[PL_PLAN_TEXT_MAX];
        struct pl_plan plan, again;
        struct tun_reader r = {.path = "x", .error = text};
        json_t *json = NULL;

        T_EQ(pl_plan_parse(plans[i], &set, UNITS, error, sizeof(error), &plan), 0);
        T_EQ(tun_mapping_json(&p, &plan, NAMES, error, &json), 0);
        text[0] = '\0';
        tun_mapping_read(&r, json, &p, NAMES, &again);
        T_STR(text, "");
        T_TRUE(pl_plan_equal(&plan, &again));
        json_decref(json);
    }
    tun_problem_deinit(&p);
}

TEST(what_a_mapping_cannot_say)
{
    static const struct {
        const char *plan, *why;
    } rows[] = {{"0-5@nx1:cpu*2", "several teams"}, {"0-5@nx1:cpu+nx1:gpu", "several teams"}};
    struct tun_problem p = problem();
    struct pl_ep_set set;
    char error[TUN_ERROR_MAX];
    struct pl_plan plan;
    json_t *json = NULL;

    tun_eps(&p, &set);
    for (size_t i = 0; i < base_array_count(rows); i++) {
        T_EQ(pl_plan_parse(rows[i].plan, &set, UNITS, error, sizeof(error), &plan), 0);
        T_EQ(tun_mapping_json(&p, &plan, NAMES, error, &json), -EINVAL);
        T_CONTAINS(error, rows[i].why);
    }
    p.eps[2].cores = 40; /* the little ones are cores 40 to 43 */
    T_EQ(pl_plan_parse("0-5@nx2:little", &set, UNITS, error, sizeof(error), &plan), 0);
    T_EQ(tun_mapping_json(&p, &plan, NAMES, error, &json), -EINVAL);
    T_CONTAINS(error, "core 40");
    p.eps[2].cores = 4;
    snprintf(p.boards.boards[1].name, sizeof(p.boards.boards[1].name), "n_2");
    T_EQ(tun_mapping_json(&p, &plan, NAMES, error, &json), -EINVAL);
    T_CONTAINS(error, "underscore");
    tun_problem_deinit(&p);
}

TEST(hostile_mappings)
{
    static const struct {
        const char *json, *why;
    } rows[] = {{"[]", "is not an object"},
                {"{}", "\"a\" is not mapped"},
                {"{\"nx1_gpu\": 7}", "is not a list"},
                {"{\"nx1_gpu\": [7]}", "entry 0 is not a string"},
                {"{\"nx1_gpu\": [\"a\", \"a\"]}", "mapped twice"},
                {"{\"nx1_gpu\": [\"a\"], \"nx1_cpu0\": [\"a\"]}", "mapped twice"},
                {"{\"nx3_gpu\": [\"a\"]}", "nx3_gpu"},
                {"{\"nx2_gpu\": [\"a\"]}", "nx2_gpu"},
                {"{\"\": []}", "is not BOARD_gpu"},
                {"{\"_\": []}", "is not BOARD_gpu"},
                {"{\"nx1\": []}", "is not BOARD_gpu"},
                {"{\"nx1_cpu\": []}", "is not BOARD_gpu"},
                {"{\"nx1_cpu00\": []}", "is not BOARD_gpu"},
                {"{\"nx1_cpu6\": []}", "is not BOARD_gpu"},
                {"{\"nx1_cpu0/\": []}", "is not BOARD_gpu"},
                {"{\"nx1_cpu0/1\": []}", "is not BOARD_gpu"},
                {"{\"nx1_cpu0/9\": []}", "is not BOARD_gpu"},
                {"{\"nx1_cpu0/44\": []}", "is not BOARD_gpu"},
                {"{\"nx1_gpu/0\": []}", "is not BOARD_gpu"},
                {"{\"nx1_cpu0x\": []}", "is not BOARD_gpu"},
                {"{\"nx2_cpu34\": []}", "is not BOARD_gpu"},
                {"{\"nx1_cpu01\": [\"a\"], \"nx1_arm12\": [\"b\"]}", "the same core"}};
    struct tun_problem p = problem();

    for (size_t i = 0; i < base_array_count(rows); i++) {
        T_CONTAINS(take(&p, rows[i].json), rows[i].why);
    }
    p.boards.count = 0;
    T_CONTAINS(take(&p, "{\"x_gpu\": [\"a\"], \"y_cpu0\": []}"), "another device");
    T_STR(take(&p, "{\"x_gpu\": [\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]}"), "0-5@nx1:gpu");
    tun_problem_deinit(&p);
}

/* Who runs what, of a mapping that comes back to a place. */
TEST(places_may_be_come_back_to)
{
    static const uint16_t of[UNITS] = {1, 0, 1, 1, 2, 1};
    char error[TUN_READER_ERROR_MAX] = "";
    struct tun_reader r = {.path = "mapping.json", .error = error};
    json_t *root = json_loads("{\"nx1_cpu12\": [\"b\"], \"nx1_gpu\": [\"f\", \"a\", \"c\", \"d\"],"
                              " \"nx2_cpu4567/2\": [\"e\"]}",
                              0, NULL);
    struct tun_problem p = problem();
    uint16_t place_of[UNITS];
    struct tun_mapping m = {.place_of = place_of};

    tun_mapping_places(&r, root, &p, NAMES, &m);
    T_STR(error, "");
    T_EQ(m.place_count, 3);
    T_EQ(memcmp(place_of, of, sizeof(of)), 0);
    T_EQ(m.places[0].team.ep, 0);
    T_EQ(m.places[0].team.width, 2);
    T_EQ(m.places[0].cores, 6);
    T_EQ(m.places[1].team.ep, 1);
    T_EQ(m.places[2].team.ep, 3);
    T_EQ(m.places[2].team.more, 1);
    json_decref(root);
    tun_problem_deinit(&p);
}

TEST(random_text_is_refused_or_a_plan)
{
    static const char *const words[] = {"nx1_gpu", "nx2_cpu0", "nx1_cpu9",  "nx2_arm45",
                                        "x",       "_gpu",     "nx1_cpu01", "nx1_cpu2"};
    struct tun_problem p = problem();

    for (int round = 0; round < t_times(2000); round++) {
        char json[512] = "{", *at = json + 1;
        size_t keys = (size_t)t_range(0, 3), first = (size_t)t_range(0, 7);

        for (size_t k = 0; k < keys; k++) {
            at += sprintf(at, "%s\"%s\": [", k ? "," : "", words[(first + k) % 8]);
            for (size_t u = 0, n = (size_t)t_range(0, 5); u < n; u++) {
                at += sprintf(at, "%s\"%s\"", u ? "," : "", NAMES[t_range(0, 5)]);
            }
            at += sprintf(at, "]");
        }
        sprintf(at, "}");
        T_TRUE(take(&p, json)[0] != '\0');
    }
    tun_problem_deinit(&p);
}

TEST_MAIN()
