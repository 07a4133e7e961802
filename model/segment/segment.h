/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/segment/segment.h - a segment of a model is a model; the contract of model/segment/
 *
 * mdl_segment() makes a model of consecutive units of a loaded model. Its inputs are the tensors
 * alive at the *border* before it, its outputs those alive at the border after it. The first
 * segment has the model's own inputs and preprocessing instead, the last one the model's outputs
 * and labels. A chain of segments computes, bit for bit, what the whole model computes with the
 * same primitives.
 *
 * The compiled model is cut, not the graph before it is compiled. Compilation looks across units:
 * it folds, fuses, chooses layouts and quantises. A sub-graph compiled alone could decide
 * otherwise, and its results would differ in the last bits. After compilation every op is fixed,
 * and a border is what ops behind it read and ops before it wrote.
 *
 * A border is a contract, byte for byte. Its tensors are ordered by the first op that writes them,
 * then by their place in memory. Each is dense, and keeps the order of its dims in memory: NHWC
 * stays NHWC. Parts of a concat that adjoin are one tensor; parts not written yet are not sent. A
 * model output that is finished early, and a model input that is still needed, are part of each
 * border until the end. The border's hash covers all this, so two boards that would cut
 * differently notice it.
 *
 * Ops read a border tensor straight from the frame's input, and write it straight to the frame's
 * output, if it has a storage of its own. Inputs are never written. Copies (COPY ops, in the first
 * or last unit) remain for parts of an unfinished concat, and for a tensor that only passes through
 * or is needed both here and behind.
 *
 * Threads: any; plain functions on immutable models.
 */
#pragma once

#include "model/model.h"

/* A tensor that is alive at a border. */
struct mdl_live {
    struct mdl_tensor t;           /* as it lies in the model; its name is borrowed */
    ptrdiff_t dense[MDL_RANK_MAX]; /* strides as a border carries it */
    size_t bytes;                  /* as a border carries it */
};

struct mdl_border {
    struct mdl_live *live; /* owned */
    size_t count;
    size_t bytes;  /* of all of them */
    char hash[65]; /* of names, types, dims, orders in memory and their order */
};

/**
 * mdl_border() - what is alive at the border before unit @unit
 * @whole: a whole model. @unit: 0: the model's inputs; unit_count: its outputs
 * @ret: the caller's, mdl_border_deinit(); it borrows from @whole. Return: 0, -EINVAL (no such
 * unit, or @whole is a segment), -ENOMEM.
 */
int mdl_border(const struct mdl_model *whole, size_t unit, struct mdl_border *ret);
void mdl_border_deinit(struct mdl_border *b);

struct mdl_segment_limits {
    size_t weight_bytes_max, arena_bytes_max; /* 0: none */
};

/**
 * mdl_segment() - makes a model of units @first..@last of @whole
 * @whole: borrowed during the call. The segment keeps the file's mapping alive, and shares the
 * weights in it; it copies other constants that it reads, and nothing else.
 * @limits: for the segment alone; NULL: none
 * @ret_error: MDL_ERROR_MAX bytes. @ret: owned by the caller, mdl_free()
 *
 * The units keep their names, and count from 0. Weights, arena and limits are those of these units.
 * The model is called "NAME#first-last"; identity, costs and choices are kept under that, too. All
 * units of a model are a segment like any other. Return: 0; -EINVAL: a bad range, or @whole is a
 * segment; -EOPNOTSUPP: nothing is alive at a border; -E2BIG: past a limit; -EBADMSG: a leaf of the
 * file that it needs is not there; -ENOMEM.
 */
int mdl_segment(const struct mdl_model *whole, size_t first, size_t last,
                const struct mdl_segment_limits *limits, char ret_error[MDL_ERROR_MAX],
                struct mdl_model **ret);

/** mdl_segment_copies() - Return: how many of its first ops copy inputs. They are its own,
 * as COPY ops at its end may be; all between are the whole model's. 0: of a whole model, too. */
size_t mdl_segment_copies(const struct mdl_model *m);

/**
 * mdl_segment_leaves() - which leaves of its file (base/leaves/leaves.h) the segment needs
 * @whole: loaded from a file, whole or with the leaves for any of its segments. @ret_needed:
 * [@count], the file's leaves
 *
 * These are the leaves with structure (all but weights), constants that the compiler reads, and
 * weights of these units. A leaf with a byte of structure is needed, so a leaf can be spared only
 * inside a weight of more than 1 MiB. Return: 0, -EINVAL (bad range or count, or a model without a
 * file), -ENOMEM.
 */
int mdl_segment_leaves(const struct mdl_model *whole, size_t first, size_t last, bool *ret_needed,
                       size_t count);
