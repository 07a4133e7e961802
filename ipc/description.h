/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/description.h - how the outputs of a model are decoded: the text of DESCRIBED
 *
 * In the daemon it outlives its model: the last answers of a model that a hot swap replaced may
 * wait for their turn when it is gone. In libpiped it is that of the frames that came after it.
 * Each reference is one of a model's clients, of a stream, or of a frame.
 *
 * Threads: the one that serves the connection.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct ipc_description {
    size_t references, bytes; /* bytes: of the text, without its NUL */
    char text[];              /* "": nobody says how */
};

/** ipc_description_new() - @text: copied; NULL: "". Return: without a reference; NULL: out of
 * memory. */
static inline struct ipc_description *ipc_description_new(const char *text)
{
    size_t bytes = strlen(text ? text : "");
    struct ipc_description *d = malloc(sizeof(*d) + bytes + 1);

    if (d) {
        d->references = 0;
        d->bytes = bytes;
        memcpy(d->text, text ? text : "", bytes + 1);
    }
    return d;
}

/** ipc_description_hold() - *@at gets a reference to @d in place of the one that it has. Either may
 * be NULL. The last reference frees. */
static inline void ipc_description_hold(struct ipc_description **at, struct ipc_description *d)
{
    if (d) {
        d->references++;
    }
    if (*at && --(*at)->references == 0) {
        free(*at);
    }
    *at = d;
}
