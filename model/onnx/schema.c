/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/schema.h"

#include <stddef.h>

static const struct mdl_onnx_field schema[MDL_MSG_COUNT][MDL_FIELD_NUMBER_MAX + 1] =
    {
        [MDL_MSG_MODEL] =
            {
                [1] = {MDL_FIELD_VARINT, MDL_MSG_NONE, false, "ir_version"},
                [2] = {MDL_FIELD_BYTES, MDL_MSG_NONE, false, "producer_name"},
                [3] = {MDL_FIELD_BYTES, MDL_MSG_NONE, false, "producer_version"},
                [7] = {MDL_FIELD_MSG, MDL_MSG_GRAPH, true, "graph"},
                [8] = {MDL_FIELD_MSG, MDL_MSG_OPSET, false, "opset_import"},
                [14] = {MDL_FIELD_MSG, MDL_MSG_NOTE, false, "metadata_props"},
                [20] = {MDL_FIELD_REFUSE, MDL_MSG_NONE, false, "training_info"},
                [25] = {MDL_FIELD_MSG, MDL_MSG_FUNCTION, false, "functions"},
            },
        [MDL_MSG_OPSET] =
            {
                [1] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "domain"},
                [2] = {MDL_FIELD_VARINT, MDL_MSG_NONE, false, "version"},
            },
        [MDL_MSG_NOTE] =
            {
                [1] = {MDL_FIELD_NOTE, MDL_MSG_NONE, false, "key"},
                [2] = {MDL_FIELD_NOTE, MDL_MSG_NONE, false, "value"},
            },
        [MDL_MSG_GRAPH] =
            {
                [1] = {MDL_FIELD_MSG, MDL_MSG_NODE, false, "node"},
                [2] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "name"},
                [5] = {MDL_FIELD_MSG, MDL_MSG_TENSOR, false, "initializer"},
                [11] = {MDL_FIELD_MSG, MDL_MSG_VALUE, false, "input"},
                [12] = {MDL_FIELD_MSG, MDL_MSG_VALUE, false, "output"},
                [13] = {MDL_FIELD_CHECK, MDL_MSG_VALUE, false, "value_info"},
                [15] = {MDL_FIELD_REFUSE, MDL_MSG_NONE, false, "sparse_initializer"},
            },
        [MDL_MSG_NODE] =
            {
                [1] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "input"},
                [2] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "output"},
                [3] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "name"},
                [4] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "op_type"},
                [5] = {MDL_FIELD_MSG, MDL_MSG_ATTR, false, "attribute"},
                [7] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "domain"},
                [8] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "overload", 6},
            },
        [MDL_MSG_ATTR] =
            {
                [1] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "name"},
                [2] = {MDL_FIELD_FIXED32, MDL_MSG_NONE, false, "f"},
                [3] = {MDL_FIELD_VARINT, MDL_MSG_NONE, false, "i"},
                [4] = {MDL_FIELD_BYTES, MDL_MSG_NONE, false, "s"},
                [5] = {MDL_FIELD_MSG, MDL_MSG_TENSOR, true, "t"},
                [6] = {MDL_FIELD_MSG, MDL_MSG_GRAPH, true, "g"},
                [7] = {MDL_FIELD_FIXED32S, MDL_MSG_NONE, false, "floats"},
                [8] = {MDL_FIELD_VARINTS, MDL_MSG_NONE, false, "ints"},
                [9] = {MDL_FIELD_BYTES, MDL_MSG_NONE, false, "strings"},
                [10] = {MDL_FIELD_CHECK, MDL_MSG_TENSOR, false, "tensors"},
                [11] = {MDL_FIELD_CHECK, MDL_MSG_GRAPH, false, "graphs"},
                [14] = {MDL_FIELD_CHECK, MDL_MSG_TYPE, true, "tp"},
                [15] = {MDL_FIELD_CHECK, MDL_MSG_TYPE, false, "type_protos"},
                [20] = {MDL_FIELD_VARINT, MDL_MSG_NONE, false, "type"},
                [21] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "ref_attr_name"},
                [22] = {MDL_FIELD_CHECK, MDL_MSG_SPARSE, true, "sparse_tensor"},
                [23] = {MDL_FIELD_CHECK, MDL_MSG_SPARSE, false, "sparse_tensors"},
            },
        [MDL_MSG_TENSOR] =
            {
                [1] = {MDL_FIELD_VARINTS, MDL_MSG_NONE, false, "dims"},
                [2] = {MDL_FIELD_VARINT, MDL_MSG_NONE, false, "data_type"},
                [3] = {MDL_FIELD_REFUSE, MDL_MSG_NONE, false, "segment"},
                [4] = {MDL_FIELD_FLOATS, MDL_MSG_NONE, false, "float_data"},
                [5] = {MDL_FIELD_VARINTS, MDL_MSG_NONE, false, "int32_data"},
                [7] = {MDL_FIELD_VARINTS, MDL_MSG_NONE, false, "int64_data"},
                [8] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "name"},
                [9] = {MDL_FIELD_RAW, MDL_MSG_NONE, true, "raw_data"},
                [10] = {MDL_FIELD_FIXED64S, MDL_MSG_NONE, false, "double_data"},
                [13] = {MDL_FIELD_MSG, MDL_MSG_ENTRY, false, "external_data"},
                [14] = {MDL_FIELD_VARINT, MDL_MSG_NONE, false, "data_location"},
            },
        [MDL_MSG_VALUE] =
            {
                [1] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "name"},
                [2] = {MDL_FIELD_MSG, MDL_MSG_TYPE, true, "type"},
            },
        [MDL_MSG_TYPE] =
            {
                [1] = {MDL_FIELD_MSG, MDL_MSG_TYPE_TENSOR, true, "tensor_type"},
                [4] = {MDL_FIELD_CHECK, MDL_MSG_TYPE_OF, true, "sequence_type"},
                [5] = {MDL_FIELD_CHECK, MDL_MSG_TYPE_MAP, true, "map_type"},
                [9] = {MDL_FIELD_CHECK, MDL_MSG_TYPE_OF, true, "optional_type"},
                [8] = {MDL_FIELD_CHECK, MDL_MSG_TYPE_TENSOR, true, "sparse_tensor_type"},
            },
        [MDL_MSG_TYPE_TENSOR] =
            {
                [1] = {MDL_FIELD_VARINT, MDL_MSG_NONE, false, "elem_type"},
                [2] = {MDL_FIELD_MSG, MDL_MSG_SHAPE, true, "shape"},
            },
        [MDL_MSG_SHAPE] =
            {
                [1] = {MDL_FIELD_MSG, MDL_MSG_DIM, false, "dim"},
            },
        [MDL_MSG_DIM] =
            {
                [1] = {MDL_FIELD_VARINT, MDL_MSG_NONE, false, "dim_value"},
                [2] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "dim_param"},
            },
        [MDL_MSG_TYPE_OF] =
            {
                [1] = {MDL_FIELD_CHECK, MDL_MSG_TYPE, true, "elem_type"},
            },
        [MDL_MSG_TYPE_MAP] =
            {
                [2] = {MDL_FIELD_CHECK, MDL_MSG_TYPE, true, "value_type"},
            },
        [MDL_MSG_ENTRY] =
            {
                [1] = {MDL_FIELD_NAME, MDL_MSG_NONE, true, "key"},
                [2] = {MDL_FIELD_NAME, MDL_MSG_NONE, true, "value"},
            },
        [MDL_MSG_FUNCTION] =
            {
                [1] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "name"},
                [4] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "input"},
                [5] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "output"},
                [6] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "attribute"},
                [7] = {MDL_FIELD_MSG, MDL_MSG_NODE, false, "node"},
                [9] = {MDL_FIELD_MSG, MDL_MSG_OPSET, false, "opset_import"},
                [10] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "domain"},
                [11] = {MDL_FIELD_WRAP, MDL_MSG_ATTR, false, "attribute_proto", 7},
                [13] = {MDL_FIELD_NAME, MDL_MSG_NONE, false, "overload", 8},
            },
        [MDL_MSG_SPARSE] =
            {
                [1] = {MDL_FIELD_CHECK, MDL_MSG_TENSOR, true, "values"},
                [2] = {MDL_FIELD_CHECK, MDL_MSG_TENSOR, true, "indices"},
            },
};

const struct mdl_onnx_field *mdl_onnx_field(enum mdl_onnx_msg msg, uint64_t number)
{
    const struct mdl_onnx_field *f = number <= MDL_FIELD_NUMBER_MAX ? &schema[msg][number] : NULL;

    return f && f->kind != MDL_FIELD_DROP ? f : NULL;
}
