/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/refusal.h - collects reasons for a refusal, and says them in one sentence
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_ir_reason() - keeps the text in ir.error as a reason. @what: its kind, code and version.
 * @n: the node; NULL: it is an input. @name: of either. */
void mdl_ir_reason(struct mdl_ir *ir, const struct mdl_reason *what, const struct mdl_gnode *n,
                   const char *name);
/** mdl_ir_refuse_all() - leaves with the first reason's code, if there is one, and all in ir.error:
 * the text itself of a single one, else an operator once with the names of some of its nodes. */
void mdl_ir_refuse_all(struct mdl_ir *ir);
