/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/spare.h - which weights a load does not read; for load.c alone
 */
#pragma once

#include "model/common/graph.h"
#include "model/common/private.h"

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
