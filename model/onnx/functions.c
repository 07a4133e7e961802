/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, and calls of the model's own functions. */
#include "model/onnx/reader.h"
#include "onnx.pb-c.h"

#define CALL_DEPTH_MAX 64u

struct nodes {
    struct mdl_gnode *list;
    size_t count, cap;
};

/* ---- which function ---- */

/* The walk puts the overload where documentation was. */
static int compare(const Onnx__FunctionProto *f, const char *domain, const char *name,
                   const char *overload)
{
    int order = strcmp(mdl_onnx_domain(f->domain), domain);

    order = order ? order : strcmp(mdl_onnx_text(f->name), name);
    return order ? order : strcmp(mdl_onnx_text(f->doc_string), overload);
}

static int by_name(const void *a, const void *b)
{
    const Onnx__FunctionProto *x = *(const Onnx__FunctionProto *const *)a,
                              *y = *(const Onnx__FunctionProto *const *)b;

    return compare(x, mdl_onnx_domain(y->domain), mdl_onnx_text(y->name),
                   mdl_onnx_text(y->doc_string));
}

void mdl_onnx_functions(struct mdl_onnx_reader *rd, const Onnx__ModelProto *model)
{
    size_t count = model->n_functions, bytes = count * sizeof(*rd->functions);

    rd->functions = mdl_onnx_made(rd, mdl_pool_memdup(rd->graph->pool, model->functions, bytes));
    rd->function_count = count;
    if (count) {
        qsort(rd->functions, count, sizeof(*rd->functions), by_name);
    }
    for (size_t i = 1; i < count; i++) {
        if (by_name(&rd->functions[i - 1], &rd->functions[i]) == 0) {
            mdl_onnx_refuse(rd, -EBADMSG, "function '%.100s' is defined twice",
                            mdl_onnx_text(rd->functions[i]->name));
        }
    }
}

static int call_compare(const void *call, const void *function)
{
    const Onnx__NodeProto *n = call;

    return -compare(*(const Onnx__FunctionProto *const *)function, mdl_onnx_domain(n->domain),
                    mdl_onnx_text(n->op_type), mdl_onnx_text(n->doc_string));
}

static const Onnx__FunctionProto *find(const struct mdl_onnx_reader *rd, const Onnx__NodeProto *n)
{
    const Onnx__FunctionProto **found =
        rd->function_count
            ? bsearch(n, rd->functions, rd->function_count, sizeof(*rd->functions), call_compare)
            : NULL;

    return found ? *found : NULL;
}

/* ---- nodes ---- */

static void add_node(struct mdl_onnx_reader *rd, struct nodes *to, const struct mdl_gnode *n)
{
    if (!mdl_pool_grow(rd->graph->pool, (void **)&to->list, &to->cap, to->count, sizeof(*n))) {
        mdl_onnx_made(rd, NULL);
    }
    to->list[to->count++] = *n;
}

static void add_nodes(struct mdl_onnx_reader *rd, Onnx__NodeProto *const *nodes, size_t count,
                      struct nodes *to);

static bool is_default(const Onnx__NodeProto *n)
{
    return n->doc_string && strcmp(n->doc_string, MDL_WRAP_MARK) == 0;
}

/* The attributes of the call, and the defaults of those that it does not give. */
static void add_defaults(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f,
                         struct mdl_gnode *call)
{
    struct mdl_gattr *attrs = mdl_onnx_alloc(rd, call->attr_count + f->n_node, sizeof(*attrs));
    size_t count = call->attr_count;

    if (count) {
        memcpy(attrs, call->attrs, count * sizeof(*attrs));
    }
    for (size_t i = 0; i < f->n_node; i++) {
        struct mdl_gnode holder = {0};

        if (!is_default(f->node[i])) {
            continue;
        }
        mdl_onnx_attributes(rd, f->node[i], &holder);
        for (size_t k = 0; k < count && holder.attr_count; k++) {
            holder.attr_count = strcmp(attrs[k].name, holder.attrs[0].name) == 0 ? 0 : 1;
        }
        if (holder.attr_count) {
            attrs[count++] = holder.attrs[0];
        }
    }
    call->attrs = attrs;
    call->attr_count = count;
}

static void body_opset(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f, int64_t *ret)
{
    for (size_t i = 0; i < f->n_opset_import; i++) {
        if (mdl_onnx_domain(f->opset_import[i]->domain)[0] == '\0') {
            *ret = f->opset_import[i]->version;
            mdl_onnx_check_opset(rd, *ret);
            return;
        }
    }
}

/* An output that is an input: what the caller names so is what it has given. */
static void pass_inputs(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f,
                        const struct mdl_gnode *call, struct nodes *to)
{
    for (size_t i = 0; i < base_min(f->n_output, call->output_count); i++) {
        struct mdl_gnode n = {.op_type = "Identity",
                              .domain = "",
                              .name = call->name,
                              .input_count = 1,
                              .output_count = 1,
                              .outputs = &call->outputs[i],
                              .opset = rd->scope->opset};
        const char **in;

        if (!mdl_onnx_is_input(f, f->output[i]) || call->outputs[i][0] == '\0') {
            continue;
        }
        in = mdl_onnx_alloc(rd, 1, sizeof(*in));
        in[0] = mdl_onnx_scope_name(rd, f->output[i]);
        n.inputs = in;
        add_node(rd, to, &n);
    }
}

