/* SPDX-License-Identifier: Apache-2.0 */
/* Debouncing and blinking on a scripted clock; opening what is not there. */
#include "base/base.h"
#include "governor/gpio.h"
#include "tests/harness.h"

#define MS BASE_NS_PER_MS

TEST(a_level_counts_once_it_held)
{
    struct gov_debounce d;

    gov_debounce_init(&d, 30 * MS, false, 100 * MS);
    T_EQ(gov_debounce_due(&d), 0);
    T_TRUE(!gov_debounce_feed(&d, true, 200 * MS));
    T_EQ(gov_debounce_due(&d), 230 * MS);
    T_TRUE(!gov_debounce_feed(&d, true, 229 * MS));
    T_TRUE(!d.settled);
    T_TRUE(gov_debounce_feed(&d, true, 230 * MS));
    T_TRUE(d.settled);
    T_EQ(gov_debounce_due(&d), 0);
}

TEST(bouncing_contacts_count_once)
{
    struct gov_debounce d;
    int changes = 0;

    gov_debounce_init(&d, 30 * MS, false, 0);
    for (uint64_t t = 100; t < 120; t++) {
        changes += gov_debounce_feed(&d, t % 2 == 0, t * MS);
    }
    changes += gov_debounce_feed(&d, true, 120 * MS);
    T_EQ(changes, 0);
    changes += gov_debounce_feed(&d, true, gov_debounce_due(&d));
    T_EQ(changes, 1);
    T_TRUE(d.settled);
}

TEST(a_spike_is_noise)
{
    struct gov_debounce d;

    gov_debounce_init(&d, 30 * MS, false, 0);
    T_TRUE(!gov_debounce_feed(&d, true, 100 * MS));
    T_TRUE(!gov_debounce_feed(&d, false, 129 * MS));
    T_TRUE(!gov_debounce_feed(&d, false, 900 * MS));
    T_EQ(gov_debounce_due(&d), 0);
}

/* Both edges are read together, late: the press held for its time and counts. */
TEST(a_press_that_is_read_late_is_not_lost)
{
    struct gov_debounce d;

    gov_debounce_init(&d, 30 * MS, false, 0);
    T_TRUE(!gov_debounce_feed(&d, true, 100 * MS));
    T_TRUE(gov_debounce_feed(&d, false, 140 * MS));
    T_TRUE(d.settled);
    T_EQ(gov_debounce_due(&d), 170 * MS);
    T_TRUE(gov_debounce_feed(&d, false, 170 * MS));
    T_TRUE(!d.settled);
}

TEST(no_debouncing_is_possible)
{
    struct gov_debounce d;

    gov_debounce_init(&d, 0, true, 5);
    T_TRUE(gov_debounce_feed(&d, false, 5));
    T_TRUE(gov_debounce_feed(&d, true, 6));
    T_TRUE(!gov_debounce_feed(&d, true, 7));
    T_EQ(gov_debounce_due(&d), 0);
}

TEST(clocks_may_jump)
{
    struct gov_debounce d;

    gov_debounce_init(&d, 30 * MS, false, 1000 * MS);
    T_TRUE(!gov_debounce_feed(&d, true, 10 * MS)); /* back: counts as 1000 */
    T_EQ(gov_debounce_due(&d), 1030 * MS);
    T_TRUE(!gov_debounce_feed(&d, true, 0));
    T_TRUE(gov_debounce_feed(&d, true, UINT64_MAX)); /* forward */
    T_TRUE(d.settled);
}

/* Whatever comes, a settled change is at least hold_ns after what was seen before it. */
TEST(settled_levels_always_held)
{
    for (int round = 0; round < 200; round++) {
        uint64_t hold = (uint64_t)t_range(1, 50), now = 0, since = 0;
        struct gov_debounce d;
        bool level = false, reported = false;

        gov_debounce_init(&d, hold, false, 0);
        for (int i = 0; i < 500; i++) {
            bool next = t_range(0, 1) == 1, held;

            now += (uint64_t)t_range(0, 40);
            held = now - since >= hold;
            if (gov_debounce_feed(&d, next, now)) {
                T_TRUE(held);
                T_EQ(d.settled, level);
                T_NE(d.settled, reported);
                reported = d.settled;
            }
            if (next != level) {
                level = next;
                since = now;
            }
        }
    }
}

TEST(steady_patterns_never_change)
{
    uint64_t next = 1;

    T_TRUE(gov_led_at(GOV_LED_ON, 0, 123456, &next));
    T_EQ(next, 0);
    T_TRUE(!gov_led_at(GOV_LED_DARK, 0, 123456, &next));
    T_EQ(next, 0);
}

static void blinks(enum gov_led pattern, uint64_t on_ms, uint64_t off_ms)
{
    uint64_t since = 777, now = since, next;

    for (int i = 0; i < 5; i++) {
        T_TRUE(gov_led_at(pattern, since, now, &next));
        T_EQ(next - now, on_ms * MS);
        T_TRUE(gov_led_at(pattern, since, next - 1, &now));
        T_EQ(now, next);
        T_TRUE(!gov_led_at(pattern, since, now, &next));
        T_EQ(next - now, off_ms * MS);
        now = next;
    }
    T_TRUE(gov_led_at(pattern, since, 0, &next)); /* a clock that went back */
}

TEST(blinking_has_its_times)
{
    blinks(GOV_LED_SLOW, 500, 500);
    blinks(GOV_LED_FAST, 125, 125);
    blinks(GOV_LED_FLASH, 125, 875);
}

TEST(names)
{
    T_STR(gov_led_names[GOV_LED_FLASH], "flash");
    T_STR(gov_gpio_outcome(GOV_GPIO_E_DENIED), "permission denied");
    T_STR(gov_gpio_outcome(999), "unknown");
}

/* Anything a configuration may name. */
TEST(what_is_no_chip_cannot_be_opened)
{
    static const char *const chips[] = {"",       "no such chip", "/dev/null",         "/",
                                        "../etc", "gpiochip9999", "/dev/gpiochip9999", "99999"};
    size_t off = 0;

    for (size_t i = 0; i < base_array_count(chips); i++) {
        struct gov_gpio *g = NULL;
        int outcome = gov_gpio_open(
            &(struct gov_gpio_config){.chip = chips[i], .lines = {{-1}, {-1}, {-1}}}, &g);

        off += outcome == GOV_GPIO_E_OFF;
        if (outcome <= 0) {
            T_FAIL("\"%s\": %d", chips[i], outcome);
        }
        T_TRUE(g == NULL);
    }
    T_TRUE(off == 0 || off == base_array_count(chips)); /* a build without libgpiod opens none */
    T_TRUE(gov_gpio_close(NULL) == NULL);
}

TEST_MAIN()
