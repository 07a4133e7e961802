/* SPDX-License-Identifier: Apache-2.0 */
/* The build has no libgpiod: nothing can be opened. */
#include <errno.h>

#include "governor/gpio.h"

int gov_gpio_open(const struct gov_gpio_config *c, struct gov_gpio **ret)
{
    return GOV_GPIO_E_OFF;
}

struct gov_gpio *gov_gpio_close(struct gov_gpio *g)
{
    return NULL;
}

const char *gov_gpio_chip(const struct gov_gpio *g)
{
    return "";
}

int gov_gpio_fd(const struct gov_gpio *g, enum gov_gpio_line line)
{
    return -1;
}

int gov_gpio_edges(struct gov_gpio *g, enum gov_gpio_line line, struct gov_gpio_edge *ret,
                   size_t max)
{
    return -ENODEV;
}

int gov_gpio_get(struct gov_gpio *g, enum gov_gpio_line line, bool *ret_active)
{
    return -ENODEV;
}

int gov_gpio_set(struct gov_gpio *g, enum gov_gpio_line line, bool active)
{
    return -ENODEV;
}
