/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/gpio_private.h - common to gpio_v1.c and gpio_v2.c, the two users of libgpiod
 */
#pragma once

#include <errno.h>

#include "governor/gpio.h"

#define GOV_GPIO_CONSUMER "piped"
#define GOV_GPIO_EDGES_AT_ONCE 16u /* what the kernel keeps for a line */

/* What a failed call of the library means, by its errno. */
static inline int gov_gpio_failure(int error)
{
    switch (error) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ENOTTY: /* some other device */
        return GOV_GPIO_E_ABSENT;
    case EACCES:
    case EPERM:
        return GOV_GPIO_E_DENIED;
    case EBUSY:
        return GOV_GPIO_E_BUSY;
    default:
        return error ? -error : -EIO;
    }
}
