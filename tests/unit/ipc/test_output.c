/* SPDX-License-Identifier: Apache-2.0 */
/* What pipectl prints: rows of objects, numbers that may be unknown, lists of CPUs. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/pipectl/common/output.h"
#include "base/base.h"
#include "base/pnm.h"
#include "tests/harness.h"

static const struct ctl_column columns[] = {{"name", "name", 'l'},
                                            {"busy", "busy", 'r', CTL_DECIMALS, 0, 100, " %"},
                                            {"mJ", "energy", 'r', CTL_SIGNIFICANT, 3},
                                            {"cpus", "cpus", 'l'},
                                            {0}};

/* Return: owned: what ctl_print_rows() prints. */
static char *printed(const char *rows, int indent)
{
    json_t *list = json_loads(rows, 0, NULL);
    FILE *before = stdout;
    char *text = NULL;
    size_t bytes;

    stdout = open_memstream(&text, &bytes);
    ctl_print_rows(list, columns, indent);
    fclose(stdout);
    stdout = before;
    json_decref(list);
    return text;
}

TEST(rows_have_their_columns)
{
    base_autofree char *text = printed("[{\"name\": \"big\", \"busy\": 0.256, \"energy\": 12.345, "
                                       "\"cpus\": [0, 1]}, {\"name\": \"a\"}]",
                                       2);

    T_STR(text, "  name  busy    mJ  cpus\n"
                "  big   26 %  12.3  0,1\n"
                "  a        -     -  -\n");
}

TEST(no_rows_have_headings)
{
    base_autofree char *text = printed("[]", 0);

    T_STR(text, "name  busy  mJ  cpus\n");
}

TEST(a_number_may_be_unknown)
{
    json_t *o = json_pack("{s:f, s:s, s:n}", "ms", 1.25, "name", "x", "none");
    char text[32];

    T_STR(ctl_format(2.345, "%.2f ms", text, sizeof(text)), "2.35 ms");
    T_STR(ctl_format(NAN, "%.2f", text, sizeof(text)), "-");
    T_STR(ctl_format(INFINITY, "%.2f", text, sizeof(text)), "-");
    T_STR(ctl_known(o, "ms", "%.1f", text, sizeof(text)), "1.2");
    T_STR(ctl_known(o, "none", "%.1f", text, sizeof(text)), "-");
    T_TRUE(isnan(ctl_value(o, "name")) && isnan(ctl_value(o, "missing")));
    json_decref(o);
}

TEST(cpus_are_runs)
{
    static const struct {
        const char *list, *text;
    } cases[] = {{"[]", "-"}, {"[3]", "cpu3"}, {"[0, 1, 2, 5, 7, 8]", "cpu0-2,5,7-8"}};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        json_t *cpus = json_loads(cases[i].list, 0, NULL);
        char text[32];

        T_STR(ctl_cpus("cpu", cpus, text, sizeof(text)), cases[i].text);
        json_decref(cpus);
    }
}

TEST(counts_have_their_plural)
{
    T_STR(base_plural(0), "s");
    T_STR(base_plural(1), "");
    T_STR(base_plural(1.0), "");
    T_STR(base_plural((size_t)2), "s");
}

static bool head_of(const char *text, struct pnm *ret)
{
    return pnm_read((const uint8_t *)text, strlen(text), 0, ret);
}

TEST(heads_of_pixmaps)
{
    static const char *const broken[] = {
        "", "P6", "P4 1 1 255 x", "P6 1 1 255", "P5 x 1 255 y", "P6 1 -1", "P6 #1 1 255", "P61 1"};
    struct pnm p;

    T_TRUE(head_of("P5 # two\n# lines\n12\t\v34\r\n255\nxyz", &p));
    T_EQ(p.width, 12u);
    T_EQ(p.height, 34u);
    T_EQ(p.most, 255u);
    T_EQ(p.channels, 1u);
    T_EQ(p.pixels_at, 29u);
    T_TRUE(head_of("P6 1 2 65535 x", &p) && p.channels == 3 && p.most == 65535);
    for (size_t i = 0; i < base_array_count(broken); i++) {
        if (head_of(broken[i], &p)) {
            T_FAIL("\"%s\" is the head of a pixmap", broken[i]);
        }
    }
}

TEST_MAIN()
