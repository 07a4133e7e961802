/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: answers with tensors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/http/tensors.h"
#include "apps/show/decoded.h"
#include "base/tensor_name.h"
#include "ipc/wire.h"

/* The valid rows of an output: @outer runs of @run bytes, each @step bytes after the one before. */
struct part {
    const struct piped_tensor *t;
    const uint8_t *data;
    uint32_t dim[8];
    size_t outer, run, step, element;
};

static struct part part_of(const struct piped_stream *s, const struct piped_frame *f, uint32_t o)
{
    const struct piped_tensor *t = &piped_stream_info(s)->outputs[o];
    struct part p = {.t = t,
                     .data = (const uint8_t *)f->output + t->offset,
                     .outer = 1,
                     .run = (size_t)t->bytes,
                     .step = (size_t)t->bytes,
                     .element = ipc_dtype_bytes(t->dtype)};
    uint32_t dim;
    uint64_t rows = piped_rows(s, f, o, &dim);

    memcpy(p.dim, t->dim, sizeof(p.dim));
    if (dim != UINT32_MAX) {
        size_t inner = p.element;

        for (uint32_t i = 0; i < t->rank; i++) {
            p.outer *= i < dim ? t->dim[i] : 1;
            inner *= i > dim ? t->dim[i] : 1;
        }
        p.dim[dim] = (uint32_t)rows;
        p.run = (size_t)rows * inner;
        p.step = t->dim[dim] * inner;
    }
    return p;
}

/* Return: false: JSON has no form for it. */
static bool add_number(struct web_text *t, uint32_t dtype, const uint8_t *at)
{
    union {
        float f32;
        int64_t i64;
        int32_t i32;
        int8_t i8;
    } v = {.i64 = 0};
    char text[SHW_NUMBER_BYTES];

    memcpy(&v, at, ipc_dtype_bytes(dtype));
    if (dtype == PIPED_F32) {
        web_text_add(t, text, shw_number_text(v.f32, text));
        return isfinite(v.f32);
    }
    if (dtype == PIPED_BOOL) {
        web_text_printf(t, "%s", *at ? "true" : "false");
        return true;
    }
    web_text_printf(t, "%lld",
                    dtype == PIPED_I32  ? (long long)v.i32
                    : dtype == PIPED_I8 ? (long long)v.i8
                                        : (long long)v.i64); /* little-endian; U8, too */
    return true;
}

static bool add_data(struct web_text *t, const struct part *p)
{
    bool first = true, good = true;

    web_text_printf(t, ",\"data\":[");
    for (size_t o = 0; o < p->outer; o++) {
        for (size_t i = 0; i < p->run; i += p->element) {
            web_text_add(t, ",", !first);
            good &= add_number(t, p->t->dtype, p->data + o * p->step + i);
            first = false;
        }
    }
    web_text_add(t, "]", 1);
    return good;
}

static void add_head(struct web_text *t, const struct part *p)
{
    web_text_printf(t, "{\"name\":");
    web_text_json(t, json_string(p->t->name));
    web_text_printf(t, ",\"datatype\":\"%s\",\"shape\":[", web_datatype(p->t->dtype));
    for (uint32_t i = 0; i < p->t->rank; i++) {
        web_text_printf(t, "%s%u", i ? "," : "", p->dim[i]);
    }
    web_text_add(t, "]", 1);
}

/* Adds output @o. Binary data goes to @tail. */
static bool add_output(struct web_text *t, struct web_text *tail, const struct part *p, bool binary,
                       struct web_reply *r)
{
    add_head(t, p);
    if (binary) {
        web_text_printf(t, ",\"parameters\":{\"binary_data_size\":%zu}", p->outer * p->run);
        for (size_t o = 0; o < p->outer; o++) {
            web_text_add(tail, p->data + o * p->step, p->run);
        }
    } else if (!add_data(t, p)) {
        return web_fail(r, 400,
                        "output %s has values that JSON cannot express (infinite or not a number); "
                        "ask for binary data: the parameter binary=1 of the address",
                        p->t->name);
    }
    web_text_add(t, "}", 1);
    return true;
}

