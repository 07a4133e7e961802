/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/functions.h"

#include "base/base.h"
#include "model/common/pool.h"
#include "model/common/private.h"
#include "model/onnx/node.h"
#include "model/onnx/schema.h"
#include "model/onnx/scope.h"
#include "model/onnx/tensor.h"
#include "model/onnx/versions.h"
#include "onnx.pb-c.h"

struct nodes {
    struct mdl_gnode *list;
    size_t count, cap;
};

/* ---- which function ---- */

static const char *domain_of(const char *domain)
{
    return strcmp(mdl_onnx_text(domain), "ai.onnx") == 0 ? "" : mdl_onnx_text(domain);
}

/* The walk puts the overload where documentation was. */
static int compare(const Onnx__FunctionProto *f, const char *domain, const char *name,
                   const char *overload)
{
    int order = strcmp(domain_of(f->domain), domain);

    order = order ? order : strcmp(mdl_onnx_text(f->name), name);
    return order ? order : strcmp(mdl_onnx_text(f->doc_string), overload);
}

static int by_name(const void *a, const void *b)
{
    const Onnx__FunctionProto *x = *(const Onnx__FunctionProto *const *)a,
                              *y = *(const Onnx__FunctionProto *const *)b;

    return compare(x, domain_of(y->domain), mdl_onnx_text(y->name), mdl_onnx_text(y->doc_string));
}

int mdl_onnx_functions(struct mdl_onnx_reader *rd, const Onnx__ModelProto *model,
                       struct mdl_onnx_functions *ret)
{
    struct mdl_onnx_functions f = {.count = model->n_functions};

    f.list = mdl_pool_memdup(rd->graph->pool, model->functions, f.count * sizeof(*f.list));
    if (!f.list) {
        return -ENOMEM;
    }
    if (f.count) {
        qsort(f.list, f.count, sizeof(*f.list), by_name);
    }
    for (size_t i = 1; i < f.count; i++) {
        if (by_name(&f.list[i - 1], &f.list[i]) == 0) {
            return mdl_fail(rd->error, -EBADMSG, "function '%.100s' is defined twice",
                            mdl_onnx_text(f.list[i]->name));
        }
    }
    *ret = f;
    return 0;
}

static int call_compare(const void *call, const void *function)
{
    const Onnx__NodeProto *n = call;

    return -compare(*(const Onnx__FunctionProto *const *)function, domain_of(n->domain),
                    mdl_onnx_text(n->op_type), mdl_onnx_text(n->doc_string));
}

static const Onnx__FunctionProto *find(const struct mdl_onnx_functions *f, const Onnx__NodeProto *n)
{
    const Onnx__FunctionProto **found =
        f->count ? bsearch(n, f->list, f->count, sizeof(*f->list), call_compare) : NULL;

    return found ? *found : NULL;
}

/* Return: the function whose body is read; NULL: the graph itself is. */
static const Onnx__FunctionProto *around(const struct mdl_onnx_reader *rd)
{
    const struct mdl_onnx_scope *s = rd->scope;

    while (s && !s->of) {
        s = s->around;
    }
    return s ? s->of : NULL;
}

int mdl_onnx_nomem(const struct mdl_onnx_reader *rd)
{
    const Onnx__FunctionProto *f = around(rd);
    size_t cap;

    if (rd->error[0]) {
        return -ENOMEM; /* told already */
    }
    if (!mdl_pool_is_full(rd->graph->pool, &cap)) {
        return mdl_fail(rd->error, -ENOMEM, "out of memory");
    }
    return mdl_fail(rd->error, -E2BIG,
                    "%.150s%s%.80s: the graph takes more than %zu MiB, the limit for a file of its "
                    "size%s",
                    rd->where, f ? " in function " : "", f ? mdl_onnx_text(f->name) : "", cap >> 20,
                    f ? ", once functions are put in where they are called" : "");
}

/* ---- nodes ---- */

static int add_node(struct mdl_onnx_reader *rd, struct nodes *to, const struct mdl_gnode *n)
{
    if (!mdl_pool_grow(rd->graph->pool, (void **)&to->list, &to->cap, to->count, sizeof(*n))) {
        return -ENOMEM;
    }
    to->list[to->count++] = *n;
    return 0;
}

static int add_nodes(struct mdl_onnx_reader *rd, Onnx__NodeProto *const *nodes, size_t count,
                     struct nodes *to);

static bool is_default(const Onnx__NodeProto *n)
{
    return n->doc_string && strcmp(n->doc_string, MDL_WRAP_MARK) == 0;
}

