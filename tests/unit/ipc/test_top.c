/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top without a terminal: rates, series, and what is drawn. */
#include <locale.h>

#include "apps/pipectl/top/top.h"
#include "tests/harness.h"

#define S BASE_NS_PER_S

static json_t *status_of(int pid, double uptime_s, const char *name, int answered, int dropped)
{
    return json_pack(
        "{s:s, s:s, s:i, s:f, s:[{s:s, s:i, s:s, s:f, s:{s:f}, s:{s:i, s:i, s:i, s:i}, "
        "s:[]}]}",
        "state", "serving", "version", "1", "pid", pid, "uptime_s", uptime_s, "models", "name",
        name, "units", 3, "plan", "0-2@big", "fps", 5.0, "latency_ms", "p99", 7.5, "frames",
        "admitted", answered + dropped, "answered", answered, "dropped", dropped, "failed", 0,
        "stages");
}

static void take(struct top *t, json_t *status, uint64_t now_ns)
{
    top_take(t, status, now_ns);
    json_decref(status);
}

static double rate(const struct top *t, const char *name, enum top_counter c)
{
    const struct top_model *m = top_find(t, name);

    return m ? m->rate[c] : -1;
}

TEST(rates_are_differences_by_the_daemons_clock)
{
    struct top t = TOP_NULL;

    take(&t, status_of(1, 10, "a", 100, 0), 50 * S);
    T_TRUE(isnan(rate(&t, "a", TOP_ANSWERED)));
    take(&t, status_of(1, 12, "a", 150, 4), 53 * S); /* the answer came a second late */
    T_NEAR(rate(&t, "a", TOP_ANSWERED), 25, 1e-9);
    T_NEAR(rate(&t, "a", TOP_DROPPED), 2, 1e-9);
    T_NEAR(rate(&t, "a", TOP_ADMITTED), 27, 1e-9);
    T_TRUE(isnan(rate(&t, "a", TOP_ROUTE_SENT))); /* no route */
    top_deinit(&t);
    top_deinit(&t);
}

TEST(a_restart_gives_no_rate_and_no_spike)
{
    struct top t = TOP_NULL;
    double series[TOP_SECONDS];

    take(&t, status_of(1, 10, "a", 1000, 0), 50 * S);
    take(&t, status_of(1, 11, "a", 1010, 0), 51 * S);
    take(&t, status_of(2, 12, "a", 2000, 0), 52 * S); /* another process, all is higher */
    T_TRUE(isnan(rate(&t, "a", TOP_ANSWERED)));
    take(&t, status_of(2, 13, "a", 2020, 0), 53 * S);
    T_NEAR(rate(&t, "a", TOP_ANSWERED), 20, 1e-9);
    take(&t, status_of(2, 14, "a", 5, 0), 54 * S); /* the same process; the model is a new one */
    T_TRUE(isnan(rate(&t, "a", TOP_ANSWERED)));
    T_TRUE(isnan(rate(&t, "a", TOP_DROPPED)));
    top_series(top_find(&t, "a"), 54 * S, series);
    T_TRUE(isnan(series[TOP_SECONDS - 1])); /* second 54 has just begun */
    T_TRUE(isnan(series[TOP_SECONDS - 2])); /* 53: the counters began again in it */
    T_NEAR(series[TOP_SECONDS - 3], 20, 1e-9);
    T_TRUE(isnan(series[TOP_SECONDS - 4])); /* 51: the restart */
    T_NEAR(series[TOP_SECONDS - 5], 10, 1e-9);
    top_deinit(&t);
}

TEST(a_route_that_is_new_leaves_the_other_rates)
{
    struct top t = TOP_NULL;
    json_t *one = status_of(1, 1, "a", 10, 0), *two = status_of(1, 2, "a", 30, 0);
    json_t *models[2] = {json_object_get(one, "models"), json_object_get(two, "models")};

    json_object_set_new(json_array_get(models[0], 0), "route",
                        json_pack("{s:i, s:i, s:i}", "sent", 50, "resent", 9, "returned", 1));
    json_object_set_new(json_array_get(models[1], 0), "route",
                        json_pack("{s:i, s:i, s:i}", "sent", 70, "resent", 2, "returned", 4));
    take(&t, one, 1 * S);
    take(&t, two, 2 * S);
    T_NEAR(rate(&t, "a", TOP_ANSWERED), 20, 1e-9);
    T_NEAR(rate(&t, "a", TOP_ROUTE_SENT), 20, 1e-9);
    T_TRUE(isnan(rate(&t, "a", TOP_ROUTE_RESENT)));
    T_NEAR(rate(&t, "a", TOP_ROUTE_RETURNED), 3, 1e-9);
    top_deinit(&t);
}

