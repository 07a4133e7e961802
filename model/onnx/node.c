/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a node with its attributes, and what a file declares of a value, from protobuf-c's structs.
 */
#include "model/onnx/reader.h"
#include "onnx.pb-c.h"

#define NODE_ATTRS_MAX 256u

/* Old exporters omit the type: it follows from the field that is set, if only one is. */
static int guess_type(const Onnx__AttributeProto *a)
{
    int type = 0, count = 0;

#define GUESS(there, t)                                                                            \
    if (there) {                                                                                   \
        type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##t;                                         \
        count++;                                                                                   \
    }
    GUESS(a->has_f, FLOAT)
    GUESS(a->has_i, INT)
    GUESS(a->has_s, STRING)
    GUESS(a->t, TENSOR)
    GUESS(a->n_floats, FLOATS)
    GUESS(a->n_ints, INTS)
    GUESS(a->n_strings, STRINGS)
#undef GUESS
    return count == 1 ? type : 0;
}

static const char *copy_text(struct mdl_onnx_reader *rd, const ProtobufCBinaryData *b)
{
    return mdl_onnx_made(rd, mdl_pool_strndup(rd->graph->pool, b->data, b->len));
}

/* @label: for what is made in branches; NULL: a graph is not looked at. */
static void read_value(struct mdl_onnx_reader *rd, const Onnx__AttributeProto *a, const char *label,
                       struct mdl_gattr *out)
{
    int type = a->has_type ? (int)a->type : 0;
    struct mdl_gtensor *t;
    const char **list;

    switch (type ? type : guess_type(a)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        out->type = MDL_ATTR_FLOAT;
        out->f = a->f;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        out->type = MDL_ATTR_INT;
        out->i = a->i;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        out->type = MDL_ATTR_STRING;
        out->s = copy_text(rd, &a->s);
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        out->type = MDL_ATTR_TENSOR;
        if (!a->t) {
            mdl_onnx_refuse(rd, -EBADMSG, "%s: attribute '%.80s' has no tensor", rd->where,
                            out->name);
        }
        t = mdl_onnx_alloc(rd, 1, sizeof(*t));
        *t = mdl_onnx_tensor(rd, a->t, out->name);
        out->t = t;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        out->type = MDL_ATTR_FLOATS;
        out->floats = a->floats;
        out->count = a->n_floats;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        out->type = MDL_ATTR_INTS;
        out->ints = a->ints;
        out->count = a->n_ints;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        out->type = MDL_ATTR_STRINGS;
        list = mdl_onnx_alloc(rd, a->n_strings, sizeof(*list));
        for (size_t i = 0; i < a->n_strings; i++) {
            list[i] = copy_text(rd, &a->strings[i]);
        }
        out->strings = list;
        out->count = a->n_strings;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
        out->type = MDL_ATTR_OTHER;
        if (a->g && label) {
            out->type = MDL_ATTR_BRANCH;
            out->branch = rd->branch(rd, a->g, label);
        }
        break;
    default: /* sparse tensors, types: the compiler refuses the operator that has them */
        out->type = MDL_ATTR_OTHER;
        break;
    }
}

/* Reads an attribute, or takes it from the call of the function that the node is in. Return: false:
 * the call does not give it, and there is no default. */
static bool read_attr(struct mdl_onnx_reader *rd, const Onnx__AttributeProto *a, const char *label,
                      struct mdl_gattr *out)
{
    const char *ref = mdl_onnx_text(a->ref_attr_name);
    const struct mdl_gattr *given = ref[0] ? mdl_onnx_scope_attr(rd, ref) : NULL;

    out->name = mdl_onnx_text(a->name);
    if (out->name[0] == '\0') {
        mdl_onnx_refuse(rd, -EBADMSG, "%s: an attribute has no name", rd->where);
    }
    if (ref[0] == '\0') {
        read_value(rd, a, label, out);
        return true;
    }
    if (!rd->scope) {
        mdl_onnx_refuse(rd, -EBADMSG, "%s: attribute '%.80s' refers to a function's attribute",
                        rd->where, out->name);
    }
    if (given) {
        const char *name = out->name;

        *out = *given;
        out->name = name;
    }
    return given != NULL;
}

/* Return: what is made in the node's graphs is called after this; NULL: they are not read. */
static const char *branch_label(const Onnx__NodeProto *n)
{
    const char *op = mdl_onnx_text(n->op_type);

    if (strcmp(op, "If") != 0 && strcmp(op, "Loop") != 0) {
        return NULL;
    }
    return n->name && n->name[0] ? n->name : op;
}

void mdl_onnx_attributes(struct mdl_onnx_reader *rd, const Onnx__NodeProto *n,
                         struct mdl_gnode *out)
{
    struct mdl_gattr *attrs = mdl_onnx_alloc(rd, n->n_attribute, sizeof(*attrs));
    const char *label = branch_label(n);
    size_t count = 0;

