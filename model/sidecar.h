/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/sidecar.h - the file beside a model that describes its preprocessing and names its classes
 *
 * For models/x.onnx the sidecar is models/x.sidecar.json (format: docs/models.md). If x.onnx is a
 * link and there is none beside it, the one beside the file that it leads to is used. Unknown keys
 * are refused: a misspelt "mean" would otherwise lose accuracy silently.
 */
#pragma once

#include "model/open_shapes.h"

#define MDL_LABELS_MAX 100000u
#define MDL_LABEL_BYTES_MAX 256u

struct mdl_sidecar {
    struct mdl_preproc preproc; /* preproc.known: there is a sidecar */
    bool layout_given;
    char *preprocess; /* the object of that key, as JSON in the pool given; NULL: there is none */
    size_t height, width; /* 0: not given */
    struct mdl_shapes shapes;
    char **labels; /* label_count strings in the pool given, or NULL */
    size_t label_count;
    char *output; /* how the outputs are decoded, as JSON in the pool given; NULL: nobody says */
    /* that it names, each with that name as its path, in the pool given; path NULL: none */
    struct mdl_data_file files[MDL_SIDE_FILES];
    const char *folder; /* of them, in the pool given; set by mdl_sidecar_read() */
};

/**
 * mdl_sidecar_find() - the path of a model's sidecar
 * Threads: any; blocks on files. Return: owned by the caller; where it would be, beside
 * @model_path, if there is none; NULL: out of memory.
 */
char *mdl_sidecar_find(const char *model_path);

/**
 * mdl_sidecar_read() - reads the sidecar beside the model file @model_path, if there is one
 * @pool: labels are allocated there. *@ret: defaults (mean 0, std 1, RGB, NCHW, stretch) if there
 * is none.
 * Threads: any; blocks on files. Return: 0, -errno of a system call, -EBADMSG (syntax, key, value),
 * -E2BIG, -ENOMEM, -EXDEV (labels_file leaves the folder); @ret_error names file and key.
 */
int mdl_sidecar_read(const char *model_path, struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX],
                     struct mdl_sidecar *ret);

/** mdl_sidecar_preprocess() - preprocessing by @text, the object of the key preprocess of some
 * sidecar (mdl_sidecar.preprocess). @preproc: set; its layout stays if @text does not say one.
 * Otherwise as mdl_sidecar_parse(). */
int mdl_sidecar_preprocess(const char *text, struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX],
                           struct mdl_preproc *preproc);
/** mdl_sidecar_parse() - the same from @bytes of @text; @name: for messages. @dir_fd: folder of
 * labels_file; -1: labels_file is refused. */
int mdl_sidecar_parse(const char *text, size_t bytes, const char *name, int dir_fd,
                      struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX],
                      struct mdl_sidecar *ret);
