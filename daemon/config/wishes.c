/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/wishes.h"

static const struct wish {
    const char *key;
    size_t at;
    double least, most;
    bool none; /* 0 is allowed, too: there is no such wish */
} rows[] = {
    {"rate", offsetof(struct dmn_wishes, rate), 0.001, 1e6, true},
    {"weight", offsetof(struct dmn_wishes, weight), PL_WEIGHT_MIN, PL_WEIGHT_MAX, false},
    {"deadline_ms", offsetof(struct dmn_wishes, deadline_ms), 0.01, 600000, true},
    {"max_share", offsetof(struct dmn_wishes, max_share), 0.01, 1, false},
};

/* Return: 0; -EINVAL: it is no number, or out of bounds. */
static int read_number(const json_t *value, const struct wish *row, struct dmn_wishes *to)
{
    double x = json_number_value(value);

    if (!json_is_number(value) || !((x >= row->least && x <= row->most) || (row->none && x == 0))) {
        return -EINVAL;
    }
    *(double *)((char *)to + row->at) = x;
    return 0;
}

int dmn_wishes_read(const json_t *from, struct dmn_wishes *ret, const char **ret_key, char *ret_why)
{
    const json_t *class = json_object_get(from, "class");
    struct dmn_wishes w = *ret;

    for (size_t i = 0; i < base_array_count(rows); i++) {
        const json_t *value = json_object_get(from, rows[i].key);

        if (value && !json_is_null(value) && read_number(value, &rows[i], &w) < 0) {
            *ret_key = rows[i].key;
            snprintf(ret_why, DMN_WISH_ERROR_MAX, "must be from %g to %g%s", rows[i].least,
                     rows[i].most, rows[i].none ? ", or 0 for none" : "");
            return -EINVAL;
        }
    }
    if (class && !json_is_null(class)) {
        json_int_t x = json_integer_value(class);

        if (!json_is_integer(class) || x < 0 || x > PL_CLASS_MAX) {
            *ret_key = "class";
            snprintf(ret_why, DMN_WISH_ERROR_MAX, "must be a whole number from 0 to %u",
                     PL_CLASS_MAX);
            return -EINVAL;
        }
        w.class = (unsigned)x;
    }
    if (w.deadline_ms > 0 && w.rate == 0) {
        *ret_key = "deadline_ms";
        snprintf(ret_why, DMN_WISH_ERROR_MAX,
                 "needs rate: how often a frame comes decides whether all can be in time");
        return -EINVAL;
    }
    *ret = w;
    return 0;
}

json_t *dmn_wishes_json(const struct dmn_wishes *w)
{
    return json_pack("{s:f, s:f, s:i, s:f, s:f}", "rate", w->rate, "weight", w->weight, "class",
                     (int)w->class, "deadline_ms", w->deadline_ms, "max_share", w->max_share);
}

struct pl_claim dmn_wishes_claim(const struct dmn_wishes *w)
{
    return (struct pl_claim){
        .class = w->class,
        .weight = w->weight,
        .max_share = w->max_share,
        .deadline_ns = (uint64_t)(w->deadline_ms * 1e6),
        .period_ns = w->rate > 0 ? (uint64_t)(1e9 / w->rate) : 0,
    };
}
