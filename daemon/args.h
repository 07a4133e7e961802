/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/args.h - the command line of piped, as plain data. Strings are borrowed from argv. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define DMN_ARGS_MODELS_MAX 64u

struct dmn_args {
    const char *config;                      /* --config; NULL: the installed one, if it exists */
    const char *models[DMN_ARGS_MODELS_MAX]; /* [NAME=]FILE[:SHAPES] */
    size_t model_count;
    const char *runtime_dir, *state_dir, *sysfs_root; /* NULL: not given */
    const char *inspect;                              /* --inspect; NULL: not given */
    bool json, write_sidecar, force;                  /* of --inspect */
    bool check_config, verbose;
};

/** dmn_args_parse() - reads the command line. Return: 0; DMN_ARGS_E_DONE: --help or --version was
 * printed to stdout; DMN_ARGS_E_USAGE: the mistake was printed to stderr. */
enum { DMN_ARGS_E_DONE = 1, DMN_ARGS_E_USAGE = 2 };
int dmn_args_parse(int argc, char **argv, struct dmn_args *ret);

/** dmn_args_shapes() - Return: where SHAPES begin in [NAME=]FILE:SHAPES; NULL: there are none. */
const char *dmn_args_shapes(const char *text);
/** dmn_args_model_name() - the name of a model given as [NAME=]FILE: NAME, or the file's name up to
 * its last dot. @ret_name: @bytes long. Return: where FILE starts, inside @text. */
const char *dmn_args_model_name(const char *text, char *ret_name, size_t bytes);
