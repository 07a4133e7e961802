/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/tensor_name.h"
#include "kernels/kernels.h"
#include "kernels/select/choose.h"
#include "tests/conformance/tensor_file.h"
#include "tests/kernels/kept_pool.h"

#define GUARD_BYTES ((size_t)256)
#define GUARD 0xcb

/* One way to run a case. */
struct way {
    const char *name, *only;
    bool no_fusion, odd;
    size_t width;
    bool threads;  /* a team; else its parts run one after the other */
    bool measured; /* by the primitives that are fastest here, as the daemon loads it */
};
static const struct way ways[] = {
    {.name = "default", .width = 1},
    {.name = "parts", .width = 3},
    {.name = "reference", .only = "__ref", .odd = true, .width = 1},
    {.name = "unfused", .only = "__ref", .no_fusion = true, .width = 1},
    {.name = "team", .width = 3, .threads = true},
    {.name = "measured", .width = 1, .measured = true},
};

struct run {
    const struct conformance_case *c;
    const struct way *way;
    struct mdl_model *m;
    struct krn_net *net;
    void *raw[CASE_FILES_MAX * 2 + 2]; /* owned: everything allocated */
    size_t raw_count;
    void *inputs[CASE_FILES_MAX];
    void *outputs[CASE_FILES_MAX];
    double worst; /* largest error so far, as a share of the tolerance */
    char *text;
};

static void run_deinit(struct run *r)
{
    for (size_t i = 0; i < r->raw_count; i++) {
        free(r->raw[i]);
    }
    krn_net_free(r->net);
    mdl_free(r->m);
}

#define SAY(r, ...)                                                                                \
    do {                                                                                           \
        int say_n = snprintf((r)->text, 1024, "%s: ", (r)->way->name);                             \
        snprintf((r)->text + say_n, 1024 - (size_t)say_n, __VA_ARGS__);                            \
    } while (0)

/* @bytes surrounded by guard bytes; with way->odd at an odd address. Filled with the guard too, so
 * that what is never written shows. */
static uint8_t *buffer(struct run *r, size_t bytes, bool odd)
{
    size_t total = base_align_up(bytes + 2 * GUARD_BYTES + 64, 64);
    uint8_t *p = r->raw_count < base_array_count(r->raw) ? aligned_alloc(64, total) : NULL;

    if (!p) {
        abort();
    }
    memset(p, GUARD, total);
    r->raw[r->raw_count++] = p;
    return p + GUARD_BYTES + odd;
}

static bool guards_intact(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < GUARD_BYTES - 1; i++) {
        if (data[-1 - (ptrdiff_t)i] != GUARD || data[bytes + i] != GUARD) {
            return false;
        }
    }
    return true;
}

static bool same_shape(const struct mdl_tensor *t, const struct tensor_file *f)
{
    if (f->dtype != t->dtype || f->elements != mdl_elements(t)) {
        return false;
    }
    if (f->rank == SIZE_MAX) {
        return true;
    }
    return f->rank == t->rank && memcmp(f->dim, t->dim, t->rank * sizeof(t->dim[0])) == 0;
}

static void shape_text(enum mdl_dtype dtype, size_t rank, const size_t *dim, char out[128])
{
    int n = snprintf(out, 128, "%s[", mdl_dtype_name(dtype));

    for (size_t d = 0; rank != SIZE_MAX && d < rank && n < 110; d++) {
        n += snprintf(out + n, 128 - (size_t)n, "%s%zu", d ? "," : "", dim[d]);
    }
    snprintf(out + n, 128 - (size_t)n, "]");
}

static bool check_shape(struct run *r, const char *what, size_t i, const struct mdl_tensor *t,
                        const struct tensor_file *f)
{
    char ours[128], theirs[128];

    if (same_shape(t, f)) {
        return true;
    }
    shape_text(t->dtype, t->rank, t->dim, ours);
    shape_text(f->dtype, f->rank, f->dim, theirs);
    SAY(r, "%s %zu is %s, the data have %s", what, i, ours, theirs);
    return false;
}

