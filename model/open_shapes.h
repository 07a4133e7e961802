/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/open_shapes.h - sizes for dimensions that a model's file leaves open
 *
 * A size is given by the input's name, for all its dimensions, or by the name that the file has for
 * one dimension (its symbol), wherever that occurs. As text: "images=1x3x480x640,height=480". In
 * JSON: {"images": [1, 3, 480, 640], "height": 480}.
 */
#pragma once

#include <jansson.h>

#include "model/common/graph.h"

#define MDL_SHAPES_MAX 256u

struct mdl_shape {
    const char *name; /* of an input, or of a dimension if count is 1 */
    size_t count;
    int64_t dim[MDL_RANK_MAX];
};

struct mdl_shapes {
    size_t count;
    struct mdl_shape *list; /* in the pool */
};

/**
 * mdl_shapes_parse() - reads the text form; "" gives none
 * @pool: of the names. Threads: any. Return: 0; -EBADMSG with @ret_error; -ENOMEM.
 */
int mdl_shapes_parse(const char *text, struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX],
                     struct mdl_shapes *ret);
/** mdl_shapes_check() - whether it can be read. Return: as mdl_shapes_parse(). */
int mdl_shapes_check(const char *text, char ret_error[MDL_ERROR_MAX]);
/** mdl_shapes_read() - the same from JSON. */
int mdl_shapes_read(const json_t *object, struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX],
                    struct mdl_shapes *ret);
/** mdl_shapes_text() - JSON to text. Return: owned by the caller, "" if @object is NULL; NULL with
 * @ret_error: it is not a list of shapes, or out of memory. */
char *mdl_shapes_text(const json_t *object, char ret_error[MDL_ERROR_MAX]);
/** mdl_shapes_suffix() - Return: where the shapes begin in FILE:SHAPES, behind the colon; of
 * several, that behind a file that is there, where what follows may be none: the caller checks it.
 * NULL: @text has none, or is itself the name of a file. Threads: any; blocks on the file. */
const char *mdl_shapes_suffix(const char *text);

/* Who gave a size; a lower number wins. */
enum mdl_shapes_from {
    MDL_SHAPES_CALLER = 1,
    MDL_SHAPES_SIDECAR,
    MDL_SHAPES_SIZE,  /* the sidecar's "size" */
    MDL_SHAPES_BATCH, /* nobody: an open batch is 1 */
    MDL_SHAPES_SPREAD /* another dimension of the same symbol */
};

/* Who gave the dimensions of an input. */
struct mdl_settled {
    uint8_t by[MDL_RANK_MAX]; /* enum mdl_shapes_from; 0: the file */
};

/* The inputs of a graph while their dimensions are settled. */
struct mdl_settling {
    struct mdl_graph *g;
    char *error;
    struct mdl_settled *dims; /* [g->input_count], in the graph's pool */
};

/** mdl_settle_begin() - Return: 0, -ENOMEM. @g, @error: borrowed. */
int mdl_settle_begin(struct mdl_settling *s, struct mdl_graph *g, char *error);
/** mdl_settle() - settles dimensions of the inputs by @shapes. Return: 0; -EBADMSG: there is no
 * such input or dimension, or the file fixes another size. */
int mdl_settle(struct mdl_settling *s, const struct mdl_shapes *shapes, enum mdl_shapes_from from);
/** mdl_settle_size() - settles height and width of input 0, by the key "size" of the sidecar. */
int mdl_settle_size(struct mdl_settling *s, size_t height, size_t width, bool nhwc);
/**
 * mdl_settle_end() - settles dimensions like others of their symbol, and open batches as 1
 * @ret_digest: tells networks of one file with different sizes apart; 0: no size was given
 * Return: 0; -EOPNOTSUPP: dimensions are open still, and the text says which, and what to write.
 */
int mdl_settle_end(struct mdl_settling *s, uint64_t *ret_digest);

/** mdl_symbol_size() - Return: the size of the inputs' dimensions that are called @symbol; -1:
 * none, or several. @dims: those that were given count; NULL: all. */
int64_t mdl_symbol_size(const struct mdl_graph *g, const struct mdl_settled *dims,
                        const char *symbol);
/** mdl_shape_format() - writes the dimensions of an input as "[batch, 3, 224, 224]"; "?" for one
 * that is open and has no name. Return: @ret. */
char *mdl_shape_format(const struct mdl_gvalue *v, char *ret, size_t bytes);
