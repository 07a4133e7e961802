/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl units: what a model is made of, and where its time goes. */
#include <stdlib.h>
#include <string.h>

#include "apps/pipectl/common/pipectl.h"

struct args {
    const char *model, *sort;
};

static int take_args(int argc, char **argv, struct args *ret)
{
    int c, rc = CTL_DONE;

    *ret = (struct args){.sort = "unit"};
    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        if (c == 'm') {
            ret->model = optarg;
        } else {
            ret->sort = optarg;
        }
    }
    return rc ? rc : ctl_no_more(argc, argv);
}

/* The time of a unit in a frame: as it ran; before the first frame, where it was measured fastest;
 * 0: unknown. */
static double unit_ms(const json_t *unit)
{
    const json_t *measured = json_object_get(unit, "measured_ms");
    double least = json_number_value(json_object_get(unit, "ewma_ms"));
    const char *ep;
    json_t *value;

    if (least > 0) {
        return least;
    }
    json_object_foreach((json_t *)(uintptr_t)measured, ep, value)
    {
        double ms = json_number_value(value);

        least = least > 0 ? base_min(least, ms) : ms;
    }
    return least;
}

void ctl_add_shares(json_t *units)
{
    double sum = 0;
    json_t *unit;
    size_t i;

    json_array_foreach(units, i, unit)
    {
        sum += unit_ms(unit);
    }
    json_array_foreach(units, i, unit)
    {
        double ms = unit_ms(unit);

        json_object_set_new(unit, "ms", ms > 0 ? json_real(ms) : json_null());
        json_object_set_new(unit, "share", ms > 0 ? json_real(ms / sum) : json_null());
    }
}

static const char *sort_key; /* of compare(), which qsort() gives nothing */

static int compare(const void *a, const void *b)
{
    double x = ctl_real(*(json_t *const *)a, sort_key), y = ctl_real(*(json_t *const *)b, sort_key);

    if (x == y) {
        return (int)(ctl_real(*(json_t *const *)a, "unit") - ctl_real(*(json_t *const *)b, "unit"));
    }
    return (x < y) - (x > y);
}

/* Largest first. Return: a new list; NULL: out of memory. */
static json_t *sorted(const json_t *units, const char *key)
{
    size_t count = json_array_size(units);
    base_autofree json_t **order = calloc(count + 1, sizeof(json_t *));
    json_t *list = json_array();

    for (size_t i = 0; order && i < count; i++) {
        order[i] = json_array_get(units, i);
    }
    if (order) {
        sort_key = key;
        qsort(order, count, sizeof(json_t *), compare);
    }
    for (size_t i = 0; order && i < count; i++) {
        json_array_append(list, order[i]);
    }
    return list;
}

static void print(const json_t *units)
{
    static const struct ctl_column columns[] = {{"unit", "unit", 'r'},
                                                {"name", "name", 'l'},
                                                {"ops", "ops", 'r'},
                                                {"ms", "ms", 'r', CTL_DECIMALS, 4},
                                                {"share", "share", 'r', CTL_DECIMALS, 1, 100, " %"},
                                                {"weight", "weight", 'r', CTL_DECIMALS, 0},
                                                {"primitive", "primitive", 'l'},
                                                {0}};

    ctl_print_rows(units, columns, 0);
}

int ctl_units(const struct ctl *ctl, int argc, char **argv)
{
    json_t *reply, *units;
    struct args a;
    int rc = take_args(argc, argv, &a);

    rc = rc ? rc : ctl_call(ctl, "Units", ctl_model_parameter(a.model), &reply);
    if (rc) {
        return rc;
    }
    units = json_incref(json_object_get(reply, "units"));
    json_decref(reply);
    ctl_add_shares(units);
    if (strcmp(a.sort, "unit") != 0) {
        json_t *list = sorted(units, strcmp(a.sort, "time") == 0 ? "ms" : "weight");

        json_decref(units);
        units = list;
    }
    if (ctl->json) {
        ctl_print_json(units);
    } else {
        print(units);
    }
    json_decref(units);
    return CTL_DONE;
}
