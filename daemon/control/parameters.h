/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/parameters.h - checks a call's parameters by what the interface declares
 *
 * An interface is the text that GetInterfaceDescription answers, such as ipc_varlink_interface: so
 * what is declared is what is checked. Pure. Threads: any.
 */
#pragma once

#include <jansson.h>

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
