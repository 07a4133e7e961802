/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/net_private.h - the parts of a net; for net*.c only
 *
 * net.c makes a net and answers queries, net_pack.c packs weights at load, net_team.c prepares
 * primitives for teams, net_run.c runs ops.
 */
#pragma once

#include "kernels/bound_primitive.h"
#include "kernels/choice.h"
#include "kernels/kernels.h"
#include "kernels/shared_weights.h"

/* For one op and one kind of cores: indices of the op's primitives. */
struct krn_net_pick {
    uint8_t own, fused; /* fused: KRN_NET_NONE: it runs alone */
};

#define KRN_NET_NONE UINT8_MAX

struct krn_net_op {
    struct krn_bound *bound; /* [bound_count], owned: each primitive that a kind chose, once */
    size_t bound_count;
    struct krn_net_pick picks[KRN_KIND_MAX];
    bool skip;     /* nothing to write */
    bool may_stay; /* krn_nchw_may_stay() */
};

struct krn_net {
    const struct mdl_model *model; /* borrowed */
    struct krn_net_op *ops;        /* op_count, owned */
    size_t kind_count;
    char kinds[KRN_KIND_MAX][KRN_KIND_NAME_MAX];
    /* Per storage: an aligned copy of a constant that a fast primitive reads at run time and whose
     * bytes in the file are not aligned to their element type; owned. NULL: the model's own
     * bytes. */
    void **const_copies;
    size_t copied_bytes;
    struct krn_shelf *shelf; /* owned reference: of the weights that are packed at load */
    size_t image_reader;     /* krn_image_reader() */
};

static inline struct krn_bound *krn_net_own(const struct krn_net *net, size_t kind, size_t i)
{
    return &net->ops[i].bound[net->ops[i].picks[kind].own];
}

/* NULL: the op runs alone. */
static inline struct krn_bound *krn_net_pair(const struct krn_net *net, size_t kind, size_t i)
{
    uint8_t at = net->ops[i].picks[kind].fused;

    return at == KRN_NET_NONE ? NULL : &net->ops[i].bound[at];
}

/** krn_net_add() - Return: the index of @v among the op's primitives; adds it if needed. */
uint8_t krn_net_add(struct krn_net_op *o, const struct krn_primitive *v);
/** krn_net_pack() - prepares, side by side, the primitives of @choices: with @all for any range of
 * ops, else for a plan of one stage. Return: 0, -ENOMEM. */
int krn_net_pack(struct krn_net *net, const struct krn_choice *choices, bool all);
