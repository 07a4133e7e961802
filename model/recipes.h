/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/recipes.h - known kinds of networks: how pictures become their input, and how their outputs
 * are decoded
 *
 * A draft for people, who confirm it. Rows of one table, of which the first that fits counts. What
 * the graph itself shows of its pixels comes before what a row says of them.
 */
#pragma once

#include "base/output_keys.h"
#include "model/signs.h"

/* How a network fits a row. */
struct mdl_match {
    size_t count; /* items */
    struct {
        unsigned role; /* enum output_role */
        size_t output;
    } of[MDL_SIGN_OUTPUTS_MAX];
    /* Of g, r or t; stride_count 0: there is none, or the picture's size is open. */
    size_t stride[OUTPUT_LEVELS_MAX], stride_count;
    size_t cells_dim; /* which dimension of the first item they are; 0: there is none */
};

/* The key `output` of a sidecar as a row has it. What the table leaves empty is of the network:
 * "keypoints": 0 and "alphabet": [] of its metadata, "strides": [] of its shapes. */
struct mdl_recipe {
    const char *name;    /* as in "as for NAME" */
    unsigned has, lacks; /* enum mdl_sign: all of them, none of them */
    const char *task;    /* of the metadata; NULL: any */
    const char *input;   /* mdl_match_input(); NULL: any */
    const char *outputs; /* mdl_match_outputs(); NULL: any */
    unsigned range;      /* of the pixels, a number in recipes.c */
    enum picture_fit fit;
    int pad;               /* of a letterbox; -1: the mean */
    const char *output;    /* JSON; NULL: nobody knows */
    const char *labels[2]; /* where the metadata has none; NULL: none */
    size_t height, width;  /* an example, where the file leaves the size open */
    const char *needs;     /* what keeps it from being decoded; NULL: nothing */
};

/**
 * mdl_recipe_find() - the row of a network
 * @guess: what the graph shows; its pixels, where they are not shown, fit and why are set. An open
 * size stays open.
 * Threads: any. Return: static; NULL: none, as its input is not a picture.
 */
const struct mdl_recipe *mdl_recipe_find(const struct mdl_signs *s, struct mdl_match *ret_match,
                                         struct mdl_guess *guess);

/* ---- recipe_match.c: does a network have outputs of these names and shapes? ----
 *
 * A pattern has an item for each output, and ends in " ..." if more may follow:
 *
 *     "boxes:[n,4]f scores:[n]f classes:[n]i"      in any order, whatever their names
 *     "scores:cls_8[1,n,1] scores:cls_16[1,m,1]"   of these names, in any order
 *
 * The word before the colon is a role of the sidecar's key tensors; without one it is boxes. Behind
 * the dimensions, f is for floats and i for integers. Open dimensions of outputs fit, if of all
 * outputs the file says one dimension behind the batch, or a name; a shape of which the file says
 * nothing fits a name. Letters stand for sizes, equal where the letter is:
 *
 *     h w      height and width of the picture
 *     g r t    all cells of several strides, with one, two or three anchors each
 *     k        four, and one for each name of a class in the metadata
 *     others   any
 */

/** mdl_match_outputs() - Threads: any. Return: whether all fit; then @ret says how. */
bool mdl_match_outputs(const struct mdl_signs *s, const char *pattern, struct mdl_match *ret);
/** mdl_match_input() - whether the picture is "[channels,height,width]"; an open size is 0, which
 * fits 0 and letters only. */
bool mdl_match_input(const struct mdl_signs *s, const char *pattern);

/* ---- draft_output.c: the key `output` of a sidecar, by the row of a network ---- */

/**
 * mdl_draft_output() - fills what the row leaves empty: names of outputs, strides, points, alphabet
 *
 * @folder: of the model's file, in which the characters of a reader may be, one a line
 * @ret_needs: what is missing, for people; set where the return is NULL
 *
 * Threads: any; blocks on files. Return: JSON in @pool; NULL: it cannot be decoded, or out of
 * memory.
 */
const char *mdl_draft_output(const struct mdl_recipe *r, const struct mdl_signs *s,
                             const struct mdl_match *match, const char *folder,
                             struct mdl_pool *pool, const char **ret_needs);
