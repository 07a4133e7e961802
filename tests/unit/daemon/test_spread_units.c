/* SPDX-License-Identifier: Apache-2.0 */
/* What the units of a model take on links. */
#include <stdio.h>
#include <unistd.h>

#include "daemon/boards/spread_table.h"
#include "model/segment/segment.h"
#include "tests/harness.h"

static struct mdl_model *load(void)
{
    static const char text[] =
        "{\"seed\": 5, \"input\": {\"shape\": [3, 14, 14]}, \"layers\": ["
        "{\"op\": \"conv\", \"out\": 16, \"kernel\": 3, \"pad\": 1},"
        "{\"op\": \"dwconv\", \"kernel\": 3, \"pad\": 1},"
        "{\"op\": \"conv\", \"out\": 16, \"kernel\": 1, \"name\": \"a\"},"
        "{\"op\": \"conv\", \"out\": 16, \"kernel\": 3, \"pad\": 1, \"name\": \"b\"},"
        "{\"op\": \"add\", \"in\": [\"a\", \"b\"]},"
        "{\"op\": \"fc\", \"out\": 10}]}";
    struct mdl_model *m = NULL;
    char error[MDL_ERROR_MAX];
    FILE *f = fopen("spread_units.json", "w");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0 ||
        mdl_load("spread_units.json", NULL, error, &m) < 0) {
        return NULL;
    }
    unlink("spread_units.json");
    return m;
}

TEST(planning_counts_the_bytes_of_borders)
{
    struct tun_ep ep = {.name = "big", .cores = 1, .speed = 1};
    struct tun_problem p = TUN_PROBLEM_NULL;
    struct mdl_model *m = load();

    T_TRUE(m != NULL);
    T_EQ(tun_problem_init(&p, m->unit_count, &ep, 1), 0);
    T_EQ(dmn_spread_units(m, NULL, &p), 0);
    for (size_t u = 1; u < m->unit_count; u++) {
        struct mdl_border border;

        T_EQ(mdl_border(m, u, &border), 0);
        T_TRUE(border.bytes > 0 && p.units[u].in_bytes == (double)border.bytes);
        mdl_border_deinit(&border);
    }
    T_TRUE(p.boards.input_bytes == 3 * 14 * 14 * 4 && p.boards.output_bytes == 40);
    tun_problem_deinit(&p);
    mdl_free(m);
}

TEST_MAIN()
