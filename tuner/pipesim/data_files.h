/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/data_files.h - where descriptions are
 *
 * A description is found by name in the folders of its sort, the first that has it wins: that of
 * the environment variable, the source tree the program was built from, the installed data.
 */
#pragma once

#include "tuner/json/json_reader.h"
#include "tuner/problem.h"

#define PSIM_PATH_MAX 4096u
#define PSIM_ERROR_MAX 512u /* TUN_READER_ERROR_MAX, too */

struct psim_folders {
    const char *what;           /* "network", for messages */
    const char *environment;    /* a variable that names one more folder */
    const char *const *folders; /* NULL-terminated */
    const char *list;           /* the command that names them all */
};
extern const struct psim_folders psim_networks, psim_platforms;

/** psim_find() - path of @name: itself where it has a slash or ends in .json or .onnx, else
 * NAME.json in the folders. Return: 0, or -ENOENT with @ret_error. */
int psim_find(const struct psim_folders *f, const char *name, char ret_error[PSIM_ERROR_MAX],
              char ret_path[PSIM_PATH_MAX]);

/** psim_platform_names() - all in tuner/platforms, sorted; NULL-terminated, owned by the caller
 * (psim_names_free). */
char **psim_platform_names(void);
char **psim_network_names(void);
char **psim_names_free(char **names);

/** psim_problem_load() - a recorded one: what `pipectl costs --json` prints. */
int psim_problem_load(const char *path, char ret_error[PSIM_ERROR_MAX], struct tun_problem *ret);