/* The most bytes that an output takes in an answer. */
static size_t most_bytes(const struct part *p, bool binary)
{
    static const size_t text[] = {
        [PIPED_F32] = 16, [PIPED_I32] = 12, [PIPED_I64] = 21, [PIPED_U8] = 4,
        [PIPED_I8] = 5,   [PIPED_BOOL] = 6, [PIPED_F16] = 0};
    size_t values = p->outer * p->run / p->element;

    /* Binary data is put behind the JSON when that is complete. */
    return values * (binary ? 2 * p->element : text[p->t->dtype]) + 1024;
}

/* The output that is asked for. Return: its index; output_count: there is none. */
static uint32_t wanted(const struct web_call *c, const struct piped_stream_info *info, size_t i)
{
    uint32_t o = 0;

    if (c->output_count == 0) {
        return (uint32_t)i;
    }
    while (o < info->output_count && !tensor_same(info->outputs[o].name, c->outputs[i].name)) {
        o++;
    }
    return o;
}

/* An answer that is made. */
struct draft {
    struct web_request *q;
    struct web_reply *r;
    struct web_text t, tail; /* tail: binary data */
    size_t claimed;
};

static bool add_outputs(const struct web_call *c, struct piped_stream *s,
                        const struct piped_frame *f, struct draft *d)
{
    const struct piped_stream_info *info = piped_stream_info(s);
    bool all = c->output_count == 0 && !c->only_named;
    size_t count = all ? info->output_count : c->output_count;

    web_text_printf(&d->t, ",\"outputs\":[");
    for (size_t i = 0; i < count; i++) {
        bool binary = c->output_count ? c->outputs[i].binary : c->all_binary;
        uint32_t o = wanted(c, info, i);
        struct part p;
        size_t bytes;

        if (o >= info->output_count) {
            return web_fail(d->r, 400, "the model has no output %s", c->outputs[i].name);
        }
        p = part_of(s, f, o);
        bytes = most_bytes(&p, binary);
        if (!web_claim(d->q, bytes, d->r)) {
            return false;
        }
        d->claimed += bytes;
        web_text_add(&d->t, ",", i > 0);
        if (!add_output(&d->t, &d->tail, &p, binary, d->r)) {
            return false;
        }
    }
    web_text_add(&d->t, "]", 1);
    return true;
}

void web_call_answer(const struct web_call *c, struct web_request *q, struct piped_stream *s,
                     const struct piped_frame *f, const json_t *more, struct web_reply *r)
{
    struct draft d = {.q = q, .r = r};
    struct web_text *t = &d.t;
    json_t *head =
        json_pack("{s:s, s:s, s:s*}", "model_name", q->model, "model_version", "1", "id", c->id);
    size_t json_bytes;
    bool binary;

    json_object_update(head, (json_t *)(uintptr_t)more);
    web_text_json(t, head);
    t->used -= t->used > 0; /* its brace: outputs may follow */
    if (!c->no_outputs && !add_outputs(c, s, f, &d)) {
        free(t->data);
        free(d.tail.data);
        return;
    }
    web_text_add(t, "}", 1);
    json_bytes = t->used;
    binary = d.tail.used > 0;
    web_text_add(t, d.tail.data, d.tail.used);
    t->failed |= d.tail.failed;
    free(d.tail.data);
    web_claim_less(q, d.claimed - base_min(d.claimed, t->used));
    web_reply_text(r, binary ? "application/octet-stream" : "application/json", t);
    r->json_bytes = r->status == 200 && binary ? json_bytes : 0;
    snprintf(r->timing, sizeof(r->timing), "queue;dur=%.3f, compute;dur=%.3f",
             (double)f->queue_ns / 1e6, (double)f->service_ns / 1e6);
}
