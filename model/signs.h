/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/signs.h - what a file shows of the network's kind: names and shapes of its outputs, what
 * its exporter wrote, a few of its operators. recipes.c tells networks apart by them.
 */
#pragma once

#include "model/guess.h"

#define MDL_SIGN_OUTPUTS_MAX 16u

/* What of a network is so, for the rows of recipes.c. */
enum mdl_sign {
    MDL_SIGN_ULTRALYTICS = 1 << 0, /* made it, its metadata says */
    MDL_SIGN_PADDLE = 1 << 1,
    MDL_SIGN_CNTK = 1 << 2,
    MDL_SIGN_TORCH = 1 << 3,
    MDL_SIGN_CAFFE = 1 << 4,   /* the producer, or the operator LRN */
    MDL_SIGN_KERAS = 1 << 5,   /* the producer, or channels that come last */
    MDL_SIGN_NHWC = 1 << 6,    /* channels come last */
    MDL_SIGN_EXP = 1 << 7,     /* has the operator Exp */
    MDL_SIGN_CLASSES = 1 << 8, /* its first output has a score for each class */
    MDL_SIGN_MAPS = 1 << 9,    /* its outputs are maps of the picture's size, or enlarged last */
    MDL_SIGN_AREAS = 1 << 10,  /* Sigmoid of a ConvTranspose makes its output, as in DBNet */
    MDL_SIGN_LARGE = 1 << 11,  /* its picture is large or open, and no output lists classes */
    MDL_SIGN_OTHER = 1 << 12,  /* an output has numbers that are not scores: its name says so, or it
                                * is a small vector beside one of another length */
};

struct mdl_sign_output {
    struct mdl_gvalue v;      /* its name is in the pool */
    bool probabilities;       /* Softmax or Sigmoid made it */
    bool enlarged, over_wide; /* Resize made it; Sigmoid of a ConvTranspose did */
};

/* Strings are in the pool, or NULL. */
struct mdl_signs {
    unsigned is;                  /* enum mdl_sign */
    struct mdl_guess guess;       /* of the graph alone */
    const char *task;             /* of the metadata of Ultralytics */
    const char *characters;       /* of a reader, one a line */
    size_t labels;                /* names of classes in the metadata */
    size_t height, width;         /* for which it was exported; 0: unknown */
    size_t points, point_numbers; /* of the metadata of a pose network; 0: unknown */
    struct mdl_sign_output outputs[MDL_SIGN_OUTPUTS_MAX];
    size_t output_count; /* of the model; outputs has the first ones */
};

/** mdl_signs_read() - by the file alone, so shapes may be open. @labels: how many class names the
 * metadata has. Threads: any. @ret: valid as long as @pool. */
void mdl_signs_read(const struct mdl_graph *g, size_t labels, struct mdl_pool *pool,
                    struct mdl_signs *ret);
/** mdl_signs_serve() - takes the shapes of outputs, and the picture's size, from @m, which was
 * compiled from the same file. */
void mdl_signs_serve(struct mdl_signs *s, const struct mdl_model *m);
/**
 * mdl_class_names() - names of classes as exporters write them into a file's metadata
 * @text: {0: 'person', 1: "dog"} or ['person', "dog"], Python's or JSON's
 * @ret_count: at most MDL_LABELS_MAX; 0 if the text is of another form, has other escapes than
 * those of quotes and backslashes, or does not count from 0 upward
 * Threads: any. Return: the names, in @pool; NULL: none, or out of memory.
 */
char **mdl_class_names(const char *text, struct mdl_pool *pool, size_t *ret_count);
