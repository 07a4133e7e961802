/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/gpio.h - up to three lines of one GPIO chip: a button, a power or throttle line, an LED;
 * and what lines mean: debouncing, blinking, and why an open failed
 *
 * One interface to the chip, three implementations, of which the build links one: libgpiod 1.x
 * (gpio_v1.c), libgpiod 2.x (gpio_v2.c), none (gpio_none.c: every open is GOV_GPIO_E_OFF).
 *
 * Invariant: a call returns whatever happens to the chip (missing, not permitted, lines taken by
 * another program, unplugged while open). The owner closes a chip that failed and opens it again
 * later. Nothing here blocks: descriptors do not, and the kernel answers the rest at once.
 *
 * Threads: one at a time for each struct; no global state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gov_gpio_line { GOV_GPIO_BUTTON, GOV_GPIO_POWER, GOV_GPIO_LED, GOV_GPIO_LINE_COUNT };

#define GOV_GPIO_NAME_MAX 64u
#define GOV_GPIO_OFFSET_MAX 65535

struct gov_gpio_config {
    /* "/dev/gpiochip0", "gpiochip0", or the label, which stays when numbers move */
    const char *chip;
    struct {
        int32_t offset; /* -1: this line is not used */
        bool active_low;
    } lines[GOV_GPIO_LINE_COUNT];
};

struct gov_gpio;

struct gov_gpio_edge {
    bool active;    /* the level after it, active-low already undone */
    uint64_t at_ns; /* of the kernel, monotonic */
};

enum {
    GOV_GPIO_E_OFF = 1, /* built without libgpiod */
    GOV_GPIO_E_ABSENT,  /* no such chip */
    GOV_GPIO_E_DENIED,  /* it may not be opened */
    GOV_GPIO_E_LINE,    /* the chip has no line of that number */
    GOV_GPIO_E_BUSY,    /* somebody else uses a line */
};

/* ---- the chip ---- */

/**
 * gov_gpio_open() - opens the chip and takes its lines: inputs with both edges, the LED dark
 * @c: borrowed for the call. @ret: owned, gov_gpio_close(). May allocate.
 * Return: 0, one of GOV_GPIO_E_*, -ENOMEM or -errno.
 */
int gov_gpio_open(const struct gov_gpio_config *c, struct gov_gpio **ret);
/** gov_gpio_close() - gives the lines back; NULL is accepted. Return: NULL. */
struct gov_gpio *gov_gpio_close(struct gov_gpio *g);
/** gov_gpio_outcome() - what a positive outcome of gov_gpio_open() means. Static. */
const char *gov_gpio_outcome(int outcome);
/** gov_gpio_chip() - "gpiochip0" and its label; borrowed until the close. */
const char *gov_gpio_chip(const struct gov_gpio *g);

/** gov_gpio_fd() - readable when @line, an input, has edges; borrowed. Return: -1: not used. */
int gov_gpio_fd(const struct gov_gpio *g, enum gov_gpio_line line);
/** gov_gpio_edges() - takes what is there, oldest first. Return: how many, 0 to @max, or -errno:
 * the chip is gone. */
int gov_gpio_edges(struct gov_gpio *g, enum gov_gpio_line line, struct gov_gpio_edge *ret,
                   size_t max);
/** gov_gpio_get() - the level now. Return: 0; -ENOENT: not used; -errno: the chip is gone. */
int gov_gpio_get(struct gov_gpio *g, enum gov_gpio_line line, bool *ret_active);
/** gov_gpio_set() - drives an output. Return: as gov_gpio_get(). */
int gov_gpio_set(struct gov_gpio *g, enum gov_gpio_line line, bool active);

/* ---- what lines mean (gpio.c) ----
 *
 * Needs no library. Time is an argument, in nanoseconds of the monotonic clock, so a test scripts
 * it.
 */

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
/* By enum gov_led; "dark", "on", "slow", "fast", "flash". */
extern const char *const gov_led_names[];
