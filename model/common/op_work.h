/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/common/op_work.h - how much work a run of an operator is, roughly
 */
#pragma once

#include "model/model.h"

/** mdl_op_work() - Return: about how many elementary steps a run of @op takes: multiplications, or
 * elements that it reads and writes where those are more. @made, @read: elements of its outputs and
 * inputs. Pure. */
double mdl_op_work(const struct mdl_op *op, double made, double read);
