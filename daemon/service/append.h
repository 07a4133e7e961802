/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/service/append.h - texts for people that are made of several parts. Threads: any. */
#pragma once

#include <stdio.h>
#include <string.h>

/* Adds to the text in @ret, which has @bytes, as far as there is room; as snprintf(). */
#define dmn_append(ret, bytes, ...)                                                                \
    ({                                                                                             \
        char *to_ = (ret);                                                                         \
        size_t used_ = strlen(to_);                                                                \
        snprintf(to_ + used_, (bytes)-used_, __VA_ARGS__);                                         \
    })
