/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/wishes.h - what a model is to have of the cores beside other models, as people say
 * it
 *
 * Plain data. Threads: any.
 */
#pragma once

#include <jansson.h>

#include "pipeline/seats.h"

struct dmn_wishes {
    double rate;        /* frames a second; 0: as many as come */
    double weight;      /* share of what models of its class leave, beside others' weights */
    unsigned class;     /* 0 .. PL_CLASS_MAX; a higher one goes first */
    double deadline_ms; /* from a frame's coming to its answer; 0: none */
    double max_share;   /* of all cores' time; 1: no limit */
};
#define DMN_WISHES_NULL ((struct dmn_wishes){.weight = 1, .max_share = 1})

#define DMN_WISH_ERROR_MAX 160u
/** dmn_wishes_read() - @from: an object with any of the keys rate, weight, class, deadline_ms and
 * max_share; those that are absent or null leave *ret as it is. @ret_key: of what is refused.
 * @ret_why: DMN_WISH_ERROR_MAX bytes. Return: 0; -EINVAL with both set, and *ret as it was. */
int dmn_wishes_read(const json_t *from, struct dmn_wishes *ret, const char **ret_key,
                    char *ret_why);
/** dmn_wishes_json() - Return: an object with these keys, owned by the caller; NULL: out of
 * memory. */
json_t *dmn_wishes_json(const struct dmn_wishes *w);
static inline bool dmn_wishes_equal(const struct dmn_wishes *a, const struct dmn_wishes *b)
{
    return a->rate == b->rate && a->weight == b->weight && a->class == b->class &&
           a->deadline_ms == b->deadline_ms && a->max_share == b->max_share;
}
/** dmn_wishes_claim() - Return: what its teams have of the seats. */
struct pl_claim dmn_wishes_claim(const struct dmn_wishes *w);