static void check_calls(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f)
{
    size_t depth = 0;

    for (const struct mdl_onnx_scope *s = rd->scope; s; s = s->of ? s->caller : s->around) {
        if (s->of == f) {
            mdl_onnx_refuse(rd, -EBADMSG, "%s: function '%.80s' calls itself", rd->where,
                            mdl_onnx_text(f->name));
        }
        depth++;
    }
    if (depth > CALL_DEPTH_MAX) {
        mdl_onnx_refuse(rd, -E2BIG, "%s: functions and branches are nested deeper than %u",
                        rd->where, CALL_DEPTH_MAX);
    }
}

static void expand(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f, struct mdl_gnode *call,
                   struct nodes *to)
{
    const struct mdl_onnx_scope *before = rd->scope;
    struct mdl_onnx_scope scope;

    check_calls(rd, f);
    if (call->input_count > f->n_input || call->output_count > f->n_output) {
        mdl_onnx_refuse(rd, -EBADMSG,
                        "%s: %zu inputs and %zu outputs; function '%.80s' has %zu and %zu",
                        rd->where, call->input_count, call->output_count, mdl_onnx_text(f->name),
                        f->n_input, f->n_output);
    }
    add_defaults(rd, f, call);
    scope = mdl_onnx_scope_body(rd, f, call);
    rd->scope = &scope;
    body_opset(rd, f, &scope.opset);
    add_nodes(rd, f->node, f->n_node, to);
    pass_inputs(rd, f, call, to);
    rd->scope = before;
}

static void add_nodes(struct mdl_onnx_reader *rd, Onnx__NodeProto *const *nodes, size_t count,
                      struct nodes *to)
{
    for (size_t i = 0; i < count; i++) {
        const Onnx__FunctionProto *f = mdl_onnx_scope_body_of(rd);
        struct mdl_gnode n = {0};

        if (++rd->expanded > MDL_WALK_MESSAGES_MAX) {
            mdl_onnx_refuse(rd, -E2BIG,
                            "more than %u nodes once functions are put in where they are called"
                            "%s%.80s",
                            MDL_WALK_MESSAGES_MAX, f ? ", at last in function " : "",
                            f ? mdl_onnx_text(f->name) : "");
        }
        if (is_default(nodes[i])) {
            continue;
        }
        mdl_onnx_node(rd, nodes[i], i, &n);
        f = find(rd, nodes[i]);
        if (f) {
            expand(rd, f, &n, to);
        } else {
            add_node(rd, to, &n);
        }
    }
}

void mdl_onnx_nodes(struct mdl_onnx_reader *rd, Onnx__NodeProto *const *nodes, size_t count,
                    struct mdl_gnode **ret, size_t *ret_count)
{
    struct nodes to = {0};

    add_nodes(rd, nodes, count, &to);
    *ret = to.list;
    *ret_count = to.count;
}

/* ---- branches ---- */

void mdl_onnx_initializer(struct mdl_onnx_reader *rd, const Onnx__TensorProto *t, size_t index)
{
    struct mdl_graph *g = rd->graph;
    struct mdl_gtensor *to;

    snprintf(rd->where, sizeof(rd->where), "initializer %zu '%.100s'", index,
             mdl_onnx_text(t->name));
    if (mdl_onnx_text(t->name)[0] == '\0') {
        mdl_onnx_refuse(rd, -EBADMSG, "%s has no name", rd->where);
    }
    if (!mdl_pool_grow(g->pool, (void **)&g->initializers, &rd->initializer_cap,
                       g->initializer_count, sizeof(*g->initializers))) {
        mdl_onnx_made(rd, NULL);
    }
    to = &g->initializers[g->initializer_count];
    *to = mdl_onnx_tensor(rd, t, NULL);
    to->name = mdl_onnx_scope_name(rd, to->name);
    g->initializer_count++;
}

/* In the present scope. */
static const char *const *value_names(struct mdl_onnx_reader *rd,
                                      Onnx__ValueInfoProto *const *values, size_t count)
{
    const char **list = mdl_onnx_alloc(rd, count, sizeof(*list));

    for (size_t i = 0; i < count; i++) {
        list[i] = mdl_onnx_scope_name(rd, mdl_onnx_text(values[i]->name));
    }
    return list;
}

/* What cannot be read is as if the file did not declare it. */
static const struct mdl_gvalue *read_declared(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p)
{
    struct mdl_gvalue *list = mdl_onnx_alloc(rd, p->n_output, sizeof(*list));

    for (size_t i = 0; i < p->n_output; i++) {
        if (mdl_onnx_value(rd, p->output[i], "output", &list[i]) < 0) {
            list[i] = (struct mdl_gvalue){0};
            rd->error[0] = '\0';
        }
    }
    return list;
}

const struct mdl_gbranch *mdl_onnx_branch(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p,
                                          const char *label)
{
    const struct mdl_onnx_scope *before = rd->scope;
    struct mdl_gbranch *b = mdl_onnx_alloc(rd, 1, sizeof(*b));
    struct mdl_onnx_scope scope = mdl_onnx_scope_branch(rd, p, label);
    struct mdl_gnode *nodes;
    char where[sizeof(rd->where)];

    memcpy(where, rd->where, sizeof(where));
    rd->scope = &scope;
    for (size_t i = 0; i < p->n_initializer; i++) {
        mdl_onnx_initializer(rd, p->initializer[i], i);
    }
    mdl_onnx_nodes(rd, p->node, p->n_node, &nodes, &b->node_count);
    b->inputs = value_names(rd, p->input, p->n_input);
    b->outputs = value_names(rd, p->output, p->n_output);
    if (p->n_input > 0) { /* the branches of an If have none */
        b->declared = read_declared(rd, p);
    }
    rd->scope = before;
    memcpy(rd->where, where, sizeof(where));
    b->nodes = nodes;
    b->input_count = p->n_input;
    b->output_count = p->n_output;
    return b;
}
