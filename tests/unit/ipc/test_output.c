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

static const struct cli_column columns[] = {{"name", "name", 'l'},
                                            {"busy", "busy", 'r', CLI_DECIMALS, 0, 100, " %"},
                                            {"mJ", "energy", 'r', CLI_SIGNIFICANT, 3},
                                            {"cpus", "cpus", 'l'},
                                            {0}};

/* Return: owned: what cli_print_rows() prints. */
static char *printed(const char *rows)
{
    json_t *list = json_loads(rows, 0, NULL);
    FILE *before = stdout;
    char *text = NULL;
    size_t bytes;

    stdout = open_memstream(&text, &bytes);
    cli_print_rows(list, columns);
    fclose(stdout);
    stdout = before;
    json_decref(list);
    return text;
}

TEST(rows_have_their_columns)
{
    base_autofree char *text = printed("[{\"name\": \"big\", \"busy\": 0.256, \"energy\": 12.345, "
                                       "\"cpus\": [0, 1]}, {\"name\": \"a\"}]");

    T_STR(text, "name  busy    mJ  cpus\n"
                "big   26 %  12.3  0,1\n"
                "a        -     -  -\n");
}

/* Return: new: a plan for two models on two EPs. */
static json_t *mix_of(double big, double little, const char *objective)
{
    return json_pack(
        "{s:[{s:s, s:f, s:f, s:{s:f, s:f}}, {}], s:[{s:s, s:f}, {s:s, s:f}], s:s, s:f, "
        "s:f, s:b, s:f}",
        "models", "model", "a", "rate", 60.04, "served_bound_ms", 18.12, "busy", "big", 0.42,
        "little", 0.004, "cores", "ep", "big", "limits", big, "ep", "little", "limits", little,
        "objective", objective, "of_bound", 0.972, "served_of_bound", 0.968, "rates", true,
        "of_wishes", 0.5);
}

TEST(a_plan_for_all_models_is_told)
{
    json_t *mix = mix_of(0.9, 0.1, "fair");
    json_t *row = json_array_get(json_object_get(mix, "models"), 0);

    T_STR(ctl_mix_reaches(mix).text, "One plan for 2 models reaches 96.8 % of what these cores "
                                     "could ever do; big limits it.");
    T_STR(ctl_mix_gives(row).text, "60.0 frames/s, each within 18.1 ms, with 42 % of big");
    T_STR(ctl_mix_keeps(mix).text, "Not all rates can be kept: 50.0 % of each can. ");
    json_object_set_new(mix, "of_wishes", json_real(1));
    json_object_set_new(mix, "deadlines", json_true());
    T_STR(ctl_mix_keeps(mix).text,
          "All rates can be kept. All deadlines can be kept by one plan for all models.");
    json_object_set_new(mix, "serves", json_true());
    T_STR(ctl_mix_keeps(mix).text, "All rates can be kept. All deadlines can be kept.");
    json_object_set_new(mix, "refused", json_pack("{s:s}", "text", "Frames of a may be late."));
    T_STR(ctl_mix_keeps(mix).text, "All rates can be kept. Frames of a may be late.");
    json_object_set_new(row, "served_bound_ms", json_real(0.0812));
    json_object_set_new(row, "busy", json_object());
    T_STR(ctl_mix_gives(row).text, "60.0 frames/s, each within 0.081 ms");
    json_decref(mix);
}

TEST(what_limits_about_equally_is_named_together)
{
    json_t *mix = mix_of(0.45, 0.55, "energy");

    T_STR(ctl_mix_reaches(mix).text,
          "One plan for 2 models reaches 96.8 % of what these cores "
          "could ever do for the least energy; big and little limit it.");
    json_object_set_new(mix, "objective", json_string("soonest"));
    json_object_set_new(mix, "served_of_bound", json_null());
    json_array_remove(json_object_get(mix, "cores"), 1);
    T_STR(ctl_mix_reaches(mix).text, "One plan for 2 models could reach 97.2 % of what these cores "
                                     "could ever do for the least latency.");
    json_decref(mix);
}

TEST(a_table_is_indented_as_a_whole)
{
    struct cli_table t = {.align = "lr", .indent = 2};
    FILE *before = stdout;
    base_autofree char *text = NULL;
    size_t bytes;

    stdout = open_memstream(&text, &bytes);
    cli_table_add(&t, "name\tMHz");
    cli_table_add(&t, "%s\t%d", "big", 1800);
    cli_table_print(&t);
    fclose(stdout);
    stdout = before;
    T_STR(text, "  name   MHz\n"
                "  big   1800\n");
}

TEST(no_rows_have_headings)
{
    base_autofree char *text = printed("[]");

    T_STR(text, "name  busy  mJ  cpus\n");
}

TEST(a_number_may_be_unknown)
{
    json_t *o = json_pack("{s:f, s:s, s:n}", "ms", 1.25, "name", "x", "none");
    struct ctl_word text;

    text = ctl_format(2.345, "%.2f ms");
    T_STR(text.text, "2.35 ms");
    text = ctl_format(NAN, "%.2f");
    T_STR(text.text, "-");
    text = ctl_format(INFINITY, "%.2f");
    T_STR(text.text, "-");
    text = ctl_known(o, "ms", "%.1f");
    T_STR(text.text, "1.2");
    text = ctl_known(o, "none", "%.1f");
    T_STR(text.text, "-");
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
        struct ctl_word text = ctl_cpus("cpu", cpus);

        T_STR(text.text, cases[i].text);
        json_decref(cpus);
    }
}

TEST(fields_have_paths)
{
    json_t *o = json_loads("{\"a\": {\"b\": {\"c\": 2.5, \"d\": true}}, \"t\": \"x\"}", 0, NULL);

    T_TRUE(ctl_real(o, "a.b.c") == 2.5 && ctl_has(o, "a.b.c") && !ctl_has(o, "a.b.d"));
    T_TRUE(ctl_is(o, "a.b.d") && !ctl_is(o, "a.b.c") && !ctl_is(o, "a.x.d"));
    T_TRUE(!json_text_at(o, "a.b.e") && !json_text_at(o, "t.x") && !json_text_at(NULL, "a"));
    T_STR(ctl_text(o, "t"), "x");
    T_STR(ctl_text(o, "a.b"), "-");
    json_decref(o);
}

TEST(the_largest_come_first)
{
    json_t *list = json_loads("[{\"n\": 1, \"v\": {\"ms\": 2}}, {\"n\": 2}, {\"n\": 3, \"v\": "
                              "{\"ms\": 5}}, {\"n\": 4, \"v\": {\"ms\": 2}}]",
                              0, NULL);
    json_t *sorted = ctl_sorted(list, "v.ms"), *one;
    static const double order[] = {3, 1, 4, 2};
    size_t i;

    json_array_foreach(sorted, i, one)
    {
        T_TRUE(ctl_real(one, "n") == order[i]);
    }
    T_TRUE(i == 4);
    json_decref(sorted);
    json_decref(list);
}

TEST(what_does_not_fit_is_cut)
{
    char text[8] = "ab";

    base_append(text, sizeof(text), "%s", "cde");
    T_STR(text, "abcde");
    base_append(text, sizeof(text), "%d", 12345);
    base_append(text, sizeof(text), "x");
    T_STR(text, "abcde12");
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
