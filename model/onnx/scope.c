/* SPDX-License-Identifier: Apache-2.0 */
/* What a name means inside a function or a branch. */
#include "model/onnx/reader.h"
#include "onnx.pb-c.h"

#define PREFIX_NAME_MAX 120u /* bytes of a prefix before its number */

/* The scope of the body that is read, perhaps around a branch; NULL: the graph itself is read. */
static const struct mdl_onnx_scope *body(const struct mdl_onnx_reader *rd)
{
    const struct mdl_onnx_scope *s = rd->scope;

    while (s && !s->of) {
        s = s->around;
    }
    return s;
}

const Onnx__FunctionProto *mdl_onnx_scope_body_of(const struct mdl_onnx_reader *rd)
{
    return body(rd) ? body(rd)->of : NULL;
}

void mdl_onnx_leave(struct mdl_onnx_reader *rd, int code)
{
    rd->failure = code;
    longjmp(*rd->leave, 1);
}

/* The file asks for more than it may, or memory is short. */
void *mdl_onnx_made(struct mdl_onnx_reader *rd, void *made)
{
    const Onnx__FunctionProto *f = mdl_onnx_scope_body_of(rd);
    size_t cap;

    if (made) {
        return made;
    }
    if (!mdl_pool_is_full(rd->graph->pool, &cap)) {
        mdl_onnx_refuse(rd, -ENOMEM, "out of memory");
    }
    mdl_onnx_refuse(rd, -E2BIG,
                    "%.150s%s%.80s: the graph takes more than %zu MiB, the limit for a file of its "
                    "size%s",
                    rd->where, f ? " in function " : "", f ? mdl_onnx_text(f->name) : "", cap >> 20,
                    f ? ", once functions are put in where they are called" : "");
}

void *mdl_onnx_alloc(struct mdl_onnx_reader *rd, size_t count, size_t size)
{
    return mdl_onnx_made(rd, mdl_pool_alloc(rd->graph->pool, count, size));
}

/* ---- names ---- */

static int by_inner(const void *a, const void *b)
{
    const struct mdl_onnx_name *x = a, *y = b;

    return strcmp(x->inner, y->inner);
}

static const char *find(const struct mdl_onnx_scope *s, const char *name)
{
    struct mdl_onnx_name key = {.inner = name};
    const struct mdl_onnx_name *n =
        s->count ? bsearch(&key, s->names, s->count, sizeof(*s->names), by_inner) : NULL;

    return n ? n->outer : NULL;
}

static const char *with_prefix(struct mdl_onnx_reader *rd, const char *prefix, const char *name)
{
    return mdl_onnx_made(rd, mdl_pool_printf(rd->graph->pool, "%s%s", prefix, name));
}

const char *mdl_onnx_scope_name(struct mdl_onnx_reader *rd, const char *name)
{
    const struct mdl_onnx_scope *s = rd->scope;

    if (name[0] == '\0') {
        return name;
    }
    for (; s; s = s->around) {
        const char *outer = find(s, name);

        if (outer) {
            return outer;
        }
        if (s->of) {
            return with_prefix(rd, s->prefix, name); /* it is not made: never a name outside */
        }
    }
    return name;
}

const char *const *mdl_onnx_scope_names(struct mdl_onnx_reader *rd, char *const *names,
                                        size_t count)
{
    const char **list;

    if (!rd->scope) {
        return (const char *const *)names;
    }
    list = mdl_onnx_alloc(rd, count, sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        list[i] = mdl_onnx_scope_name(rd, names[i]);
    }
    return list;
}

const struct mdl_gattr *mdl_onnx_scope_attr(const struct mdl_onnx_reader *rd, const char *name)
{
    const struct mdl_onnx_scope *s = body(rd);

    for (size_t i = 0; s && i < s->attr_count; i++) {
        if (strcmp(s->attrs[i].name, name) == 0) {
            return &s->attrs[i];
        }
    }
    return NULL;
}

