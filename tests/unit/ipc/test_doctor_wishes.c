/* SPDX-License-Identifier: Apache-2.0 */
/* What pipectl doctor finds of rates and deadlines that models are to have. */
#include "apps/pipectl/doctor/doctor.h"
#include "tests/harness.h"
#include "tests/unit/ipc/calm_sample.h"

/* Three models on two EPs that can have 0.6 of their rates. @costs: part of what limits the plan
 * that net has. */
static json_t *wishing(const char *costs, const char *refused)
{
    json_t *s = calm();
    char mix[1024];

    snprintf(mix, sizeof(mix),
             "{'rates': true, 'of_wishes': 0.6, 'models': [{'model': 'net', 'wished': 61,"
             " 'costs': %s}, {'model': 'b', 'wished': 0, 'costs': 0.95}, {'model': 'c', 'wished':"
             " 7, 'costs': 0.1}], 'cores': [{'ep': 'big', 'limits': 0.9}, {'ep': 'little',"
             " 'limits': 0.1}], 'refused': %s}",
             costs, refused);
    set(s, "after.mix", mix);
    set(s, "after.models.0.wishes", "{'rate': 61, 'deadline_ms': 40, 'class': 2}");
    json_array_append_new(json_object_get(json_object_get(s, "after"), "models"),
                          json_of("{'name': 'c', 'wishes': {'rate': 7, 'class': 0}}"));
    return s;
}

/* The only finding is @name with these words and this advice; frees the sample. */
static void advises(json_t *s, const char *name, double share, const char *words,
                    const char *advice)
{
    json_t *found = doctor_judge(s);

    T_STR(text_of(json_array_get(found, 0), "advice"), advice);
    json_decref(found);
    finds(s, name, share, words);
}

TEST(the_wish_that_costs_most_is_named)
{
    json_t *s = wishing("0.8", "null");

    set(s, "after.mix.of_wishes", "0.991");
    finds_nothing(s);
    advises(wishing("0.8", "null"), "wishes", 0.4,
            "Not all rates can be kept: 60.0 % of each can. What net is to have, 61 frames/s, "
            "costs most: 80 % of big, which limits the plan.",
            "With less of it all others can be kept: pipectl models set net --rate 29.8.");
    advises(wishing("0.4", "null"), "wishes", 0.4, "costs most: 40 % of big",
            "Wish less of several models: without net the others can have 100 % of theirs. With "
            "59 % of each rate all can be kept: pipectl models set net --rate 35.8, and so on.");
}

TEST(a_deadline_that_is_refused_names_who_breaks_it)
{
    static const char *const cases[][3] = {
        {"unit", "c", ", or keep c off these cores: pipectl plan set --model c"},
        {"demand", "c", ", or wish less of c: pipectl models set c --rate 3.5"},
        {"demand", "net", ", or wish less of net: pipectl models set net --rate 30.5"},
        {"unit", "net", ""}};

    for (size_t i = 0; i < base_array_count(cases); i++) {
        char refused[256], advice[256];
        json_t *s;

        snprintf(
            refused, sizeof(refused),
            "{'late': 'net', 'why': '%s', 'model': '%s', 'text': 'Frames of net may be late.'}",
            cases[i][0], cases[i][1]);
        s = wishing("0.8", refused);
        set(s, "after.mix.of_wishes", "1.0");
        snprintf(advice, sizeof(advice),
                 "Give net more time: pipectl models set net --deadline 80%s. The answer says "
                 "whether that is enough.",
                 cases[i][2]);
        advises(s, "wishes", -1, "A deadline may be missed. Frames of net may be late.", advice);
    }
}

TEST(that_rates_are_too_much_is_said_once)
{
    finds(wishing("0.8", "{'late': 'net', 'why': 'load', 'model': 'net', 'text': 'Load.'}"),
          "wishes", 0.4, "Not all rates");
}

/* Return: a model of 100 frames/s, of which @late of 200 were late. */
static json_t *being_late(const char *late, const char *rate, const char *class)
{
    json_t *s = calm();

    set(s, "before.models.0.frames.due", "50");
    set(s, "before.models.0.frames.late", "1");
    set(s, "after.models.0.frames.due", "250");
    set(s, "after.models.0.frames.late", late);
    set(s, "after.models.0.wishes", "{'deadline_ms': 40}");
    set(s, "after.models.0.wishes.rate", rate);
    set(s, "after.models.0.wishes.class", class);
    json_array_append_new(json_object_get(json_object_get(s, "after"), "models"),
                          json_of("{'name': 'c', 'wishes': {'rate': 7, 'class': 2}}"));
    return s;
}

TEST(late_frames_are_told_and_why)
{
    const char *words = "50 of 200 frames were answered later than the 40 ms that are wished.";

    finds_nothing(being_late("1", "100", "0"));
    advises(being_late("51", "60", "0"), "late", 0.25, words,
            "100.0 frames/s came, and it is to have 60: send fewer, or wish more: pipectl models "
            "set net --rate 100.");
    advises(being_late("51", "100", "2"), "late", 0.25, words,
            "Let it go before others: pipectl models set net --class 3. Or give it more time: "
            "pipectl models set net --deadline 48; 99 % of its frames take at most 15.25 ms. "
            "pipectl plan mix says whether all deadlines can be kept.");
    advises(being_late("51", "100", "3"), "late", 0.25, words,
            "Give it more time: pipectl models set net --deadline 48; 99 % of its frames take at "
            "most 15.25 ms. pipectl plan mix says whether all deadlines can be kept.");
}