/* Chooses as a load of the daemon does, which must end whatever the model is. */
static int choose(struct run *r, char error[MDL_ERROR_MAX])
{
    struct krn_measure_options o = {.cpu = -1, .budget_ns = BASE_NS_PER_MS, .frames = 1};
    struct krn_times times = KRN_TIMES_NULL;
    struct krn_chosen chosen = KRN_CHOSEN_NULL;
    int e = krn_measure(r->m, &o, &times);

    e = e < 0 ? e : krn_choose(&times, &(struct krn_choose_options){.exact = true}, &chosen);
    e = e < 0 ? e : krn_net_new_chosen(r->m, &chosen.choice, 1, KRN_PACK_ALL, error, &r->net);
    krn_chosen_deinit(&chosen);
    krn_times_deinit(&times);
    return e;
}

static enum verdict load(struct run *r)
{
    struct mdl_load_options options = {.name = r->c->name,
                                       .const_eval = krn_const_eval,
                                       .no_fusion = r->way->no_fusion,
                                       .shapes = r->c->shapes};
    char error[MDL_ERROR_MAX] = "";
    int e = mdl_load(r->c->model, &options, error, &r->m);

    if (e == 0) {
        e = r->way->measured ? choose(r, error) : krn_net_new(r->m, r->way->only, error, &r->net);
    }
    if (e != 0) {
        SAY(r, "%s (%s)", error, strerror(-e));
        return e == -EOPNOTSUPP ? CASE_UNSUPPORTED : CASE_FAIL;
    }
    if (r->m->input_count > CASE_FILES_MAX || r->m->output_count > CASE_FILES_MAX) {
        SAY(r, "too many inputs or outputs");
        return CASE_FAIL;
    }
    return CASE_PASS;
}

/* Which model input the @i-th input file is: by its name, else by order. */
static size_t input_of(const struct mdl_model *m, const struct tensor_file *f, size_t i)
{
    for (size_t k = 0; k < m->input_count; k++) {
        if (f->name[0] && tensor_same(m->inputs[k].name, f->name)) {
            return k;
        }
    }
    return i;
}

static enum verdict read_tensors(struct run *r)
{
    for (size_t i = 0; i < r->c->input_count; i++) {
        struct tensor_file f;
        const char *error;

        if (tensor_file_read(r->c->inputs[i], &f, &error) < 0) {
            SAY(r, "input %zu: %s", i, error);
            return CASE_UNSUPPORTED;
        }
        size_t k = input_of(r->m, &f, i);
        if (k >= r->m->input_count) {
            tensor_file_deinit(&f);
            continue; /* data for a weight that is an initializer: the same bytes by construction */
        }
        const struct mdl_tensor *t = &r->m->tensors[r->m->inputs[k].tensor];
        bool ok = check_shape(r, "input", k, t, &f);

        if (ok && !r->inputs[k]) {
            size_t bytes = f.elements * mdl_dtype_bytes(f.dtype);
            r->inputs[k] = buffer(r, bytes, r->way->odd);
            memcpy(r->inputs[k], f.data, bytes);
        }
        tensor_file_deinit(&f);
        if (!ok) {
            return CASE_FAIL;
        }
    }
    for (size_t k = 0; k < r->m->input_count; k++) {
        if (!r->inputs[k]) {
            SAY(r, "no data for input %zu ('%.100s')", k, r->m->inputs[k].name);
            return CASE_FAIL;
        }
    }
    return CASE_PASS;
}

/* A picture goes in as a client's image does: through the entry op's output where there is one. */
static enum verdict run_picture(struct run *r, struct krn_mem *mem, const struct krn_exec *exec,
                                size_t *ret_skip)
{
    const struct mdl_io *in = &r->m->inputs[0];
    struct mdl_preproc pre = {.known = true, .bgr = r->c->bgr};
    struct picture p;

    for (size_t c = 0; c < 3; c++) {
        pre.mean[c] = r->c->mean[c];
        pre.std[c] = r->c->std;
    }
    if (picture_read(r->c->inputs[0], &p) < 0) {
        SAY(r, "cannot read %s", r->c->inputs[0]);
        return CASE_FAIL;
    }
    struct krn_image img = {.format = KRN_PIX_RGB24,
                            .width = p.width,
                            .height = p.height,
                            .stride = p.width * 3,
                            .data = p.rgb};
    size_t t = in->tensor;
    void *dst;

    r->inputs[0] = NULL;
    *ret_skip = in->entry_op;
    if (in->entry_op != MDL_NONE) {
        t = r->m->ops[in->entry_op].out[0];
        dst = krn_tensor_ptr(r->m, t, mem);
    } else {
        dst = mem->arena + r->m->storages[r->m->tensors[t].storage].offset;
        r->inputs[0] = dst;
    }
    krn_preprocess(&img, &pre, &r->m->tensors[t], dst, exec);
    free(p.rgb);
    return CASE_PASS;
}

