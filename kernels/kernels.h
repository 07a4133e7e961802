/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/kernels.h - the contract of kernels/: a model made executable
 *
 * A krn_net has a primitive for every op, with its weights packed. Everything else that a run needs
 * is passed in: the frame's memory (struct krn_mem) and what the team runs with (struct krn_exec).
 * So any team can run any op of any frame, and all teams share one net.
 *
 * Users of kernels/ include this header, which brings the parts of the contract: primitives, images
 * and teams. Files inside kernels/ include the part they need.
 */
#pragma once

#include "kernels/common/frame_mem.h"
#include "kernels/common/parallel.h"
#include "kernels/image/image.h"
#include "kernels/primitive.h"

#define KRN_KIND_MAX 16u /* kinds of cores of one net */

struct krn_net;
struct krn_choice; /* kernels/choice.h */

/* ---- making a net: allocates, blocks; any thread ---- */

/**
 * krn_net_new() - chooses a primitive for every op and packs its weights
 * @m: borrowed until krn_net_free()
 * @only: NULL, or a comma-separated list of parts of names: an op takes its first usable primitive
 * whose name contains one of the parts. "__ref" runs everything on the reference. With a list, a
 * FUSED primitive is taken only if the list names it. An INEXACT primitive is taken only if named.
 *
 * Packs what any range of ops needs, so that the net can run without krn_net_join(), and releases
 * the file's pages whose weights it has packed. A constant that a fast primitive reads at run time
 * is copied once if its address in the file is not aligned to its type; references read any
 * address. An op with an empty input runs on its reference; an op with an empty output is skipped.
 * Weights that another net of the same file has packed alike are shared with it; either net may be
 * freed first.
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP (no primitive can run some op; @ret_error names it).
 */
int krn_net_new(const struct mdl_model *m, const char *only, char ret_error[MDL_ERROR_MAX],
                struct krn_net **ret);

/* What a new net packs for callers that use krn_net_join(), which packs the rest. */
enum krn_pack {
    KRN_PACK_ALL,       /* as krn_net_new() */
    KRN_PACK_ONE_STAGE, /* what a plan of one stage runs on each kind */
    KRN_PACK_NOTHING,   /* for a model whose weights do not fit, or are not run here for now */
};

/** krn_net_new_preferred() - as krn_net_new(), for callers that use krn_net_join(). With
 * KRN_PACK_NOTHING it cannot see that a primitive cannot be prepared: krn_net_join() fails then. */
int krn_net_new_preferred(const struct mdl_model *m, const char *only, enum krn_pack pack,
                          char ret_error[MDL_ERROR_MAX], struct krn_net **ret);

/**
 * krn_net_new_chosen() - makes a net from existing choices, one for each kind of cores
 * @choices: [@kind_count], read during the call. A primitive that several kinds choose is packed
 * once.
 *
 * @pack: as for krn_net_new_preferred()
 *
 * Return: 0, -ENOMEM, -EINVAL (a choice of another model, or more than KRN_KIND_MAX kinds),
 * -EOPNOTSUPP (a chosen primitive cannot run its op; @ret_error says which).
 */
int krn_net_new_chosen(const struct mdl_model *m, const struct krn_choice *choices,
                       size_t kind_count, enum krn_pack pack, char ret_error[MDL_ERROR_MAX],
                       struct krn_net **ret);

/** krn_net_free() - no team may run the net any more. Accepts NULL. Return: NULL. */
struct krn_net *krn_net_free(struct krn_net *net);

/** krn_pack_threads() - sets how many threads may pack weights when the calling thread makes a net.
 * 0 and 1 (the default) mean the calling thread alone. Use more only while nothing is served. */
void krn_pack_threads(size_t count);

/** krn_const_eval() - a mdl_const_eval_fn: runs the single op of @m on its reference. */
int krn_const_eval(const struct mdl_model *m, void *arena);

/* ---- teams of a net: one caller at a time, also while teams run; allocates, blocks ---- */

/**
 * krn_net_join() - prepares the primitives of ops @first..@last for a team of @width on cores of
 * @kind
 * @ret_scratch_bytes: how much scratch the team needs, a multiple of 64
 *
 * They stay ready until krn_net_leave() has been called as often as krn_net_join(). Packing again
 * reads the model's file.
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP.
 */
int krn_net_join(const struct krn_net *net, size_t kind, size_t first, size_t last, size_t width,
                 size_t *ret_scratch_bytes);
/** krn_net_join_uneven() - as krn_net_join(), for a team of @members unequal cores and up to
 * @frames frames at once; krn_exec.width is krn_uneven_width() (kernels/common/uneven.h) */
int krn_net_join_uneven(const struct krn_net *net, size_t kind, struct krn_range ops,
                        size_t members, size_t frames, size_t *ret_scratch_bytes);
