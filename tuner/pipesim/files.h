/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/files.h - where descriptions are, and reading them strictly
 *
 * A description is found by name in the folders of its sort, the first that has it wins: that of
 * the environment variable, the source tree the program was built from, the installed data.
 */
#pragma once

#include <jansson.h>

#include "tuner/pipesim/pipesim.h"

#define PSIM_PATH_MAX 4096u

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

/** psim_names() - names of all *.json in the folders, sorted, each once; NULL when out of memory.
 */
char **psim_names(const struct psim_folders *f);

/* A file being read. The first thing wrong is kept; what is read afterwards is void. */
struct psim_reader {
    const char *path; /* borrowed */
    char *error;      /* [PSIM_ERROR_MAX], borrowed; empty: nothing wrong so far */
};

/** psim_read_file() - parses; a repeated key is an error. Return: an object owned by the caller, or
 * NULL with the error set. */
json_t *psim_read_file(struct psim_reader *r);

/** psim_wrong() - notes what is wrong at @where (the way to the key); printf-like. */
void psim_wrong(struct psim_reader *r, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** psim_read_keys() - every key of @object is one of @keys, NULL-terminated; what ends in '?' may
 * be missing. Return: is it an object and was nothing wrong. */
bool psim_read_keys(struct psim_reader *r, const char *where, const json_t *object,
                    const char *const *keys);

/* A member of an object that is known to have it; @where is the way to the object. */
double psim_read_number(struct psim_reader *r, const char *where, const json_t *object,
                        const char *key, double least, double most);
/** psim_read_positive() - above 0 and finite. */
double psim_read_positive(struct psim_reader *r, const char *where, const json_t *object,
                          const char *key);
const char *psim_read_text(struct psim_reader *r, const char *where, const json_t *object,
                           const char *key, size_t bytes_max);
/** psim_read_kinds() - the list "kinds": 1..PL_EP_MAX of them, PL_CPU_MAX cores in all. */
const json_t *psim_read_kinds(struct psim_reader *r, const json_t *root);
/** psim_read_kind() - name (that a plan can be written with) and cores of one of them. */
void psim_read_kind(struct psim_reader *r, const char *where, const json_t *object,
                    struct tun_kind *ret);
/** psim_read_distinct() - no two kinds of one name, cores within PL_CPU_MAX. */
void psim_read_distinct(struct psim_reader *r, const struct tun_kind *kinds, size_t count);
/** psim_problem_read() - a recorded table (pipesim(1)); unknown costs stay unknown. @p is owned by
 * the caller even if something was wrong. */
void psim_problem_read(struct psim_reader *r, const json_t *root, struct tun_problem *p);
