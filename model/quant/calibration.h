/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/calibration.h - the ranges by which an f32 model is quantised when it is loaded
 *
 * A calibration says for each value (by its tensor's name) in which range its reals lie, and which
 * operators stay f32. mdl_load() with one (struct mdl_load_options) makes integers out of every
 * convolution, product with constant weights, sum and mean whose operands have a range: weights
 * symmetric per output channel, q = round(w / s[o]), s[o] = max |w[o]| / 127; activations u8 with a
 * zero point, or i8 without one if symmetric (u8 without one where nothing is negative). Neighbours
 * hand integers on; around what stays f32 values are quantised and dequantised. Bias and batch norm
 * are exact to 32 bits of x_scale s[o]. A calibration that names another model is refused.
 *
 * Where it says what single channels are like, quieter ones are scaled up between one product and
 * the next, and what rounding the weights adds to the mean of a result is taken off its bias
 * (model/quant.h).
 *
 * kernels/calibrate.h finds ranges by running the model; the file is JSON.
 */
#pragma once

#include "model/model.h"

struct json_t;

struct mdl_range {
    char *name;      /* owned: of the tensor in the f32 model */
    float low, high; /* finite, low <= high */
};

struct mdl_channels { /* a value's channels, which are its dim 1 */
    char *name;       /* owned: of the tensor in the f32 model */
    size_t count;
    float *low, *high, *mean, *power; /* [count] each, owned; finite, low <= high; power: the mean
                                         of squares */
};

struct mdl_calibration {
    char hash[65];  /* of the model it was made of, or "" */
    bool symmetric; /* activations */
    bool equalised; /* channels, between products */
    size_t range_count;
    struct mdl_range *ranges; /* owned, sorted by name, no name twice */
    size_t channels_count;
    struct mdl_channels *channels; /* owned, sorted by name, no name twice */
    size_t keep_count;
    char **keep; /* owned: names of operators (struct mdl_op) that stay f32 */
};

/** mdl_calibration_free() - Takes NULL. Return: NULL. */
struct mdl_calibration *mdl_calibration_free(struct mdl_calibration *c);

/** mdl_calibration_sort() - sorts ranges and channels; ranges of one name become one that holds all
 * of them, of channels the first stays. */
void mdl_calibration_sort(struct mdl_calibration *c);

/** mdl_calibration_find() - the range of @name, or NULL. */
const struct mdl_range *mdl_calibration_find(const struct mdl_calibration *c, const char *name);

/** mdl_calibration_channels() - those of @name, or NULL. */
const struct mdl_channels *mdl_calibration_channels(const struct mdl_calibration *c,
                                                    const char *name);

/** mdl_calibration_keeps() - does the operator @name stay f32? */
bool mdl_calibration_keeps(const struct mdl_calibration *c, const char *name);

/**
 * mdl_calibration_read() - from a JSON file
 * @ret: owned by the caller, mdl_calibration_free(). Threads: any; blocks on the file; allocates.
 * Return: 0, -errno of a system call, -EBADMSG for what is no calibration (@ret_error says why),
 * -ENOMEM.
 */
int mdl_calibration_read(const char *path, char ret_error[MDL_ERROR_MAX],
                         struct mdl_calibration **ret);

/** mdl_calibration_json() - what such a file holds, the caller's reference. Return: NULL: -ENOMEM.
 */
struct json_t *mdl_calibration_json(const struct mdl_calibration *c);

/** mdl_calibration_write() - to @path, replaced as a whole. Return: 0, -errno, -ENOMEM. */
int mdl_calibration_write(const struct mdl_calibration *c, const char *path);
