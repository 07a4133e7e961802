/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/json/cuts_json.h - which units a promise has run in pieces, for people and programs. Threads:
 * any. */
#pragma once

#include <jansson.h>

#include "tuner/solve/promise.h"

/** tun_cuts_json() - @names: [count], of the models. Return: an array of {model, pieces, units, text},
 * one for all units of a model that run in as many pieces. */
json_t *tun_cuts_json(const struct tun_promise *p, const char *const *names, size_t count);