/* The attributes of the call, and the defaults of those that it does not give. */
static int add_defaults(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f,
                        struct mdl_gnode *call)
{
    struct mdl_gattr *attrs =
        mdl_pool_alloc(rd->graph->pool, call->attr_count + f->n_node, sizeof(*attrs));
    size_t count = call->attr_count;

    if (!attrs) {
        return -ENOMEM;
    }
    if (count) {
        memcpy(attrs, call->attrs, count * sizeof(*attrs));
    }
    for (size_t i = 0; i < f->n_node; i++) {
        struct mdl_gnode holder = {0};
        int r;

        if (!is_default(f->node[i])) {
            continue;
        }
        r = mdl_onnx_attributes(rd, f->node[i], &holder);
        if (r < 0) {
            return r;
        }
        for (size_t k = 0; k < count && holder.attr_count; k++) {
            holder.attr_count = strcmp(attrs[k].name, holder.attrs[0].name) == 0 ? 0 : 1;
        }
        if (holder.attr_count) {
            attrs[count++] = holder.attrs[0];
        }
    }
    call->attrs = attrs;
    call->attr_count = count;
    return 0;
}

static int body_opset(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f, int64_t *ret)
{
    for (size_t i = 0; i < f->n_opset_import; i++) {
        if (domain_of(f->opset_import[i]->domain)[0] == '\0') {
            *ret = f->opset_import[i]->version;
            return mdl_onnx_check_opset(rd, *ret);
        }
    }
    return 0;
}

/* An output that is an input: what the caller names so is what it has given. */
static int pass_inputs(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f,
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
        in = mdl_pool_alloc(rd->graph->pool, 1, sizeof(*in));
        if (!in || !(in[0] = mdl_onnx_scope_name(rd, f->output[i])) || add_node(rd, to, &n) < 0) {
            return -ENOMEM;
        }
        to->list[to->count - 1].inputs = in;
    }
    return 0;
}

static int check_calls(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f)
{
    size_t depth = 0;

    for (const struct mdl_onnx_scope *s = rd->scope; s; s = s->of ? s->caller : s->around) {
        if (s->of == f) {
            return mdl_fail(rd->error, -EBADMSG, "%s: function '%.80s' calls itself", rd->where,
                            mdl_onnx_text(f->name));
        }
        depth++;
    }
    if (depth > MDL_CALL_DEPTH_MAX) {
        return mdl_fail(rd->error, -E2BIG, "%s: functions and branches are nested deeper than %u",
                        rd->where, MDL_CALL_DEPTH_MAX);
    }
    return 0;
}

static int expand(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f, struct mdl_gnode *call,
                  struct nodes *to)
{
    const struct mdl_onnx_scope *before = rd->scope;
    struct mdl_onnx_scope scope;
    int r = check_calls(rd, f);

    if (r == 0 && (call->input_count > f->n_input || call->output_count > f->n_output)) {
        r = mdl_fail(rd->error, -EBADMSG,
                     "%s: %zu inputs and %zu outputs; function '%.80s' has %zu and %zu", rd->where,
                     call->input_count, call->output_count, mdl_onnx_text(f->name), f->n_input,
                     f->n_output);
    }
    r = r < 0 ? r : add_defaults(rd, f, call);
    r = r < 0 ? r : mdl_onnx_scope_body(rd, f, call, &scope);
    if (r < 0) {
        return r;
    }
    rd->scope = &scope;
    r = body_opset(rd, f, &scope.opset);
    r = r < 0 ? r : add_nodes(rd, f->node, f->n_node, to);
    r = r < 0 ? r : pass_inputs(rd, f, call, to);
    r = r == -ENOMEM ? mdl_onnx_nomem(rd) : r;
    rd->scope = before;
    return r;
}