static double value(const void *p, enum mdl_dtype t, size_t i)
{
    switch (t) {
    case MDL_F32: {
        float v;
        memcpy(&v, (const char *)p + i * sizeof(v), sizeof(v));
        return (double)v;
    }
    case MDL_I32: {
        int32_t v;
        memcpy(&v, (const char *)p + i * sizeof(v), sizeof(v));
        return v;
    }
    case MDL_I64: {
        int64_t v;
        memcpy(&v, (const char *)p + i * sizeof(v), sizeof(v));
        return (double)v;
    }
    case MDL_I8:
        return ((const int8_t *)p)[i];
    default:
        return ((const uint8_t *)p)[i];
    }
}

static bool is_byte(enum mdl_dtype t)
{
    return t == MDL_U8 || t == MDL_I8;
}

static bool compare(struct run *r, size_t k, const struct tensor_file *f)
{
    double most = 0, step = r->c->ties && is_byte(f->dtype) ? 1 : 0;
    size_t top = 0, our_top = 0;

    for (size_t i = 0; i < f->elements; i++) {
        double e = fabs(value(f->data, f->dtype, i));
        most = isfinite(e) ? fmax(most, e) : most;
    }
    for (size_t i = 0; i < f->elements; i++) {
        double e = value(f->data, f->dtype, i), y = value(r->outputs[k], f->dtype, i);
        double accept = f->dtype == MDL_F32 ? r->c->atol + (r->c->rtol + f->rounding) * fabs(e) +
                                                  r->c->max_tol * most
                                            : step;

        top = e > value(f->data, f->dtype, top) ? i : top;
        our_top = y > value(r->outputs[k], f->dtype, our_top) ? i : our_top;
        if (y == e || (isnan(y) && isnan(e))) {
            continue;
        }
        if (!(fabs(y - e) <= accept)) {
            SAY(r, "output %zu[%zu] is %.9g, expected %.9g", k, i, y, e);
            return false;
        }
        r->worst = fmax(r->worst, fabs(y - e) / accept);
    }
    if (r->c->top && top != our_top) {
        SAY(r, "output %zu is largest at %zu, expected %zu", k, our_top, top);
        return false;
    }
    return true;
}

/* Return: whether output @k counts the rows of another, and is none of the file's. */
static bool is_count(const struct run *r, size_t k)
{
    for (size_t i = 0; i < r->m->output_count && k >= r->c->output_count; i++) {
        if (r->m->outputs[i].rows_output == k + 1) {
            return true;
        }
    }
    return false;
}

/* Moves the valid rows of output @k together. *t: its tensor. Return: false if what follows them is
 * not 0. */
static bool cut_rows(struct run *r, size_t k, struct mdl_tensor *t)
{
    const struct mdl_io *io = &r->m->outputs[k];
    size_t size = mdl_dtype_bytes(t->dtype), inner = size, outer = 1, most = t->dim[io->rows_dim];
    uint8_t *data = r->outputs[k], *to = data;
    bool clean = true;
    int64_t rows;

    if (io->rows_output == 0) {
        return true;
    }
    memcpy(&rows, r->outputs[io->rows_output - 1], sizeof(rows));
    for (size_t d = 0; d < t->rank; d++) {
        outer *= d < io->rows_dim ? t->dim[d] : 1;
        inner *= d > io->rows_dim ? t->dim[d] : 1;
    }
    for (size_t i = 0; i < outer; i++) {
        for (size_t b = (size_t)rows * inner; b < most * inner; b++) {
            clean &= data[i * most * inner + b] == 0;
        }
        memmove(to, data + i * most * inner, (size_t)rows * inner);
        to += (size_t)rows * inner;
    }
    t->dim[io->rows_dim] = (size_t)rows;
    return clean;
}

