/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes what test_decode.py sends: for each case a line of JSON and the bytes of an output area.
 * Answers a line of JSON. The area is allocated to the byte, so a read beyond it is found.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/decode/piped_decode.h"
#include "ipc/piped.h"

#define OUTPUTS 16

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *object(const struct piped_object *o)
{
    return json_pack("[o, o, o, o, o, o, i, s?, i, i]", number((double)o->x), number((double)o->y),
                     number((double)o->width), number((double)o->height), number((double)o->score),
                     number((double)o->area), (int)o->number, o->label, (int)o->point_first,
                     (int)o->point_count);
}

static json_t *mask(const struct piped_mask *m)
{
    json_t *classes = json_array();

    for (size_t i = 0; i < (size_t)m->columns * m->rows; i++) {
        json_array_append_new(classes, json_integer(m->classes[i]));
    }
    return json_pack("{s:i, s:i, s:o, s:o}", "columns", (int)m->columns, "rows", (int)m->rows,
                     "place",
                     json_pack("[o, o, o, o]", number((double)m->x), number((double)m->y),
                               number((double)m->width), number((double)m->height)),
                     "classes", classes);
}

static json_t *result(const struct piped_decoded *r)
{
    json_t *objects = json_array(), *points = json_array();

    for (size_t i = 0; i < r->object_count; i++) {
        json_array_append_new(objects, object(&r->objects[i]));
    }
    for (size_t i = 0; i < r->point_count; i++) {
        json_array_append_new(points, json_pack("[o, o, o]", number((double)r->points[i].x),
                                                number((double)r->points[i].y),
                                                number((double)r->points[i].score)));
    }
    return json_pack("{s:s, s:o, s:o, s:s?, s:o, s:o}", "kind", r->kind, "objects", objects,
                     "points", points, "text", r->text, "text_score", number((double)r->text_score),
                     "mask", r->mask ? mask(r->mask) : json_null());
}

/* The outputs of a case. Return: their number. */
static uint32_t outputs_of(const json_t *list, struct piped_tensor *ret)
{
    const json_t *o, *d;
    size_t i, k;

    json_array_foreach(list, i, o)
    {
        ret[i] = (struct piped_tensor){
            .name = json_string_value(json_object_get(o, "name")),
            .dtype = (uint32_t)json_integer_value(json_object_get(o, "dtype")),
            .rank = (uint32_t)json_array_size(json_object_get(o, "dim")),
            .offset = (uint64_t)json_integer_value(json_object_get(o, "offset")),
            .bytes = (uint64_t)json_integer_value(json_object_get(o, "bytes"))};
        json_array_foreach(json_object_get(o, "dim"), k, d)
        {
            ret[i].dim[k] = (uint32_t)json_integer_value(d);
        }
    }
    return (uint32_t)json_array_size(list);
}

static json_t *run(const json_t *c, const void *area)
{
    const json_t *list = json_object_get(c, "rows");
    struct piped_tensor outputs[OUTPUTS];
    const struct piped_decoded *r;
    struct piped_decoder *d = NULL;
    uint64_t rows[OUTPUTS];
    json_t *answer;
    int rc = piped_decoder_new(json_string_value(json_object_get(c, "description")), outputs,
                               outputs_of(json_object_get(c, "outputs"), outputs), &d);

    for (size_t i = 0; i < json_array_size(list); i++) {
        rows[i] = (uint64_t)json_integer_value(json_array_get(list, i));
    }
    for (int again = 0; rc == 0 && again < 2;
         again++) { /* the second uses the memory of the first */
        rc = piped_decode(d, area, json_is_array(list) ? rows : NULL,
                          (uint32_t)json_integer_value(json_object_get(c, "width")),
                          (uint32_t)json_integer_value(json_object_get(c, "height")), &r);
    }
    answer = rc < 0 ? json_pack("{s:i, s:s}", "code", rc, "error", piped_last_error()) : result(r);
    piped_decoder_free(d);
    return answer;
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0) {
        json_t *c = json_loads(line, 0, NULL), *answer;
        size_t bytes = (size_t)json_integer_value(json_object_get(c, "bytes"));
        void *area = malloc(bytes ? bytes : 1);

        if (!c || !area || fread(area, 1, bytes, stdin) != bytes) {
            fprintf(stderr, "decode_run: a case is broken\n");
            return 1;
        }
        answer = run(c, area);
        json_dumpf(answer, stdout, JSON_COMPACT);
        printf("\n");
        fflush(stdout);
        json_decref(answer);
        json_decref(c);
        free(area);
    }
    free(line);
    return 0;
}
