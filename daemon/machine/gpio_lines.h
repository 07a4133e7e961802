/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/machine/gpio_lines.h - the button, the power line and the LED, on the daemon's loop
 *
 * The configured chip (gpio.chip) is opened when the daemon starts. While it is missing, not
 * permitted or unplugged, the daemon tries again every second. Listeners learn of button presses
 * and of changes of the power line. The LED shows what dmn_gpio_show() sets and is dark while the
 * daemon does not run.
 *
 * Invariant: no GPIO failure stops the daemon. The log gets one line each time the problem changes,
 * and status shows which values are unknown. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "governor/gpio_logic.h"

struct dmn_machine;

/* Each function may be NULL. */
struct dmn_gpio_listener {
    void *ctx;
    void (*pressed)(void *ctx);
    /* The line changed or was read for the first time. @active: power is limited. */
    void (*power)(void *ctx, bool active);
    struct dmn_gpio_listener *next; /* in the list */
};

/** dmn_gpio_start() - sets m->gpio, or leaves it NULL if the configuration names no line. @led: its
 * first state. */
void dmn_gpio_start(struct dmn_machine *m, enum gov_led led);
/** dmn_gpio_stop() - turns the LED off and releases the lines; the loop must run once more. */
void dmn_gpio_stop(struct dmn_machine *m);
/** dmn_gpio_listen() - adds @l behind earlier listeners; it must live until the end. A listener
 * that is added before dmn_gpio_start() is also told of a line that is already active. */
void dmn_gpio_listen(struct dmn_machine *m, struct dmn_gpio_listener *l);
/** dmn_gpio_show() - sets what the LED shows. Cheap. */
void dmn_gpio_show(struct dmn_machine *m, enum gov_led led);

/* What is known of the lines. Texts are borrowed until the loop's next turn. */
struct dmn_gpio_state {
    bool open;           /* the chip is open */
    const char *chip;    /* its name, or the configured name */
    const char *problem; /* the latest problem; "": none */
    uint64_t opened;     /* how often the chip was opened */
    bool has_button, pressed;
    uint64_t presses;
    bool power_known, power; /* power: limited */
    bool has_led;            /* the chip is open and has an LED */
    enum gov_led led;
};
/** dmn_gpio_state() - Return: true with @ret set; false: no line is configured. */
bool dmn_gpio_state(const struct dmn_machine *m, struct dmn_gpio_state *ret);
