/* SPDX-License-Identifier: Apache-2.0 */
/* Cost tables as JSON: their form does not change, and what is written is read again. */
#include <jansson.h>
#include <string.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/searches.h"
#include "tuner/json/costs_json.h"

static const struct tun_ep EPS[] = {{"big", 2, 1, 1, 1}, {"little", 1, 0.5, 0.25, 2}};

static void text_of(json_t *v, char *ret, size_t bytes)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(9));

    snprintf(ret, bytes, "%s", text ? text : "");
    free(text);
    json_decref(v);
}

/* Reads a recorded table. Return: what is wrong with it, "" if nothing is, until the next call */
static const char *read_table(json_t *v, struct tun_problem *ret)
{
    static char error[TUN_READER_ERROR_MAX];
    struct tun_reader r = {.path = "here", .error = error};

    error[0] = '\0';
    tun_problem_read(&r, v, ret);
    return error;
}

/* Two units; big has both widths, of little one cell is unknown and one predicted. */
static struct tun_problem two_units(void)
{
    struct tun_problem p = t_problem(2, EPS, base_array_count(EPS));

    p.handoff_ns = 3;
    for (size_t u = 0; u < 2; u++) {
        p.units[u] = (struct tun_unit){.weight = 10.0 + (double)u, .in_bytes = 5, .gemm_n = 1};
        *tun_cell_at(&p.costs, 0, 1, u) = (struct tun_cell){8, 0.5, TUN_MEASURED};
        *tun_cell_at(&p.costs, 0, 2, u) = (struct tun_cell){4, 0.25, TUN_SAVED};
        *tun_cell_at(&p.costs, 1, 1, u) = (struct tun_cell){0};
    }
    *tun_cell_at(&p.costs, 1, 1, 1) = (struct tun_cell){16, 1, TUN_PREDICTED};
    return p;
}

TEST(the_form_of_recorded_tables)
{
    struct tun_problem p = two_units();
    char text[2048];

    text_of(tun_problem_json(&p, "net", true, NULL, NULL), text, sizeof(text));
    T_STR(
        text,
        "{\"model\":\"net\",\"units\":[{\"name\":\"0\",\"weight\":10.0,\"in_bytes\":5.0,\"gemm\":"
        "[1.0,0.0,0.0]},{\"name\":\"1\",\"weight\":11.0,\"in_bytes\":5.0,\"gemm\":[1.0,0.0,0.0]}],"
        "\"kinds\":[{\"name\":\"big\",\"cores\":2,\"speed\":1.0,\"bandwidth\":1.0,\"watts\":1.0},{"
        "\"name\":\"little\",\"cores\":1,\"speed\":0.5,\"bandwidth\":0.25,\"watts\":2.0}],"
        "\"handoff_ns\":3.0,\"handoff_ns_per_byte\":0.0,\"costs\":{\"big\":{\"1\":[8.0,8.0],\"2\":"
        "[4.0,4.0]},\"little\":{\"1\":[null,16.0]}},\"sources\":{\"big\":{\"1\":[\"measured\","
        "\"measured\"],\"2\":[\"saved\",\"saved\"]},\"little\":{\"1\":[\"unknown\","
        "\"predicted\"]}}}");
    tun_problem_deinit(&p);
}

TEST(the_form_of_kept_cells)
{
    struct tun_problem p = two_units();
    char text[512];

    text_of(tun_costs_json(&p), text, sizeof(text));
    T_STR(text,
          "{\"big\":{\"1\":[[8.0,0.5],[8.0,0.5]],\"2\":[[4.0,0.25],[4.0,0.25]]},\"little\":{}}");
    tun_problem_deinit(&p);
}

TEST(recorded_tables_are_read_again)
{
    struct tun_problem p = two_units(), again = TUN_PROBLEM_NULL;
    json_t *v = tun_problem_json(&p, "net", true, NULL, NULL);

    T_STR(read_table(v, &again), "");
    T_EQ(again.unit_count, 2);
    T_EQ(again.ep_count, 2);
    T_NEAR(again.handoff_ns, 3, 0);
    T_NEAR(again.units[1].weight, 11, 0);
    for (size_t u = 0; u < 2; u++) {
        T_NEAR(tun_cell_at(&again.costs, 0, 1, u)->ns, 8, 0);
        T_NEAR(tun_cell_at(&again.costs, 0, 2, u)->ns, 4, 0);
    }
    T_EQ(tun_cell_at(&again.costs, 1, 1, 0)->source, TUN_UNKNOWN);
    tun_problem_deinit(&again);
    json_object_set_new(json_object_get(v, "costs"), "huge", json_object());
    T_CONTAINS(read_table(v, &again), "\"huge\" is not one of the kinds");
    json_decref(v);
    tun_problem_deinit(&again);
    tun_problem_deinit(&p);
}

