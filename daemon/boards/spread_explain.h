/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_explain.h - why a model's route is as it is, by the table
 *
 * Pure functions; any thread; they allocate, and may take seconds.
 */
#pragma once

#include "daemon/boards/spread_query.h"

enum dmn_verdict {
    DMN_VERDICT_NONE,         /* there is no route, and none is possible: .answer.limit */
    DMN_VERDICT_SERVES,       /* the best route is the present one */
    DMN_VERDICT_BETTER,       /* the best route gains enough to be taken */
    DMN_VERDICT_ALONE_BETTER, /* the present route should be left */
    DMN_VERDICT_LITTLE,       /* the best route gains too little over the present one */
    DMN_VERDICT_ALONE,        /* there is no route; the best gains too little */
};

struct dmn_left_out {
    char print[BRD_FINGERPRINT_BYTES];
    const char *why; /* a sentence, static */
};

struct dmn_explained {
    struct dmn_spread_answer answer;
    enum dmn_verdict verdict;
    bool moves; /* boards must load other segments for the best route than for the present one */
    struct dmn_judged present, best; /* by the table; not possible: there is none */
    size_t left_count, guessed_links;
    struct dmn_left_out left[BRD_MAX]; /* boards that have no part in the best route */
};

/** dmn_spread_explain() - Return: 0; -EINVAL or -ENOMEM. */
int dmn_spread_explain(const struct dmn_spread_query *q, struct dmn_explained *ret);
