/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx_tensor.h - one TensorProto to one struct mdl_gtensor; inside of model/onnx.c
 *
 * The dims, the element type and the amount of data are checked against each other with checked
 * arithmetic, so that later readers may trust bytes == elements * size.
 */
#pragma once

#include "model/common/graph.h"
#include "model/onnx/walk.h"

struct Onnx__TensorProto;

struct mdl_onnx_reader {
    const struct mdl_walk *walk; /* borrowed: where stripped data is */
    struct mdl_graph *graph;     /* being built; new data goes to its pool */
    char *error;                 /* MDL_ERROR_MAX */
    char where[192];             /* "initializer 3 'conv1.weight'", for messages */
};

/** mdl_onnx_dtype() - the element type for ONNX's number. Return: false where it is not one of
 * ours. mdl_onnx_dtype_name() - ONNX's name of it, never NULL. */
bool mdl_onnx_dtype(int onnx_type, enum mdl_dtype *ret);
const char *mdl_onnx_dtype_name(int onnx_type);

/**
 * mdl_onnx_tensor() - checks and converts @t; data stays in the file where it can
 * @attr: the attribute's name for messages, or NULL. Return: as mdl_onnx_read(); -ENOMEM without
 * text.
 */
int mdl_onnx_tensor(struct mdl_onnx_reader *rd, const struct Onnx__TensorProto *t, const char *attr,
                    struct mdl_gtensor *ret);
