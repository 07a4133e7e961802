/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/description.h - how the outputs of a model are decoded, as its clients are told
 *
 * A text that outlives its model: the last answers of a model that a hot swap replaced may wait
 * for their turn when it is gone. Each reference is one of a model's clients, of a stream (what its
 * client knows), or of a record (what its output is decoded by).
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stddef.h>

struct dmn_description {
    size_t references;
    char text[]; /* mdl_model.output; "": nobody says how */
};

/** dmn_description_new() - @text: copied; NULL: "". Return: without a reference; NULL: out of
 * memory. */
struct dmn_description *dmn_description_new(const char *text);
/** dmn_description_hold() - *@at gets a reference to @d in place of the one that it has. Either may
 * be NULL. The last reference frees. */
void dmn_description_hold(struct dmn_description **at, struct dmn_description *d);
