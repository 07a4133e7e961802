/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/inspection.h - a look at a model's file before it is served
 *
 * What the file says, all reasons why it cannot be served, what the network costs if it compiles,
 * and a draft of its sidecar: preprocessing, `output`, labels (recipes.h). Where the file leaves
 * sizes open and nobody gives them, an example stands for them, so that there are costs to show.
 */
#pragma once

#include "model/guess.h"

#define MDL_EXAMPLE_SIZE 64 /* of an open dimension that is not of a picture */

struct mdl_inspected_io {
    const char *name, *dtype, *shape; /* "?" if the file does not say; "[batch, 3, 224, 224]" */
    const char *declared;             /* of an output: mdl_declared() */
    const char *stored;               /* the file's type where dtype is wider; NULL: it is not */
    size_t rank;
    int64_t dim[MDL_RANK_MAX];        /* -1: open */
    const char *symbol[MDL_RANK_MAX]; /* NULL: none */
    int64_t settled[MDL_RANK_MAX];    /* of an input: what was given or stands for dim */
};

struct mdl_inspection {
    struct mdl_pool *pool; /* owned; strings and lists are in it */
    bool read;             /* the file could be read as far as its graph; else only why is set */
    int64_t ir_version, opset;
    const char *producer, *producer_version;
    size_t node_count, weight_count, weight_bytes; /* constants of the file */
    struct mdl_inspected_io *inputs, *outputs;
    size_t input_count, output_count;
    const char *const *labels; /* that the exporter wrote into the file, or that the kind of network
                                * has; NULL: none */
    size_t label_count;
    const char *example; /* of open sizes, with those that were given, as text
                          * (model/open_shapes.h); NULL: the caller or the sidecar gave all */
    const char *sizes;   /* then: what of it was made up, as in "48 x 320" ... */
    const char *ask;     /* ... and what to give instead, as in "--shape input=1xN" */
    struct mdl_guess guess;
    const char *output; /* a draft of the key `output`, as JSON; NULL: needs says why, unless it is
                         * NULL, too */
    const char *needs;
    struct mdl_model *model;    /* owned; NULL: it cannot be served */
    char why[MDL_ERROR_MAX];    /* then: why not ... */
    struct mdl_reasons reasons; /* ... each reason, as far as it has to do with inputs and nodes */
};

/**
 * mdl_inspect() - looks at the file @path
 * @options: as for mdl_load(); shapes as the user gave them, look and
 * reasons unused
 * Threads: any; blocks on the file. @ret: owned by the caller, mdl_inspection_deinit(), also when
 * the file is no model. Return: 0, -ENOMEM.
 */
int mdl_inspect(const char *path, const struct mdl_load_options *options,
                struct mdl_inspection *ret);
/**
 * mdl_inspection_describe() - describes the model's outputs as its draft does, so that what reads
 * descriptions can judge it
 *
 * The model must be there, and is not for serving afterwards. Threads: any; blocks on files.
 * Return: 0 with model->output; -EBADMSG, -errno or -ENOMEM, with @ret_error.
 */
int mdl_inspection_describe(struct mdl_inspection *in, const char *path,
                            char ret_error[MDL_ERROR_MAX]);
/** mdl_inspection_blame() - names the example in why, if it may be what the model fails with. */
void mdl_inspection_blame(struct mdl_inspection *in);
void mdl_inspection_deinit(struct mdl_inspection *in);
