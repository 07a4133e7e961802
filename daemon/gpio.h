/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/gpio.h - button, power line and LED at the daemon's loop
 *
 * The chip of the configuration (gpio.chip) is opened when the daemon starts and again every second
 * while it is not there, may not be opened, or was pulled out. A press of the button retunes every
 * model (cause "gpio"); the power line is told to whoever listens and leaves an event in the
 * history; the LED shows the daemon's state: steady while it serves, slow blinking while it tunes,
 * fast while it is degraded, a flash a second while it drains, dark when it is not there.
 *
 * Invariant: nothing that GPIO does or lacks stops the daemon: one line in the log for each change
 * of what is wrong, and status says what is unknown. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct dmn_daemon;
struct dmn_gpio;

/* The power line changed, or is known for the first time; @active: limited, as its name says. */
typedef void (*dmn_gpio_power_fn)(struct dmn_daemon *d, bool active);

/** dmn_gpio_start() - into d->gpio, which stays NULL where the configuration names no line. */
void dmn_gpio_start(struct dmn_daemon *d);
/** dmn_gpio_stop() - the LED goes dark, the lines are given back; the loop has to run once more. */
void dmn_gpio_stop(struct dmn_daemon *d);
/** dmn_gpio_listen() - @fn is called on every change of the power line; one listener. */
void dmn_gpio_listen(struct dmn_daemon *d, dmn_gpio_power_fn fn);
/** dmn_gpio_power() - Return: 1 active, 0 not, -1 unknown. */
int dmn_gpio_power(const struct dmn_daemon *d);
/** dmn_gpio_follow() - the daemon's state may have changed: the LED follows. Cheap. */
void dmn_gpio_follow(struct dmn_daemon *d);
/** dmn_gpio_json() - for sensors.gpio; null: not configured. New reference. */
json_t *dmn_gpio_json(const struct dmn_daemon *d);