    for (size_t i = 0; i < n->n_attribute; i++) {
        bool there = read_attr(rd, n->attribute[i], label, &attrs[count]);

        for (size_t k = 0; k < count; k++) {
            if (strcmp(attrs[k].name, attrs[count].name) == 0) {
                mdl_onnx_refuse(rd, -EBADMSG, "%s: attribute '%.80s' is given twice", rd->where,
                                attrs[count].name);
            }
        }
        count += there;
    }
    out->attrs = attrs;
    out->attr_count = count;
}

void mdl_onnx_node(struct mdl_onnx_reader *rd, const Onnx__NodeProto *n, size_t index,
                   struct mdl_gnode *out)
{
    out->name = mdl_onnx_text(n->name);
    if (rd->scope && out->name[0]) {
        out->name = mdl_onnx_made(
            rd, mdl_pool_printf(rd->graph->pool, "%s%s", rd->scope->prefix, out->name));
    }
    out->op_type = mdl_onnx_text(n->op_type);
    out->domain = mdl_onnx_domain(n->domain);
    out->input_count = n->n_input;
    out->output_count = n->n_output;
    out->opset = rd->scope ? rd->scope->opset : rd->graph->opset;
    out->inputs = mdl_onnx_scope_names(rd, n->input, n->n_input);
    out->outputs = mdl_onnx_scope_names(rd, n->output, n->n_output);
    snprintf(rd->where, sizeof(rd->where), "node %zu '%.80s' (%.40s)", index,
             out->name[0]        ? out->name
             : out->output_count ? out->outputs[0]
                                 : "",
             out->op_type);
    if (out->op_type[0] == '\0') {
        mdl_onnx_refuse(rd, -EBADMSG, "%s has no operator type", rd->where);
    }
    if (n->n_attribute > NODE_ATTRS_MAX) {
        mdl_onnx_refuse(rd, -E2BIG, "%s has %zu attributes, more than %u", rd->where,
                        n->n_attribute, NODE_ATTRS_MAX);
    }
    mdl_onnx_attributes(rd, n, out);
}

/* ---- graph inputs and outputs ---- */

/* Return: whether it names one dimension. Some exporters give all that are open the same word. */
static bool is_symbol(const char *text)
{
    static const char *const words[] = {"", "?", "*", "-1", "None", "none", "unk", "dynamic"};

    for (size_t i = 0; i < base_array_count(words); i++) {
        if (strcmp(text, words[i]) == 0) {
            return false;
        }
    }
    return true;
}

int mdl_onnx_value(struct mdl_onnx_reader *rd, const Onnx__ValueInfoProto *v, const char *what,
                   struct mdl_gvalue *out)
{
    const Onnx__TypeProto__Tensor *t = NULL;
    const struct mdl_onnx_type *type;

    out->name = mdl_onnx_text(v->name);
    snprintf(rd->where, sizeof(rd->where), "graph %s '%.80s'", what, out->name);
    if (out->name[0] == '\0') {
        return mdl_fail(rd->error, -EBADMSG, "%s has no name", rd->where);
    }
    if (v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
        t = v->type->tensor_type;
    }
    if (v->type && !t) {
        return mdl_fail(rd->error, -EOPNOTSUPP, "%s is not a tensor, and nothing else is supported",
                        rd->where);
    }
    if (!t || !t->has_elem_type || t->elem_type == 0) {
        return 0;
    }
    type = mdl_onnx_type(t->elem_type);
    if (!mdl_onnx_served(type)) {
        return mdl_fail(rd->error, -EOPNOTSUPP, "%s: element type %s is not supported", rd->where,
                        type->name);
    }
    out->has_dtype = true;
    out->dtype = type->dtype;
    out->stored = type->from == MDL_FROM_SAME ? NULL : type->name;
    out->narrow = type->narrow;
    if (!t->shape) {
        return 0;
    }
    out->rank = t->shape->n_dim;
    if (out->rank > MDL_RANK_MAX) {
        return mdl_fail(rd->error, -EOPNOTSUPP, "%s has %zu dimensions, more than %u", rd->where,
                        out->rank, MDL_RANK_MAX);
    }
    for (size_t i = 0; i < out->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];

        out->dim[i] = -1;
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
            /* -1 is what some exporters write for "any" */
            if (d->dim_value < -1 || d->dim_value > INT32_MAX) {
                return mdl_fail(rd->error, -EBADMSG, "%s: dimension %zu is %lld", rd->where, i,
                                (long long)d->dim_value);
            }
            out->dim[i] = d->dim_value;
        } else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                   is_symbol(mdl_onnx_text(d->dim_param))) {
            out->symbol[i] = d->dim_param;
        }
    }
    out->typed = true;
    return 0;
}
