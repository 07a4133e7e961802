/* SPDX-License-Identifier: Apache-2.0 */
/* Names of activations and of operators with two inputs, for what tests print. */
#pragma once

#include "model/op.h"

static inline const char *act_name(enum mdl_act a)
{
    static const char *const names[MDL_ACT_COUNT] = {
#define ACT(ID, name) [MDL_ACT_##ID] = #name,
        MDL_ACTS(ACT)
#undef ACT
    };

    return names[a];
}

static inline const char *binary_name(enum mdl_binary b)
{
    static const char *const names[MDL_BIN_COUNT] = {
        [MDL_BIN_ADD] = "add",
        [MDL_BIN_SUB] = "sub",
        [MDL_BIN_MUL] = "mul",
        [MDL_BIN_DIV] = "div",
        [MDL_BIN_MAX] = "max",
        [MDL_BIN_MIN] = "min",
        [MDL_BIN_POW] = "pow",
        [MDL_BIN_EQUAL] = "equal",
        [MDL_BIN_LESS] = "less",
        [MDL_BIN_GREATER] = "greater",
        [MDL_BIN_AND] = "and",
        [MDL_BIN_OR] = "or",
        [MDL_BIN_MOD] = "mod",
        [MDL_BIN_FMOD] = "fmod",
        [MDL_BIN_BIT_AND] = "bit_and",
        [MDL_BIN_BIT_OR] = "bit_or",
        [MDL_BIN_BIT_XOR] = "bit_xor",
        [MDL_BIN_SHIFT_LEFT] = "shift_left",
        [MDL_BIN_SHIFT_RIGHT] = "shift_right",
    };

    return names[b];
}
