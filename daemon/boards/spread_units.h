/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_units.h - what a model's units take of memory and send over borders
 *
 * Pure; any thread.
 */
#pragma once

#include "ipc/boards/border_encoding.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "tuner/problem.h"

/**
 * dmn_spread_units() - sets weight_bytes, arena_bytes and in_bytes of the units, and input_bytes
 * and output_bytes of @p->boards
 *
 * in_bytes are the bytes of the border (model/segment/segment.h) on a link, where f32 tensors have
 * @encoding; the model's input and output keep theirs. Without an encoding that may be more than
 * what one team hands to the next. arena_bytes is what is alive in the arena while the unit runs.
 * weight_bytes are those that @net packs (NULL: those of the file). @p: with the model's units.
 * Return: 0; -EINVAL: the model is a segment, or has other units; -ENOMEM.
 */
int dmn_spread_units(const struct mdl_model *m, const struct krn_net *net,
                     enum brd_encoding encoding, struct tun_problem *p);