TEST(a_series_spreads_over_seconds_and_moves_on)
{
    struct top t = TOP_NULL;
    double series[TOP_SECONDS];

    take(&t, status_of(1, 10, "a", 0, 0), 100 * S + S / 2);
    take(&t, status_of(1, 13, "a", 30, 0), 103 * S + S / 2);
    top_series(top_find(&t, "a"), 103 * S + S / 2, series);
    for (size_t i = 0; i < 4; i++) {
        T_NEAR(series[TOP_SECONDS - 1 - i], 10, 1e-9);
    }
    T_TRUE(isnan(series[TOP_SECONDS - 5]));
    top_series(top_find(&t, "a"), 110 * S, series);
    T_TRUE(isnan(series[TOP_SECONDS - 1]));
    T_NEAR(series[TOP_SECONDS - 8], 10, 1e-9);
    top_series(top_find(&t, "a"), 164 * S, series);
    for (size_t i = 0; i < TOP_SECONDS; i++) {
        T_TRUE(isnan(series[i]));
    }
    /* a pause longer than the series fills it, and no more */
    take(&t, status_of(1, 1013, "a", 2030, 0), 1103 * S + S / 2);
    top_series(top_find(&t, "a"), 1103 * S + S / 2, series);
    T_NEAR(series[0], 2, 1e-9);
    T_NEAR(series[TOP_SECONDS - 1], 2, 1e-9);
    top_deinit(&t);
}

TEST(a_model_that_goes_is_forgotten_later)
{
    struct top t = TOP_NULL;

    take(&t, status_of(1, 10, "a", 0, 0), 10 * S);
    take(&t, status_of(1, 11, "a", 5, 0), 11 * S);
    take(&t, status_of(1, 12, "b", 5, 0), 12 * S);
    T_TRUE(top_find(&t, "a") != NULL);
    T_TRUE(top_status_of(&t, "a") == NULL);
    take(&t, status_of(1, 13, "a", 500, 0), 13 * S); /* back, but what was between is not known */
    T_TRUE(isnan(rate(&t, "a", TOP_ANSWERED)));
    take(&t, status_of(1, 99, "b", 5, 0), 99 * S);
    T_TRUE(top_find(&t, "a") == NULL);
    top_deinit(&t);
}

TEST(objects_are_sorted_and_unknown_values_are_last)
{
    json_t *list = json_pack("[{s:s, s:f}, {s:s, s:n}, {s:s, s:f}, {s:s, s:f}]", "n", "a", "x", 1.0,
                             "n", "b", "x", "n", "c", "x", 3.0, "n", "d", "x", 1.0);
    static const char *const wanted[] = {"c", "a", "d", "b"};
    json_t *sorted = top_sorted(list, TOP_BY_LOAD, "x", "y.z");

    for (size_t i = 0; i < 4; i++) {
        T_STR(json_string_value(json_object_get(json_array_get(sorted, i), "n")), wanted[i]);
    }
    json_decref(sorted);
    sorted = top_sorted(NULL, TOP_BY_TIME, "x", "y.z");
    T_EQ(json_array_size(sorted), 0);
    json_decref(sorted);
    json_decref(list);
    T_NEAR(top_off(1.5, 1), 0.5, 1e-12);
    T_TRUE(isnan(top_off(1, 0)));
    T_TRUE(isnan(top_off(NAN, 1)));
}

/* ---- the screen ---- */

static char *text_of(const struct top_screen *s)
{
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    top_screen_print(s, to);
    fclose(to);
    return text;
}

static void draws(bool ascii, size_t columns, const char *text, const char *wanted)
{
    struct top_screen s;
    char *got;

    T_EQ(top_screen_init(&s, 2, columns, ascii), 0);
    top_put(&s, TOP_PLAIN, "%s", text);
    got = text_of(&s);
    T_STR(got, wanted);
    free(got);
    top_screen_deinit(&s);
    top_screen_deinit(&s);
}

