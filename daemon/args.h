/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/args.h - the command line of piped, as plain data, and the configuration that it asks
 * for. Strings are borrowed from argv. */
#pragma once

#include "base/cli/cli.h"

struct dmn_config;

struct dmn_args {
    const char *config;      /* --config; NULL: the installed one, if it exists */
    struct cli_texts models; /* [NAME=]FILE[:SHAPES] */
    const char *runtime_dir, *state_dir, *sysfs_root; /* NULL: not given */
    const char *inspect;                              /* --inspect; NULL: not given */
    bool json, write_sidecar, force;                  /* of --inspect */
    bool check_config, verbose, help;
};

/** dmn_args_parse() - reads the command line. Return: 0; DMN_ARGS_E_DONE: --help or --version was
 * printed to stdout; DMN_ARGS_E_USAGE: the mistake was printed to stderr. */
enum { DMN_ARGS_E_DONE = 1, DMN_ARGS_E_USAGE = 2 };
int dmn_args_parse(int argc, char **argv, struct dmn_args *ret);

/** dmn_args_model_name() - the name of a model given as [NAME=]FILE: NAME, or the file's name up to
 * its last dot. @ret_name: @bytes long. Return: where FILE starts, inside @text. */
const char *dmn_args_model_name(const char *text, char *ret_name, size_t bytes);

/** dmn_config_from_args() - loads the configuration that @args ask for, with the models saved in
 * @state_dir (NULL: none). The caller looks at its saved_error. @ret_error: DMN_CONFIG_ERROR_MAX
 * bytes. Return: 0, or -errno with @ret_error set. */
int dmn_config_from_args(const struct dmn_args *args, const char *state_dir, char *ret_error,
                         struct dmn_config **ret);
