/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/ir/refusal.h - collects reasons for a refusal, and says them in one sentence
 */
#pragma once

#include "model/ir/ir.h"

/** mdl_ir_reason() - keeps the text in ir.error as a reason. @what: its kind, code and version.
 * @n: the node; NULL: it is an input. @name: of either. Return: 0, -ENOMEM. */
int mdl_ir_reason(struct mdl_ir *ir, const struct mdl_reason *what, const struct mdl_gnode *n,
                  const char *name);
/** mdl_ir_refuse_all() - writes all reasons to ir.error: the text itself if there is one, else an
 * operator once with the names of some of its nodes. Return: 0: there is none; the first code. */
int mdl_ir_refuse_all(struct mdl_ir *ir);
