/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/recipes.h - known kinds of networks: how pictures become their input, and how their outputs
 * are decoded
 *
 * A draft for people, who confirm it. Rows of one table, of which the first that fits counts. What
 * the graph itself shows of its pixels comes before what a row says of them.
 */
#pragma once

#include "model/recipe_match.h"

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
