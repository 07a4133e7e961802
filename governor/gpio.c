/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/gpio.h"
#include "base/base.h"

void gov_debounce_init(struct gov_debounce *d, uint64_t hold_ns, bool active, uint64_t now_ns)
{
    *d = (struct gov_debounce){
        .hold_ns = hold_ns, .since_ns = now_ns, .seen = active, .settled = active};
}

bool gov_debounce_feed(struct gov_debounce *d, bool active, uint64_t now_ns)
{
    bool before = d->settled;

    now_ns = base_max(now_ns, d->since_ns);
    /* What was seen until now has held until now, whatever comes next. */
    if (now_ns - d->since_ns >= d->hold_ns) {
        d->settled = d->seen;
    }
    if (active != d->seen) {
        d->seen = active;
        d->since_ns = now_ns;
        if (d->hold_ns == 0) {
            d->settled = active;
        }
    }
    return d->settled != before;
}

uint64_t gov_debounce_due(const struct gov_debounce *d)
{
    return d->seen == d->settled ? 0 : d->since_ns + d->hold_ns;
}

bool gov_led_at(enum gov_led pattern, uint64_t since_ns, uint64_t now_ns, uint64_t *ret_next_ns)
{
    static const struct {
        uint64_t on_ns, period_ns;
    } blinks[] = {
        [GOV_LED_SLOW] = {500 * BASE_NS_PER_MS, BASE_NS_PER_S},
        [GOV_LED_FAST] = {125 * BASE_NS_PER_MS, 250 * BASE_NS_PER_MS},
        [GOV_LED_FLASH] = {125 * BASE_NS_PER_MS, BASE_NS_PER_S},
    };
    uint64_t into;
    bool lit;

    *ret_next_ns = 0;
    if (pattern == GOV_LED_DARK || pattern == GOV_LED_ON) {
        return pattern == GOV_LED_ON;
    }
    into = now_ns > since_ns ? (now_ns - since_ns) % blinks[pattern].period_ns : 0;
    lit = into < blinks[pattern].on_ns;
    *ret_next_ns = now_ns + (lit ? blinks[pattern].on_ns : blinks[pattern].period_ns) - into;
    return lit;
}

const char *const gov_led_names[] = {"dark", "on", "slow", "fast", "flash"};

const char *gov_gpio_outcome(int outcome)
{
    switch (outcome) {
    case GOV_GPIO_E_OFF:
        return "built without libgpiod";
    case GOV_GPIO_E_ABSENT:
        return "no such chip";
    case GOV_GPIO_E_DENIED:
        return "permission denied";
    case GOV_GPIO_E_LINE:
        return "the chip has no line of that number";
    case GOV_GPIO_E_BUSY:
        return "a line is used by another program or driver";
    default:
        return "unknown";
    }
}
