/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/pipesim_options.h - the table of pipesim's commands and their options
 *
 * Plain data; main.c says which function runs a command. A new command or option is a row here, its
 * code, and its lines in pipesim(1), which a lint test compares with this table.
 */
#pragma once

#include "base/cli/cli.h"

extern const struct cli_program psim_program;
