/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/ipc/calm_sample.h - answers of a calm daemon, as pipectl doctor records them
 *
 * A test changes one thing in them and asks what is found. What is returned is the caller's.
 */
#pragma once

#include <jansson.h>

/** json_of() - JSON with ' for "; ends the program if it is none. */
json_t *json_of(const char *text);
/** calm() - a daemon of one model of two stages on four cores, asked twice in two seconds. */
json_t *calm(void);
/** set() - sets what is at a path of keys and indices, as in "after.models.0.fps", to @value, as
 * for json_of(). */
void set(json_t *sample, const char *path, const char *value);
/** text_of() - Return: a text of a finding, "-": there is none. */
const char *text_of(const json_t *f, const char *key);
/** finds_nothing() - checks that all is well, and frees the sample. */
void finds_nothing(json_t *sample);
/** finds() - checks that the only finding is @name with that share (negative: unknown) and says
 * @words, and frees the sample. */
void finds(json_t *sample, const char *name, double share, const char *words);