TEST(only_printable_characters_reach_a_cell)
{
    T_TRUE(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
    draws(false, 20, "a\033[2Jb\a\r\n\tc\177", "a?[2Jb????c?\n");
    draws(false, 20, "\302\233x\342\200\256y\314\201z", "?x?y?z\n"); /* C1, bidi, combining */
    draws(false, 20, "\377\300\200\355\240", "?????\n");             /* not UTF-8 */
    draws(false, 20, "\346\242\205 n\303\251", "\346\242\205 n\303\251\n");
    draws(true, 20, "\346\242\205 n\303\251", "? n?\n");
}

TEST(text_ends_at_the_border_and_wide_characters_are_not_cut)
{
    T_TRUE(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
    draws(false, 4, "abcdef", "abc~\n");
    draws(false, 4, "abcd  ", "abcd\n");
    draws(false, 4, "abc\346\242\205", "abc~\n");
    draws(false, 4, "ab\346\242\205c", "ab ~\n");
    draws(false, 5, "abc\346\242\205", "abc\346\242\205\n");
    draws(false, 1, "", "");
}

TEST(bars_and_curves)
{
    static const double values[] = {0, 1, 4, 8, NAN, 20};
    struct top_screen s;
    char *got;

    T_EQ(top_screen_init(&s, 4, 12, false), 0);
    top_put_bar(&s, TOP_PLAIN, 0.5, 3);
    top_put(&s, TOP_PLAIN, "|");
    top_line(&s);
    top_put_curve(&s, TOP_PLAIN, values, 6, 8);
    top_line(&s);
    top_put_bar(&s, TOP_PLAIN, 7, 2);
    top_put_bar(&s, TOP_PLAIN, -1, 2);
    top_put_bar(&s, TOP_PLAIN, NAN, 2);
    top_put(&s, TOP_PLAIN, "|");
    got = text_of(&s);
    T_STR(got, "\u2588\u258c |\n\u2581\u2581\u2584\u2588 \u2588\n\u2588\u2588    |\n");
    free(got);
    top_screen_clear(&s);
    s.ascii = true;
    top_put_bar(&s, TOP_PLAIN, 0.5, 4);
    top_put(&s, TOP_PLAIN, "|");
    top_put_curve(&s, TOP_PLAIN, values, 6, 8);
    got = text_of(&s);
    T_STR(got, "##  |__-# #\n");
    free(got);
    top_screen_deinit(&s);
}

TEST(a_table_leaves_out_columns)
{
    static const struct top_column columns[] = {
        {"name", 'l', 0}, {"busy", 'b', 1}, {"", 'r', 0}, {"never", 'r', 0}, {"more", 'l', 2}};
    static const struct {
        size_t columns;
        const char *wanted;
    } cases[] = {
        {40, "name  busy             more\none   #####      50 %  text\n"},
        {24, "name  busy\none   #####      50 %\n"},
        {12, "name  busy\none   50 %\n"},
        {8, "name  b~\none   5~\n"},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        struct top_screen s;
        struct top_table t = {columns, base_array_count(columns)};
        char *got;

        T_EQ(top_screen_init(&s, 4, cases[i].columns, true), 0);
        top_table_text(&t, TOP_PLAIN, "one");
        top_table_bar(&t, TOP_PLAIN, 0.5);
        top_table_value(&t, TOP_PLAIN, "%.0f %%", 50);
        top_table_value(&t, TOP_PLAIN, "%.1f", NAN);
        top_table_text(&t, TOP_PLAIN, "text");
        top_table_draw(&t, &s);
        got = text_of(&s);
        T_STR(got, cases[i].wanted);
        free(got);
        top_screen_clear(&s);
        t = (struct top_table){columns, base_array_count(columns)};
        top_table_draw(&t, &s);
        T_EQ(top_screen_used(&s), 0);
        top_screen_deinit(&s);
    }
}

TEST(every_size_of_screen_can_be_drawn)
{
    struct top t = TOP_NULL;

    take(&t, status_of(1, 1, "a", 0, 0), 1 * S);
    for (size_t rows = 0; rows < 30; rows++) {
        for (size_t columns = 0; columns < 90; columns += 1 + columns / 8) {
            for (int page = TOP_PAGE_MODEL; page <= TOP_PAGE_HELP; page++) {
                struct top_view v = {.top = &t, .model = "a", .page = page, .scroll = 999};
                struct top_screen s;

                T_EQ(top_screen_init(&s, rows, columns, rows % 2), 0);
                v.now_ns = 1 * S;
                top_draw(&v, &s);
                T_TRUE(top_screen_used(&s) <= rows);
                T_TRUE(v.scroll < 30);
                top_screen_deinit(&s);
            }
        }
    }
    top_deinit(&t);
}

TEST_MAIN()
