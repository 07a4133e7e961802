/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/lines.h - GPIO lines: the button starts a retune of every model, the power line adds
 * an event to the history
 *
 * Threads: the loop thread.
 */
#pragma once

struct dmn_plans;

/** dmn_lines_listen() - starts to listen. Logs a retune that the button cannot start. */
void dmn_lines_listen(struct dmn_plans *plans);
