/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl infer: the valid part of outputs whose length depends on the picture. */
#include <math.h>
#include <stdio.h>

#include "apps/pipectl/infer/infer.h"
#include "apps/show/number.h"
#include "base/cli/shown_print.h"

struct infer_part infer_part_of(const struct piped_stream *s, const struct piped_frame *f,
                                uint32_t output)
{
    struct infer_part p = {.tensor = &piped_stream_info(s)->outputs[output], .data = f->output};

    p.rows = (size_t)piped_rows(s, f, output, &p.dim);
    p.counted = p.dim != UINT32_MAX;
    p.dim = p.counted ? p.dim : 0;
    p.inner = 1;
    for (uint32_t i = p.dim + 1; i < p.tensor->rank; i++) {
        p.inner *= p.tensor->dim[i];
    }
    p.most = p.tensor->rank ? p.tensor->dim[p.dim] : 1;
    p.count = p.most ? ctl_tensor_count(p.tensor) / p.most * p.rows : 0;
    return p;
}

double infer_part_value(const struct infer_part *p, size_t i)
{
    size_t before = i / p->inner / p->rows, row = i / p->inner % p->rows;

    return ctl_tensor_value(p->tensor, p->data, (before * p->most + row) * p->inner + i % p->inner);
}

json_t *infer_part_shape(const struct infer_part *p)
{
    json_t *shape = json_array();

    for (uint32_t i = 0; i < p->tensor->rank; i++) {
        size_t n = i == p->dim ? p->rows : p->tensor->dim[i];

        json_array_append_new(shape, json_integer((json_int_t)n));
    }
    return shape;
}

/* A number as JSON has it: none for infinity and NaN. */
static json_t *number(double v)
{
    return !isfinite(v)                      ? json_null()
           : v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v)
                                             : shw_number(v);
}

json_t *infer_part_rows(const struct infer_part *p)
{
    size_t each = p->rows ? p->count / p->rows : 0;
    json_t *rows = json_array();

    for (size_t r = 0; r < p->rows; r++) {
        json_t *row = json_array();

        for (size_t i = 0; i < each; i++) {
            size_t at = (i / p->inner * p->rows + r) * p->inner + i % p->inner;

            json_array_append_new(row, number(infer_part_value(p, at)));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

void infer_print_rows(const json_t *output)
{
    const json_t *rows = json_object_get(output, "rows"), *row, *v;
    size_t i, k;

    if (!rows) {
        return;
    }
    shown_printf("  %s: %zu of at most %.0f rows\n",
                 json_string_value(json_object_get(output, "name")), json_array_size(rows),
                 ctl_real(output, "most"));
    json_array_foreach(rows, i, row)
    {
        printf("   ");
        json_array_foreach(row, k, v)
        {
            if (json_is_number(v)) {
                printf(" %.5g", json_number_value(v));
            } else {
                printf(" -");
            }
        }
        printf("\n");
    }
}