/* "call#3/": the number makes it unique. */
static const char *prefix_new(struct mdl_onnx_reader *rd, const char *label)
{
    size_t n = strnlen(label, PREFIX_NAME_MAX);

    while (n > 0 && ((unsigned char)label[n] & 0xc0) == 0x80) {
        n--; /* not inside a character */
    }
    return mdl_onnx_made(rd,
                         mdl_pool_printf(rd->graph->pool, "%.*s#%zu/", (int)n, label, ++rd->calls));
}

static void add_name(struct mdl_onnx_reader *rd, struct mdl_onnx_scope *s, const char *name)
{
    const char *outer = with_prefix(rd, s->prefix, mdl_onnx_text(name));

    s->names[s->count++] = (struct mdl_onnx_name){mdl_onnx_text(name), outer};
}

static size_t count_outputs(Onnx__NodeProto *const *nodes, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        n += nodes[i]->n_output;
    }
    return n;
}

static void add_outputs(struct mdl_onnx_reader *rd, struct mdl_onnx_scope *s,
                        Onnx__NodeProto *const *nodes, size_t count)
{
    size_t known = s->count;

    if (known) {
        qsort(s->names, known, sizeof(*s->names), by_inner);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < nodes[i]->n_output; k++) {
            const char *name = nodes[i]->output[k];
            struct mdl_onnx_scope before = {.names = s->names, .count = known};

            if (name[0] != '\0' && !find(&before, name)) {
                add_name(rd, s, name);
            }
        }
    }
    if (s->count) {
        qsort(s->names, s->count, sizeof(*s->names), by_inner);
    }
}

struct mdl_onnx_scope mdl_onnx_scope_branch(struct mdl_onnx_reader *rd, const Onnx__GraphProto *p,
                                            const char *label)
{
    size_t most = p->n_input + p->n_initializer + count_outputs(p->node, p->n_node);
    struct mdl_onnx_scope s = {.around = rd->scope,
                               .opset = rd->scope ? rd->scope->opset : rd->graph->opset};

    s.prefix = prefix_new(rd, label);
    s.names = mdl_onnx_alloc(rd, most, sizeof(*s.names));
    for (size_t i = 0; i < p->n_input; i++) {
        add_name(rd, &s, p->input[i]->name);
    }
    for (size_t i = 0; i < p->n_initializer; i++) {
        add_name(rd, &s, p->initializer[i]->name);
    }
    add_outputs(rd, &s, p->node, p->n_node);
    return s;
}

bool mdl_onnx_is_input(const Onnx__FunctionProto *f, const char *name)
{
    for (size_t i = 0; i < f->n_input; i++) {
        if (strcmp(f->input[i], name) == 0) {
            return true;
        }
    }
    return false;
}

struct mdl_onnx_scope mdl_onnx_scope_body(struct mdl_onnx_reader *rd, const Onnx__FunctionProto *f,
                                          const struct mdl_gnode *call)
{
    size_t most = f->n_input + f->n_output + count_outputs(f->node, f->n_node);
    struct mdl_onnx_scope s = {.caller = rd->scope,
                               .of = f,
                               .attrs = call->attrs,
                               .attr_count = call->attr_count,
                               .opset = rd->graph->opset};

    s.prefix = prefix_new(rd, call->name[0] ? call->name : call->op_type);
    s.names = mdl_onnx_alloc(rd, most, sizeof(*s.names));
    for (size_t i = 0; i < f->n_input; i++) {
        s.names[s.count++] =
            (struct mdl_onnx_name){f->input[i], i < call->input_count ? call->inputs[i] : ""};
    }
    for (size_t i = 0; i < base_min(f->n_output, call->output_count); i++) {
        if (call->outputs[i][0] != '\0' && !mdl_onnx_is_input(f, f->output[i])) {
            s.names[s.count++] = (struct mdl_onnx_name){f->output[i], call->outputs[i]};
        }
    }
    add_outputs(rd, &s, f->node, f->n_node);
    return s;
}