/** krn_net_pieces() - Return: in how many pieces, at most @most, a team of one core can run @ops
 * (krn_parallel_between()); 1: some op's primitive is whole
 *
 * A power of two. Pieces are about equally long where an op has as many rows, or panels. Threads:
 * any. */
size_t krn_net_pieces(const struct krn_net *net, size_t kind, struct krn_range ops, size_t most);
/** krn_net_join_pieces() - prepares @ops, which a team of one core has joined, for @pieces
 * @io_scratch_bytes: what the team needs so far, and then in all. Return: as krn_net_join(). */
int krn_net_join_pieces(const struct krn_net *net, size_t kind, struct krn_range ops, size_t pieces,
                        size_t *io_scratch_bytes);
void krn_net_leave(const struct krn_net *net, size_t kind, size_t first, size_t last);

/** krn_net_trim() - frees prepared primitives that no team has joined, and releases pages of the
 * file. */
void krn_net_trim(const struct krn_net *net);

/**
 * krn_net_place() - sets the NUMA nodes of the cores that run ops @first..@last
 * @nodes: [krn_net_kinds()], one bit for each node with teams of that kind; 0: no team runs them,
 * or the nodes are unknown
 *
 * Places the packed weights on these nodes, including weights packed later. Several nodes take
 * pages in turn. Weights stay where they are if the system cannot move them. Memory that a library
 * packs by itself is not moved.
 */
void krn_net_place(const struct krn_net *net, size_t first, size_t last, const uint64_t *nodes);

/* ---- running: a team's leader; never allocates ---- */

/**
 * krn_net_run_ops() - runs ops @first..@last, both included, of one frame
 *
 * A FUSED primitive runs its pair if both ops are in the range. mem->image, if set, replaces input
 * 0 and its entry_op (struct mdl_io). The range that contains entry_op (op 0 if there is none)
 * converts the image by krn_preprocess(), or passes it to a primitive that reads images.
 */
void krn_net_run_ops(const struct krn_net *net, size_t first, size_t last,
                     const struct krn_mem *mem, const struct krn_exec *exec);

/**
 * krn_net_run_frames() - runs ops @ops of several frames, as krn_net_run_ops() runs them of one
 * @mems: [@count], one for each frame
 *
 * Weights are read once for all frames where the primitive can (krn_primitive.frames_at_once): of
 * products of one row (fully connected layers) and of Winograd's convolutions. All other ops run
 * frame after frame. The team's scratch must have krn_net_frames_bytes(), too.
 */
void krn_net_run_frames(const struct krn_net *net, struct krn_range ops,
                        const struct krn_mem *const *mems, size_t count,
                        const struct krn_exec *exec);

/** krn_net_frames_bytes() - Return: scratch for krn_net_run_frames() of @ops, a multiple of 64; 0:
 * no op of them computes several frames at once
 * @frames: at most so many     @kind, @width: of the team, which has joined */
size_t krn_net_frames_bytes(const struct krn_net *net, size_t kind, struct krn_range ops,
                            size_t width, size_t frames);

/** krn_net_scratch_bytes() - Return: the scratch that any ready primitive needs for a team of
 * @width, in bytes, a multiple of 64. For callers that run a net of krn_net_new() without
 * krn_net_join(). Call it before the first run: it makes the libraries' objects for @width.
 * Allocates, blocks. */
size_t krn_net_scratch_bytes(const struct krn_net *net, size_t width);

/* ---- what a net is; any thread ---- */

const struct mdl_model *krn_net_model(const struct krn_net *net);
/** krn_net_packed_bytes() - Return: bytes of packed weights. Nets of one file share those that they
 * pack alike; these count in equal parts. */
size_t krn_net_packed_bytes(const struct krn_net *net);
/** krn_net_need_bytes() - Return: packed bytes that a plan of one stage on all kinds needs, packed
 * already or not. */
size_t krn_net_need_bytes(const struct krn_net *net);
/** krn_net_ops_need_bytes() - Return: what ops @first to @last have of krn_net_need_bytes(); an
 * operator that is fused with the one in front counts there. */
size_t krn_net_ops_need_bytes(const struct krn_net *net, size_t first, size_t last);
size_t krn_net_kinds(const struct krn_net *net);
/** krn_net_kind() - Return: the kind whose choice is called @name up to its first '.' (what follows
 * names a part of that kind's cores), or 0. */
size_t krn_net_kind(const struct krn_net *net, const char *name);

/** krn_net_chosen() - Return: the primitive that runs @op alone on cores of @kind.
 * krn_net_chosen_fused() - Return: the primitive that runs @op and @op + 1 in one, or NULL. */
const struct krn_primitive *krn_net_chosen(const struct krn_net *net, size_t kind, size_t op);
const struct krn_primitive *krn_net_chosen_fused(const struct krn_net *net, size_t kind, size_t op);
