/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/quant/calibration.h - the ranges that quantise an f32 model when it is loaded
 *
 * A calibration gives the range of each value (by its tensor's name), and lists the operators that
 * stay f32. mdl_load() with a calibration (struct mdl_load_options) quantises every convolution,
 * product with constant weights, sum and mean whose operands have a range: weights symmetric per
 * output channel, q = round(w / s[o]), s[o] = max |w[o]| / 127; activations u8 with a zero point,
 * or i8 without one if symmetric (u8 without one if no value is negative). Neighbouring integer ops
 * pass integers on; values are quantised and dequantised around f32 ops. Bias and batch norm are
 * exact to 32 bits of x_scale s[o]. A calibration for another model is refused.
 *
 * If it also describes single channels, channels of small range are scaled up between one product
 * and the next, and the bias is corrected for the shift in a result's mean that rounding the
 * weights causes (model/quant/quant_private.h).
 *
 * kernels/int8cal/calibrate.h finds ranges by running the model; the file is JSON.
 */
#pragma once

#include "model/model.h"

struct json_t;

struct mdl_range {
    char *name;      /* owned: the tensor's name in the f32 model */
    float low, high; /* finite, low <= high */
};

struct mdl_channels { /* a value's channels, its dim 1 */
    char *name;       /* owned: the tensor's name in the f32 model */
    size_t count;
    float *low, *high, *mean, *power; /* [count] each, owned; finite, low <= high; power: the mean
                                         of squares */
};

struct mdl_calibration {
    char hash[65];  /* of the model it was made for, or "" */
    bool symmetric; /* activations */
    bool equalised; /* channels, between products */
    size_t range_count;
    struct mdl_range *ranges; /* owned, sorted by name, no name twice */
    size_t channels_count;
    struct mdl_channels *channels; /* owned, sorted by name, no name twice */
    size_t keep_count;
    char **keep; /* owned: names of operators (struct mdl_op) that stay f32 */
};

/** mdl_calibration_free() - Accepts NULL. Return: NULL. */
struct mdl_calibration *mdl_calibration_free(struct mdl_calibration *c);

/** mdl_calibration_sort() - sorts ranges and channels by name. Ranges of the same name are merged
 * into one that covers all; of channels of the same name the first stays. */
void mdl_calibration_sort(struct mdl_calibration *c);

/** mdl_calibration_find() - Return: the range of @name, or NULL. */
const struct mdl_range *mdl_calibration_find(const struct mdl_calibration *c, const char *name);

/** mdl_calibration_channels() - Return: the channels of @name, or NULL. */
const struct mdl_channels *mdl_calibration_channels(const struct mdl_calibration *c,
                                                    const char *name);

/** mdl_calibration_keeps() - Return: whether the operator @name stays f32. */
bool mdl_calibration_keeps(const struct mdl_calibration *c, const char *name);

/**
 * mdl_calibration_read() - reads a JSON file
 * @ret: owned by the caller, mdl_calibration_free(). Threads: any; blocks on the file; allocates.
 * Return: 0, -errno of a system call, -EBADMSG if it is not a calibration (@ret_error says why),
 * -ENOMEM.
 */
int mdl_calibration_read(const char *path, char ret_error[MDL_ERROR_MAX],
                         struct mdl_calibration **ret);

/** mdl_calibration_from_json() - the same of JSON that was already read. @root: borrowed;
 * @path: for @ret_error. */
int mdl_calibration_from_json(const struct json_t *root, const char *path,
                              char ret_error[MDL_ERROR_MAX], struct mdl_calibration **ret);
/** mdl_calibration_json() - makes the JSON of such a file. Return: the caller's reference; NULL:
 * out of memory. */
struct json_t *mdl_calibration_json(const struct mdl_calibration *c);
