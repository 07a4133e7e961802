/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/json/mix_json.h - what mixes cost, and which units run in pieces.
 * Threads: any. */
#pragma once

#include <jansson.h>

#include "tuner/solve/promise.h"

/** tun_mix_front_json() - what ever larger parts of the largest fair part of the wishes cost
 * @changes: of tun_mix_solve(). @ret: an array of {of_wishes, energy}, owned, also after a failure.
 * Return: as tun_mix_solve(). */
int tun_mix_front_json(const struct tun_wish *wishes, size_t count, size_t changes, json_t **ret);

/** tun_cuts_json() - @names: [count], of the models. Return: an array of {model, pieces, units,
 * text}, one for all units of a model that run in as many pieces. */
json_t *tun_cuts_json(const struct tun_promise *p, const char *const *names, size_t count);

/** tun_wide_json() - @wishes, @names: [count]. Return: an array of {model, width, text}: the models
 * that take several cores at once, though that was not wished. */
json_t *tun_wide_json(const struct tun_promise *p, const struct tun_wish *wishes,
                      const char *const *names, size_t count);