static int add_nodes(struct mdl_onnx_reader *rd, Onnx__NodeProto *const *nodes, size_t count,
                     struct nodes *to)
{
    for (size_t i = 0; i < count; i++) {
        const Onnx__FunctionProto *f = around(rd);
        struct mdl_gnode n = {0};
        int r;

        if (++rd->expanded > MDL_WALK_MESSAGES_MAX) {
            return mdl_fail(rd->error, -E2BIG,
                            "more than %u nodes once functions are put in where they are called"
                            "%s%.80s",
                            MDL_WALK_MESSAGES_MAX, f ? ", at last in function " : "",
                            f ? mdl_onnx_text(f->name) : "");
        }
        if (is_default(nodes[i])) {
            continue;
        }
        r = mdl_onnx_node(rd, nodes[i], i, &n);
        if (r < 0) {
            return r;
        }
        f = find(rd->functions, nodes[i]);
        r = f ? expand(rd, f, &n, to) : add_node(rd, to, &n);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int mdl_onnx_nodes(struct mdl_onnx_reader *rd, Onnx__NodeProto *const *nodes, size_t count,
                   struct mdl_gnode **ret, size_t *ret_count)
{
    struct nodes to = {0};
    int r = add_nodes(rd, nodes, count, &to);

    if (r < 0) {
        return r;
    }
    *ret = to.list;
    *ret_count = to.count;
    return 0;
}

/* ---- branches ---- */

int mdl_onnx_initializer(struct mdl_onnx_reader *rd, const Onnx__TensorProto *t, size_t index)
{
    struct mdl_graph *g = rd->graph;
    struct mdl_gtensor *to;
    int r;

    snprintf(rd->where, sizeof(rd->where), "initializer %zu '%.100s'", index,
             mdl_onnx_text(t->name));
    if (mdl_onnx_text(t->name)[0] == '\0') {
        return mdl_fail(rd->error, -EBADMSG, "%s has no name", rd->where);
    }
    if (!mdl_pool_grow(g->pool, (void **)&g->initializers, &rd->initializer_cap,
                       g->initializer_count, sizeof(*g->initializers))) {
        return -ENOMEM;
    }
    to = &g->initializers[g->initializer_count];
    r = mdl_onnx_tensor(rd, t, NULL, to);
    if (r == 0) {
        to->name = mdl_onnx_scope_name(rd, to->name);
        r = to->name ? 0 : -ENOMEM;
        g->initializer_count += r == 0;
    }
    return r;
}

/* In the present scope. */
static int value_names(struct mdl_onnx_reader *rd, Onnx__ValueInfoProto *const *values,
                       size_t count, const char *const **ret)
{
    const char **list = mdl_pool_alloc(rd->graph->pool, count, sizeof(*list));

    for (size_t i = 0; list && i < count; i++) {
        list[i] = mdl_onnx_scope_name(rd, mdl_onnx_text(values[i]->name));
        if (!list[i]) {
            return -ENOMEM;
        }
    }
    *ret = list;
    return list ? 0 : -ENOMEM;
}

/* What cannot be read is as if the file did not declare it. */
static int read_declared(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p,
                         const struct mdl_gvalue **ret)
{
    struct mdl_gvalue *list = mdl_pool_alloc(rd->graph->pool, p->n_output, sizeof(*list));

    for (size_t i = 0; list && i < p->n_output; i++) {
        if (rd->value(rd, p->output[i], "output", &list[i]) < 0) {
            list[i] = (struct mdl_gvalue){0};
            rd->error[0] = '\0';
        }
    }
    *ret = list;
    return list ? 0 : -ENOMEM;
}

int mdl_onnx_branch(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p, const char *label,
                    const struct mdl_gbranch **ret)
{
    const struct mdl_onnx_scope *before = rd->scope;
    struct mdl_gbranch *b = mdl_pool_alloc(rd->graph->pool, 1, sizeof(*b));
    struct mdl_onnx_scope scope;
    struct mdl_gnode *nodes;
    char where[sizeof(rd->where)];
    int r = b ? mdl_onnx_scope_branch(rd, p, label, &scope) : -ENOMEM;

    if (r < 0) {
        return r;
    }
    memcpy(where, rd->where, sizeof(where));
    rd->scope = &scope;
    for (size_t i = 0; r == 0 && i < p->n_initializer; i++) {
        r = mdl_onnx_initializer(rd, p->initializer[i], i);
    }
    r = r < 0 ? r : mdl_onnx_nodes(rd, p->node, p->n_node, &nodes, &b->node_count);
    r = r < 0 ? r : value_names(rd, p->input, p->n_input, &b->inputs);
    r = r < 0 ? r : value_names(rd, p->output, p->n_output, &b->outputs);
    if (r == 0 && p->n_input > 0) { /* the branches of an If have none */
        r = read_declared(rd, p, &b->declared);
    }
    rd->scope = before;
    if (r < 0) {
        return r;
    }
    memcpy(rd->where, where, sizeof(where));
    b->nodes = nodes;
    b->input_count = p->n_input;
    b->output_count = p->n_output;
    *ret = b;
    return 0;
}
