/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/control/clients_json.h - clients, their streams and refusals as JSON, for Status
 *
 * Threads: the loop thread. */
#pragma once

#include <jansson.h>

struct dmn_frames;

/** dmn_clients_json() - Return: a new list of connections. */
json_t *dmn_clients_json(const struct dmn_frames *f);
/** dmn_refusals_json() - Return: a new list of what clients were refused lately. */
json_t *dmn_refusals_json(const struct dmn_frames *f);