TEST(several_frames_at_once_are_recorded_and_read)
{
    struct tun_problem p = two_units(), again = TUN_PROBLEM_NULL;
    char text[512];
    json_t *v;

    T_TRUE(tun_at_once_json(&p, false) == NULL);
    tun_problem_at_once(&p)[1] = (struct tun_at_once){.factor = {0.75, 0.625, 0.5625}};
    p.batch_wait_ns = 7;
    text_of(tun_at_once_json(&p, false), text, sizeof(text));
    T_STR(text, "{\"big\":[null,[0.75,0.625,0.5625]]}");
    T_TRUE(tun_at_once_json(&p, true) == NULL); /* measured at load: it is in another file */
    v = tun_problem_json(&p, "net", false, NULL, NULL);
    T_STR(read_table(v, &again), "");
    T_NEAR(again.batch_wait_ns, 7, 0);
    T_NEAR(tun_at_once_at(&again, 0, 1)->factor[2], 0.5625, 0);
    T_TRUE(!tun_at_once_gains(tun_at_once_at(&again, 0, 0)));
    T_TRUE(!tun_at_once_gains(tun_at_once_at(&again, 1, 1)));
    tun_problem_deinit(&again);

    json_object_set_new(v, "at_once", json_loads("{\"big\": [null, [1.5, 1, 1]]}", 0, NULL));
    T_CONTAINS(read_table(v, &again), "big: entry 1");
    json_decref(v);
    tun_problem_deinit(&again);
    tun_problem_deinit(&p);
}

TEST(kept_gains_are_taken_one_by_one)
{
    struct tun_problem p = two_units();
    json_t *v = json_loads("{\"big\": [[0.9, 0.8], [0.9, 0.8, 0.7]], \"little\": [[1, 1, 1]], "
                           "\"other\": 3}",
                           0, NULL);
    char text[512];

    T_EQ(tun_at_once_take(&p, NULL), 0); /* a file of an older version */
    T_TRUE(p.at_once == NULL);
    T_TRUE(v);
    T_EQ(tun_at_once_take(&p, v), 0);
    T_TRUE(!tun_at_once_at(&p, 0, 0)->measured);
    T_TRUE(tun_at_once_at(&p, 0, 1)->measured);
    T_NEAR(tun_at_once_at(&p, 0, 1)->factor[1], 0.8, 0);
    text_of(tun_at_once_json(&p, true), text, sizeof(text));
    T_STR(text, "{\"big\":[null,[0.9,0.8,0.7]]}");
    json_decref(v);
    tun_problem_deinit(&p);
}

/* What is wrong in one cell, row or EP leaves the others. */
TEST(kept_cells_are_taken_one_by_one)
{
    struct tun_problem p = two_units();
    json_t *v = json_loads("{\"big\": {\"1\": [[7.5, 0.1], [-1, 0.1]], \"2\": [[1, 0]]}, "
                           "\"little\": {\"1\": [[20, 99], [30, 0]], \"2\": 3}, \"other\": {}}",
                           0, NULL);

    T_TRUE(v);
    tun_costs_take(&p, v);
    T_NEAR(tun_cell_at(&p.costs, 0, 1, 0)->ns, 7.5, 0);
    T_NEAR(tun_cell_at(&p.costs, 0, 1, 0)->sigma, 0.1, 0);
    T_EQ(tun_cell_at(&p.costs, 0, 1, 0)->source, TUN_SAVED);
    T_NEAR(tun_cell_at(&p.costs, 0, 1, 1)->ns, 8, 0);
    T_NEAR(tun_cell_at(&p.costs, 0, 2, 0)->ns, 4, 0);
    T_EQ(tun_cell_at(&p.costs, 1, 1, 0)->source, TUN_UNKNOWN);
    T_NEAR(tun_cell_at(&p.costs, 1, 1, 1)->ns, 30, 0);
    tun_costs_take(&p, NULL);
    json_decref(v);
    tun_problem_deinit(&p);
}

TEST_MAIN()
