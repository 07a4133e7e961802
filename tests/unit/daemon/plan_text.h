/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/daemon/plan_text.h - plans as text, for tests of what is done with them
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "pipeline/plan.h"

/* Return: the plan that @text is, for @units units on @eps. What is no plan ends the program. */
static inline struct pl_plan plan_of(const struct pl_ep_set *eps, size_t units, const char *text)
{
    struct pl_plan p = {0};
    char error[160] = "";

    if (pl_plan_parse(text, eps, units, error, sizeof(error), &p) < 0) {
        fprintf(stderr, "%s: %s\n", text, error);
        exit(1);
    }
    return p;
}
