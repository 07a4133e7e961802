/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/gpio_logic.h - what lines mean: debouncing, blinking, and why an open failed
 *
 * Needs no library. Time is an argument, in nanoseconds of the monotonic clock, so a test scripts
 * it. Threads: one at a time for each struct; no global state.
 */
#pragma once

#include "governor/gpio.h"

/** gov_gpio_outcome() - what a positive outcome of gov_gpio_open() means. Static. */
const char *gov_gpio_outcome(int outcome);

/*
 * Debouncing: a level counts once it has held for hold_ns. Edges closer together than that are a
 * bouncing contact, or noise.
 */
struct gov_debounce {
    uint64_t hold_ns;
    uint64_t since_ns; /* of seen */
    bool seen, settled;
};
/** gov_debounce_init() - @active: the level now, which counts from here on. */
void gov_debounce_init(struct gov_debounce *d, uint64_t hold_ns, bool active, uint64_t now_ns);
/**
 * gov_debounce_feed() - an edge, or the level read at @now_ns
 * A time before that of the last call counts as that one: clocks jump, settled levels do not.
 * Return: did d->settled change.
 */
bool gov_debounce_feed(struct gov_debounce *d, bool active, uint64_t now_ns);
/** gov_debounce_due() - when to feed the level again, should no edge come; 0: no need. */
uint64_t gov_debounce_due(const struct gov_debounce *d);

/* What the LED shows. */
enum gov_led {
    GOV_LED_DARK,  /* not serving */
    GOV_LED_ON,    /* serving: steady */
    GOV_LED_SLOW,  /* tuning: half a second on, half a second off */
    GOV_LED_FAST,  /* degraded: an eighth on, an eighth off */
    GOV_LED_FLASH, /* draining: an eighth on, the rest of a second off */
};
/** gov_led_at() - Return: it is lit at @now_ns. @since_ns: when the pattern began (lit).
 * @ret_next_ns: when that changes; 0: never. */
bool gov_led_at(enum gov_led pattern, uint64_t since_ns, uint64_t now_ns, uint64_t *ret_next_ns);
/** gov_led_name() - "dark", "on", "slow", "fast", "flash". Static. */
const char *gov_led_name(enum gov_led pattern);
