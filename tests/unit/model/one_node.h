/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/model/one_node.h - a node with given inputs, and what it must give: as lines of a
 * table
 *
 *     {13, "Add", "", {"f[2] 1 2", "=f[1] 10"}, "f[2] 11 12"},
 *     {13, "Add", "", {"f[2] 1 2", "i[1] 10"}, "!must be equal"},
 *
 * Types: f f32, i i32, l i64, u u8, c i8, b bool. Too few values repeat. An input with = is always
 * a constant; the others come at run time and then, once more, as constants, which are folded. An
 * expected text after ! is part of the reason for a refusal. "-" is an absent input.
 */
#pragma once

#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

#define ONE_NODE_INPUTS 6

struct one_node {
    int opset;
    const char *op;
    const char *attrs; /* "name=1,2" ints, "name:3" int, "name'text" string, "name~1.5" float */
    const char *in[ONE_NODE_INPUTS];
    const char *want;
};

struct one_node_tensor {
    bool constant;
    enum mdl_dtype dtype;
    size_t rank, dim[MDL_RANK_MAX], elements;
    double value[512];
};

static inline size_t one_node_list(const char **text, char end, double *value, size_t most)
{
    size_t count = 0;
    char *next;

    while (**text && **text != end) {
        gb_need(count < most);
        value[count++] = strtod(*text, &next);
        gb_need(next != *text);
        *text = next + strspn(next, ", ");
    }
    return count;
}

static inline struct one_node_tensor one_node_parse(const char *text)
{
    static const char types[MDL_DTYPE_COUNT + 1] = {
        [MDL_F32] = 'f', [MDL_I32] = 'i', [MDL_I64] = 'l',
        [MDL_U8] = 'u',  [MDL_I8] = 'c',  [MDL_BOOL] = 'b'};
    struct one_node_tensor t = {.constant = *text == '=', .elements = 1};
    double dim[MDL_RANK_MAX];
    const char *type;
    size_t given;

    text += t.constant;
    type = strchr(types, *text);
    gb_need(type && *text && text[1] == '[');
    t.dtype = (enum mdl_dtype)(type - types);
    text += 2;
    t.rank = one_node_list(&text, ']', dim, MDL_RANK_MAX);
    for (size_t i = 0; i < t.rank; i++) {
        t.dim[i] = (size_t)dim[i];
        t.elements *= t.dim[i];
    }
    gb_need(t.elements <= base_array_count(t.value));
    text += strspn(text, "] ");
    given = one_node_list(&text, '\0', t.value, base_array_count(t.value));
    for (size_t i = given; given && i < t.elements; i++) {
        t.value[i] = t.value[i % given];
    }
    return t;
}

/* writes the values as elements */
static inline void one_node_store(const struct one_node_tensor *t, void *data)
{
    for (size_t i = 0; i < t->elements; i++) {
        switch (t->dtype) {
        case MDL_F32:
            ((float *)data)[i] = (float)t->value[i];
            break;
        case MDL_I32:
            ((int32_t *)data)[i] = (int32_t)t->value[i];
            break;
        case MDL_I64:
            ((int64_t *)data)[i] = (int64_t)t->value[i];
            break;
        default:
            ((uint8_t *)data)[i] = (uint8_t)(int)t->value[i];
            break;
        }
    }
}

