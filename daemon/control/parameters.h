/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/parameters.h - checks a call's parameters by what the interface declares, and
 * reads them
 *
 * An interface is the text that GetInterfaceDescription answers, such as ipc_varlink_interface: so
 * what is declared is what is checked. The checks are pure. Those who read leave *ret as it is
 * where a parameter is absent or null, and answer the call where it has no value that fits.
 * Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "daemon/control/control.h"
#include "kernels/int8cal/examples.h"

#define DMN_PARAMETER_MAX 64u

/** dmn_parameters_of() - Return: where @interface declares the parameters of @method (without the
 * interface's name), borrowed from it; NULL: there is no such method. */
const char *dmn_parameters_of(const char *interface, const char *method);

/**
 * dmn_parameters_bad() - finds a parameter that is missing, unknown or not of its type
 *
 * A type with "?" may be absent or null; a float may be written as an integer. Texts with a zero
 * byte are bad. @declared: from dmn_parameters_of(). @given: an object. @ret: DMN_PARAMETER_MAX
 * bytes, written for one that is missing. Return: the first one, a key of @given or @ret; NULL: all
 * are good.
 */
const char *dmn_parameters_bad(const char *declared, json_t *given, char *ret);

/** dmn_call_text() - Return: a string, borrowed from the call; NULL: it is not given. */
const char *dmn_call_text(const struct dmn_call *c, const char *key);
/** dmn_call_asks() - Return: it is given, and true. */
bool dmn_call_asks(const struct dmn_call *c, const char *key);
/** dmn_call_number() - reads a number. Return: true; false: it is not within @least to @most, and
 * the call was answered. */
bool dmn_call_number(struct dmn_call *c, const char *key, double least, double most, double *ret);
/** dmn_call_integer() - the same of an integer. */
bool dmn_call_integer(struct dmn_call *c, const char *key, json_int_t least, json_int_t most,
                      json_int_t *ret);
/** dmn_call_invalid() - answers that the value of @key is invalid. Return: false. */
bool dmn_call_invalid(struct dmn_call *c, const char *key);
/** dmn_call_model() - Return: the model named by @key, else the default model; NULL: there is none,
 * and the call was answered. */
struct dmn_model *dmn_call_model(struct dmn_call *c, const char *key);

#define DMN_EXAMPLES_BYTES_MAX (2ull << 30)

/* The examples sent with a call. The daemon often may not read the user's folder, so the client
 * sends the files: a sealed memfd holds their bytes one after the other, and the parameter
 * "examples" their names and sizes ([{name, bytes}]). */
struct dmn_examples {
    struct krn_examples set; /* borrows from the map */
    void *map;
    size_t map_bytes;
};

/** dmn_examples_take() - takes the examples of @c. Return: owned; NULL: the call was answered.
 * Threads: the loop thread. */
struct dmn_examples *dmn_examples_take(struct dmn_call *c);
/** dmn_examples_free() - takes NULL. Return: NULL. Threads: any. */
struct dmn_examples *dmn_examples_free(struct dmn_examples *e);
