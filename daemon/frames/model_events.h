/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/model_events.h - what this room does when models come, go, change or have room
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/models/models.h"

/** dmn_model_events() - Return: the listener to register; it needs no context. */
struct dmn_models_listener dmn_model_events(void);
/** dmn_model_events_plan() - tells the clients of @m of its new plan, and grants more credits if
 * it is deeper. */
void dmn_model_events_plan(struct dmn_model *m);