static inline double one_node_load(const void *data, enum mdl_dtype dtype, size_t i)
{
    switch (dtype) {
    case MDL_F32:
        return (double)((const float *)data)[i];
    case MDL_I32:
        return ((const int32_t *)data)[i];
    case MDL_I64:
        return (double)((const int64_t *)data)[i];
    case MDL_I8:
        return ((const int8_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

static inline void one_node_attrs(struct gb *g, const char *text)
{
    char *copy = mdl_pool_strdup(g->pool, text), *save = NULL;

    for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        char *sep = s + strcspn(s, "=:'~"), kind = *sep;
        int64_t values[2 * MDL_RANK_MAX];
        double real[2 * MDL_RANK_MAX];
        const char *at = ++sep;
        size_t count = 0;

        sep[-1] = '\0';
        if (kind == '\'') {
            gb_string(g, s, sep);
            continue;
        }
        count = one_node_list(&at, '\0', real, base_array_count(real));
        for (size_t i = 0; i < count; i++) {
            values[i] = (int64_t)real[i];
        }
        if (kind == '=') {
            gb_ints(g, s, count, values);
        } else if (kind == ':') {
            gb_int(g, s, values[0]);
        } else {
            gb_float(g, s, (float)real[0]);
        }
    }
}

/* The graph of @c; @constant: all inputs are. Return: the model, or NULL with g->error. */
static inline struct mdl_model *one_node_compile(const struct one_node *c, bool constant,
                                                 struct gb *g)
{
    char names[128] = "", name[8];

    gb_init(g, c->opset);
    for (size_t i = 0; i < ONE_NODE_INPUTS && c->in[i]; i++) {
        struct one_node_tensor t;
        int64_t dim[MDL_RANK_MAX];
        uint64_t data[512];

        if (strcmp(c->in[i], "-") == 0) {
            strcat(names, "- ");
            continue;
        }
        t = one_node_parse(c->in[i]);
        snprintf(name, sizeof(name), "x%zu", i);
        strcat(strcat(names, name), " ");
        if (constant || t.constant) {
            one_node_store(&t, data);
            gb_const(g, name, t.dtype, t.rank, t.dim, data);
            continue;
        }
        for (size_t k = 0; k < t.rank; k++) {
            dim[k] = (int64_t)t.dim[k];
        }
        gb_typed_input(g, name, t.dtype, t.rank, dim);
    }
    gb_node(g, c->op, "it", names, "y");
    one_node_attrs(g, c->attrs);
    gb_output(g, "y");
    return gb_compile(g, NULL);
}

/* Runs the model on the case's run-time inputs. Return: false if there is no net for it. */
static inline bool one_node_run(const struct one_node *c, struct run_model *r)
{
    struct krn_mem mem = {r->arena, (const void *const *)r->inputs, r->outputs};
    struct krn_exec exec = {.width = 1, .scratch = r->scratch};
    size_t at = 0;

    if (!r->net) {
        return false;
    }
    for (size_t i = 0; i < ONE_NODE_INPUTS && c->in[i]; i++) {
        if (strcmp(c->in[i], "-") != 0 && c->in[i][0] != '=' && at < r->m->input_count) {
            struct one_node_tensor t = one_node_parse(c->in[i]);

            one_node_store(&t, r->inputs[at++]);
        }
    }
    krn_net_run_ops(r->net, 0, r->m->op_count - 1, &mem, &exec);
    return true;
}

/* Return: whether y is what the case wants, within 1e-5; else prints both. */
static inline bool one_node_same(const struct one_node *c, const struct run_model *r)
{
    const struct mdl_tensor *y = gb_out(r->m, 0);
    struct one_node_tensor want = one_node_parse(c->want);
    bool same = y->dtype == want.dtype && y->rank == want.rank &&
                memcmp(y->dim, want.dim, want.rank * sizeof(*want.dim)) == 0;

    if (!same) {
        fprintf(stderr, "%s %s: another type or shape than %s\n", c->op, c->attrs, c->want);
    }
    for (size_t i = 0; same && i < want.elements; i++) {
        double got = one_node_load(r->outputs[0], y->dtype, i), e = want.value[i];

        same = got == e || (isnan(got) && isnan(e)) || fabs(got - e) <= 1e-5 * fmax(1, fabs(e));
        if (!same) {
            fprintf(stderr, "%s %s: y[%zu] is %.9g, expected %.9g\n", c->op, c->attrs, i, got, e);
        }
    }
    return same;
}

/* Return: whether the case holds, with run-time inputs and with constants. */
static inline bool one_node_check(const struct one_node *c)
{
    bool ok = true;

    for (int constant = 0; ok && constant < 2; constant++) {
        struct gb *g = malloc(sizeof(*g));
        struct mdl_model *m = one_node_compile(c, constant, g);
        struct run_model r = {0};

        if (c->want[0] == '!') {
            ok = !m && strstr(g->error, c->want + 1);
        } else if (m) {
            run_model_init(&r, m);
            ok = one_node_run(c, &r) && one_node_same(c, &r);
        }
        if (!ok || (!m && c->want[0] != '!')) {
            fprintf(stderr, "opset %d %s %s of %s%s: \"%s\", expected \"%s\"\n", c->opset, c->op,
                    c->attrs, c->in[0], constant ? " (constant)" : "", m ? "compiled" : g->error,
                    c->want);
            ok = false;
        }
        run_model_deinit(&r);
        mdl_free(m);
        gb_free(g);
        free(g);
        if (c->want[0] == '!') {
            break; /* constants may be refused for other reasons */
        }
    }
    return ok;
}