static enum verdict check_outputs(struct run *r)
{
    struct mdl_tensor shape[CASE_FILES_MAX];

    for (size_t k = 0; k < r->m->output_count; k++) {
        shape[k] = r->m->tensors[r->m->outputs[k].tensor];
        if (!cut_rows(r, k, &shape[k])) {
            SAY(r, "output %zu has no zeros after its valid rows", k);
            return CASE_FAIL;
        }
    }
    for (size_t k = 0; k < r->m->output_count; k++) {
        struct tensor_file f;
        const char *error;

        if (!guards_intact(r->outputs[k], r->m->outputs[k].bytes)) {
            SAY(r, "bytes beside output %zu were written", k);
            return CASE_FAIL;
        }
        if (is_count(r, k)) {
            continue;
        }
        if (k >= r->c->output_count || tensor_file_read(r->c->outputs[k], &f, &error) < 0) {
            SAY(r, "output %zu: %s", k, k < r->c->output_count ? error : "no data");
            return CASE_FAIL;
        }
        bool ok = check_shape(r, "output", k, &shape[k], &f) && compare(r, k, &f);

        tensor_file_deinit(&f);
        if (!ok) {
            return CASE_FAIL;
        }
    }
    return CASE_PASS;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && strcmp(s + n - k, end) == 0;
}

/* Runs all ops, leaving out @skip. */
static void run_all(const struct run *r, size_t skip, const struct krn_mem *mem,
                    const struct krn_exec *exec)
{
    for (size_t i = 0; i < r->m->op_count; i++) {
        if (i != skip) {
            krn_net_run_ops(r->net, i, i, mem, exec);
        }
    }
}

static enum verdict run_way(struct run *r)
{
    enum verdict v = load(r);
    bool picture = r->c->input_count == 1 && ends_with(r->c->inputs[0], ".ppm");
    size_t skip = MDL_NONE;

    if (v != CASE_PASS || (!picture && (v = read_tensors(r)) != CASE_PASS)) {
        return v;
    }
    struct krn_exec exec = {.width = r->way->width};
    size_t scratch_bytes = krn_net_scratch_bytes(r->net, exec.width);
    uint8_t *arena = buffer(r, r->m->arena_bytes, false);
    uint8_t *scratch = buffer(r, scratch_bytes, false);
    struct krn_mem mem = {
        .arena = arena, .inputs = (const void *const *)r->inputs, .outputs = r->outputs};

    exec.scratch = scratch;
    for (size_t k = 0; k < r->m->output_count; k++) {
        r->outputs[k] = buffer(r, r->m->outputs[k].bytes, r->way->odd);
    }
    if (picture && (v = run_picture(r, &mem, &exec, &skip)) != CASE_PASS) {
        return v;
    }
    if (r->way->threads) {
        exec.pool = kept_pool(exec.width);
    }
    run_all(r, skip, &mem, &exec);
    kept_pool_rest(exec.pool, exec.width);
    if (!guards_intact(arena, r->m->arena_bytes) || !guards_intact(scratch, scratch_bytes)) {
        SAY(r, "bytes beside the arena or the scratch were written");
        return CASE_FAIL;
    }
    return check_outputs(r);
}

enum verdict case_run(const struct conformance_case *c, char text[1024])
{
    double worst = 0;

    for (size_t i = 0; i < base_array_count(ways); i++) {
        /* threads only on request: three on two cores wait for each other most of the time */
        if (c->ways ? !strstr(c->ways, ways[i].name) : ways[i].threads || ways[i].measured) {
            continue;
        }
        struct run r = {.c = c, .way = &ways[i], .text = text};
        enum verdict v = run_way(&r);

        worst = fmax(worst, r.worst);
        run_deinit(&r);
        if (v != CASE_PASS) {
            return v;
        }
    }
    snprintf(text, 1024, "%.2g of the tolerance", worst);
    return CASE_PASS;
}
