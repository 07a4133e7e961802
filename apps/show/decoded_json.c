/* SPDX-License-Identifier: Apache-2.0 */
/* What a model answered, as JSON. */
#include <math.h>

#include "apps/show/decoded.h"

#define DIGITS_LEAST 6 /* each f32 keeps so many */
#define DIGITS_MOST 9  /* and is told from all others by so many */

/* An upper bound of what jansson and the text take for each. */
#define OBJECT_BYTES 2048u
#define POINT_BYTES 512u
#define RUN_BYTES 320u

size_t shw_number_text(float v, char *ret)
{
    int digits = DIGITS_LEAST, n;

    do {
        n = snprintf(ret, SHW_NUMBER_BYTES, "%.*g", digits, (double)v);
    } while (digits++ < DIGITS_MOST && strtof(ret, NULL) != v && isfinite(v));
    return (size_t)n;
}

json_t *shw_number(double v)
{
    char text[SHW_NUMBER_BYTES];

    if (!isfinite((float)v)) {
        return json_null();
    }
    shw_number_text((float)v, text);
    return json_real(strtod(text, NULL));
}

static json_t *points_json(const struct piped_decoded *r, const struct piped_object *o)
{
    json_t *points = json_array();

    for (size_t i = 0; i < o->point_count; i++) {
        const struct piped_point *p = &r->points[o->point_first + i];

        json_array_append_new(points, json_pack("[o, o, o]", shw_number(p->x), shw_number(p->y),
                                                shw_number(p->score)));
    }
    return points;
}

static json_t *object_json(const struct piped_decoded *r, const struct piped_object *o)
{
    json_t *j = json_pack("{s:s?, s:o, s:o}", "label", o->label, "class",
                          o->number >= 0 ? json_integer(o->number) : json_null(), "score",
                          shw_number(o->score));

    if (o->width > 0 || o->height > 0 || o->point_count) {
        json_object_update_new(j,
                               json_pack("{s:o, s:o, s:o, s:o, s:o}", "x", shw_number(o->x), "y",
                                         shw_number(o->y), "width", shw_number(o->width), "height",
                                         shw_number(o->height), "area", shw_number(o->area)));
    }
    if (o->point_count) {
        json_object_set_new(j, "points", points_json(r, o));
    }
    return j;
}

/* Return: how many places from @i on have one class. */
static size_t run_from(const struct piped_mask *m, size_t i)
{
    size_t count = (size_t)m->columns * m->rows, n = 1;

    while (i + n < count && m->classes[i + n] == m->classes[i]) {
        n++;
    }
    return n;
}

/* The classes as runs from row to row: [class, count], 255 for none. */
static json_t *mask_json(const struct piped_mask *m)
{
    size_t count = (size_t)m->columns * m->rows;
    json_t *runs = json_array();

    for (size_t i = 0, n; i < count; i += n) {
        n = run_from(m, i);
        json_array_append_new(runs, json_pack("[i, I]", m->classes[i], (json_int_t)n));
    }
    return json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "columns", (int)m->columns, "rows",
                     (int)m->rows, "x", shw_number(m->x), "y", shw_number(m->y), "width",
                     shw_number(m->width), "height", shw_number(m->height), "runs", runs);
}

size_t shw_json_bytes(const struct piped_decoded *r)
{
    size_t runs = 0;

    for (size_t i = 0; r->mask && i < (size_t)r->mask->columns * r->mask->rows; runs++) {
        i += run_from(r->mask, i);
    }
    return (r->object_count + 1) * OBJECT_BYTES + r->point_count * POINT_BYTES + runs * RUN_BYTES;
}

json_t *shw_top(struct piped_decoder *d, const void *output, size_t most)
{
    const struct piped_class *best;
    uint32_t count;
    json_t *top;

    if (!d ||
        piped_decode_classes(d, output, (uint32_t)base_min(most, UINT32_MAX), &best, &count) < 0) {
        return NULL;
    }
    top = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct piped_class *c = &best[i];

        json_array_append_new(top, json_pack("{s:i, s:s?, s:o, s:o}", "class", c->number, "label",
                                             c->label, "score", shw_number(c->score), "probability",
                                             shw_number(c->probability)));
    }
    return top;
}

void shw_json(json_t *report, const struct piped_decoded *r)
{
    json_t *objects = json_array();

    for (size_t i = 0; i < r->object_count; i++) {
        json_array_append_new(objects, object_json(r, &r->objects[i]));
    }
    json_object_update_new(
        report, json_pack("{s:s, s:I, s:I, s:o, s:s*, s:o*, s:o*}", "decoded", r->kind, "width",
                          (json_int_t)r->width, "height", (json_int_t)r->height, "objects", objects,
                          "text", r->text, "text_score", r->text ? shw_number(r->text_score) : NULL,
                          "mask", r->mask ? mask_json(r->mask) : NULL));
}
