/* SPDX-License-Identifier: Apache-2.0 */
/* Which versions of ONNX are read. */
#include "model/onnx/reader.h"
#include "onnx.pb-c.h"

#define IR_MIN 3
#define IR_MAX 13
#define OPSET_MIN 6 /* before, only for operators that did not change up to 6 */
#define OPSET_MAX 26

/* Arithmetic, activations, BatchNormalization and Gemm had other attributes before version 6.
 * Return: the first such operator; NULL: there is none. */
static const char *changed_until_6(const Onnx__GraphProto *g)
{
    static const char *const names[] = {
        "AveragePool",   "Constant",   "Conv",       "ConvTranspose",
        "DepthToSpace",  "Flatten",    "Gather",     "GlobalAveragePool",
        "GlobalMaxPool", "LRN",        "LogSoftmax", "MatMul",
        "MaxPool",       "ReduceMean", "Shape",      "Slice",
        "Softmax",       "Softplus",   "Softsign",   "SpaceToDepth",
        "Squeeze",       "Transpose",  "Unsqueeze",
    };

    for (size_t i = 0; g && i < g->n_node; i++) {
        size_t k = 0;

        while (k < base_array_count(names) &&
               strcmp(names[k], mdl_onnx_text(g->node[i]->op_type)) != 0) {
            k++;
        }
        if (k == base_array_count(names)) {
            return mdl_onnx_text(g->node[i]->op_type);
        }
    }
    return NULL;
}

void mdl_onnx_check_opset(struct mdl_onnx_reader *rd, int64_t version)
{
    if (version < OPSET_MIN || version > OPSET_MAX) {
        mdl_onnx_refuse(rd, -EOPNOTSUPP,
                        "operator set version %lld is not supported (%d to %d are); export the "
                        "model with one of these",
                        (long long)version, OPSET_MIN, OPSET_MAX);
    }
}

void mdl_onnx_versions(struct mdl_onnx_reader *rd, const Onnx__ModelProto *model)
{
    struct mdl_graph *g = rd->graph;
    const char *changed;
    bool found = false;

    if (!model->has_ir_version) {
        mdl_onnx_refuse(rd, -EBADMSG, "not an ONNX model: there is no IR version");
    }
    g->ir_version = model->ir_version;
    if (g->ir_version < IR_MIN || g->ir_version > IR_MAX) {
        mdl_onnx_refuse(rd, -EOPNOTSUPP, "IR version %lld is not supported (%d to %d are)",
                        (long long)g->ir_version, IR_MIN, IR_MAX);
    }
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = model->opset_import[i];

        if (mdl_onnx_domain(o->domain)[0] != '\0') {
            continue;
        }
        if (found && g->opset != o->version) {
            mdl_onnx_refuse(rd, -EBADMSG, "operator set versions %lld and %lld are both given",
                            (long long)g->opset, (long long)o->version);
        }
        found = true;
        g->opset = o->version;
    }
    if (!found) {
        mdl_onnx_refuse(rd, -EBADMSG, "there is no operator set version");
    }
    changed = g->opset >= 1 && g->opset < OPSET_MIN ? changed_until_6(model->graph) : NULL;
    if (changed) {
        mdl_onnx_refuse(rd, -EOPNOTSUPP,
                        "operator set version %lld is not supported, because operator %.80s "
                        "changed until version %d; export the model with %d to %d",
                        (long long)g->opset, changed, OPSET_MIN, OPSET_MIN, OPSET_MAX);
    }
    if (g->opset < 1 || g->opset >= OPSET_MIN) {
        mdl_onnx_check_opset(rd, g->opset);
    }
}
