/* SPDX-License-Identifier: Apache-2.0 */
/** model/load_private.h - parts of load.c */
#pragma once

#include "model/common/graph.h"
#include "model/common/private.h"

/* ---- looks_like.c: what a file that is not an ONNX model is instead ---- */

/**
 * mdl_looks_like() - recognises a kind of file by its first bytes
 * @data, @bytes: the file, or its beginning (512 bytes are enough)
 * Return: what it is, for "this is ..., not an ONNX model", with what to do about it where that is
 * known; NULL: it may be an ONNX model. Threads: any.
 */
const char *mdl_looks_like(const void *data, size_t bytes);

/* ---- spare.c: which weights a load does not read ---- */

/**
 * mdl_spare_weights() - sets private->spare of a loaded model
 *
 * A weight is spare if it lies in the file, if in the graph only convolutions and products name it,
 * as their weights, and if each of these is still an op of the model, which reads it there. The
 * compiler does not look at such weights: a load without their bytes gives the same model. Not for
 * a model that a calibration quantises: that reads all weights. Nothing is spare in a graph so
 * large that looking would take long.
 *
 * Return: 0, -ENOMEM.
 */
int mdl_spare_weights(const struct mdl_graph *g, struct mdl_model *m);
