/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/sidecar_output.h - how a model's outputs are decoded: the sidecar's key `output`
 *
 * The model does not decode. It checks the key (output_keys.h) and makes one text of all that a
 * client needs for decoding; ipc/decode reads that text.
 */
#pragma once

#include <jansson.h>

#include "model/common/graph.h"

/** mdl_alphabet_lines() - one character or more a line; the end of line may be CR LF, the last one
 * may be missing. Return: a list of strings, new reference; NULL: not UTF-8, too many, or no
 * memory. */
json_t *mdl_alphabet_lines(const char *text, size_t bytes);

/**
 * mdl_sidecar_output() - checks the value of the key `output`, and reads its alphabet_file
 *
 * @name: of the sidecar, for messages     @dir_fd: its folder; -1: no files
 *
 * Threads: any; blocks on the file. Return: 0 with *@ret, the object as JSON, and *@ret_alphabet,
 * the file with its name as path (NULL: there is none), both in @pool; -EBADMSG, -errno of the file
 * or -ENOMEM, with @error.
 */
int mdl_sidecar_output(const json_t *value, const char *name, int dir_fd, struct mdl_pool *pool,
                       char error[MDL_ERROR_MAX], char **ret, struct mdl_data_file *ret_alphabet);

/** mdl_has_classes() - Return: whether output 0 has a score for each class: it is a vector of
 * floats, and no other output has a row for each of its elements, as the boxes of objects have. */
bool mdl_has_classes(const struct mdl_model *m);

/**
 * mdl_describe_output() - sets m->output
 *
 * @g: the graph that m was compiled from; NULL: it does not matter what the graph ends in
 * @output: of mdl_sidecar_output(); NULL: the sidecar does not say. Then a model whose first output
 * is a vector is a classifier, and others are not described.
 *
 * Where nobody says which activation the decoder `classes` applies, it is `none` for a graph that
 * ends in Softmax or Sigmoid.
 *
 * The text is {"output": ..., "width": W, "height": H, "fit": "...", "labels": [...]}; width and
 * height are of input 0, if it is a picture. Labels that would make it longer than OUTPUT_TEXT_MAX
 * are left out. Return: 0; -E2BIG, with @error; -ENOMEM.
 */
int mdl_describe_output(struct mdl_model *m, const struct mdl_graph *g, const char *output,
                        char error[MDL_ERROR_MAX]);
/** mdl_note_activation() - notes an activation that the sidecar asks for, of scores that the graph
 * has made probabilities. @output: as of mdl_describe_output(). Return: 0, -ENOMEM. */
int mdl_note_activation(struct mdl_model *m, const struct mdl_graph *g, const char *output);
/** mdl_note_labels() - notes that a classifier has other than one label for each class. @output: as
 * of mdl_describe_output(). Return: 0, -ENOMEM. */
int mdl_note_labels(struct mdl_model *m, const char *output);
