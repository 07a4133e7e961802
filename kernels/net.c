/* SPDX-License-Identifier: Apache-2.0 */
/* A model with a primitive for each of its units: made, asked, freed. */
#include "base/base.h"
#include "base/leaves/load_work.h"
#include "kernels/net_private.h"

static int consts(struct krn_net *net, size_t i, const struct krn_primitive *v)
{
    return krn_bound_consts(v, net->model, i, net->const_copies, &net->copied_bytes);
}

/* Prepares primitive @v of op @i; if that fails, the next one in order of preference that can be
 * prepared. Return: 0, -ENOMEM, -EOPNOTSUPP (there is none). */
static int ready_some(struct krn_net *net, size_t i, bool fused, const char *only,
                      const struct krn_primitive *v, uint8_t *ret)
{
    struct krn_net_op *o = &net->ops[i];
    int r = -EOPNOTSUPP;

    while (v && r == -EOPNOTSUPP) {
        size_t before = o->bound_count;

        *ret = krn_net_add(o, v);
        r = krn_bound_ready(&o->bound[*ret], net->model, i, 1);
        if (r == -EOPNOTSUPP) {
            o->bound_count = before;
            v = krn_primitive_next(net->model, i, fused, only, v);
        }
    }
    return r == 0 ? consts(net, i, v) : r;
}

static int no_primitive(const struct mdl_model *m, size_t i, char ret_error[MDL_ERROR_MAX])
{
    const struct mdl_op *op = &m->ops[i];

    snprintf(ret_error, MDL_ERROR_MAX,
             "%s '%.200s': no primitive for these shapes and types (result %s)",
             mdl_op_kind_name(op->kind), op->name ? op->name : "",
             mdl_dtype_name(m->tensors[op->out[0]].dtype));
    return -EOPNOTSUPP;
}

/* Takes the primitives as they were chosen, and prepares none. */
static int add(struct krn_net *net, size_t i, const struct krn_primitive *fused,
               const struct krn_primitive *own, struct krn_net_pick *ret)
{
    int r = consts(net, i, own);

    ret->own = krn_net_add(&net->ops[i], own);
    if (r == 0 && fused) {
        ret->fused = krn_net_add(&net->ops[i], fused);
        r = consts(net, i, fused);
    }
    return r;
}

/* Applies @choices to op @i, and prepares what @pack says, so that little remains to do when a plan
 * is built. */
static int pick(struct krn_net *net, size_t i, const char *only, const struct krn_choice *choices,
                enum krn_pack pack, char ret_error[MDL_ERROR_MAX])
{
    struct krn_net_op *o = &net->ops[i];
    int r = 0;

    for (size_t k = 0; r == 0 && k < net->kind_count; k++) {
        const struct krn_primitive *own = choices[k].own[i], *fused = choices[k].fused[i];
        struct krn_net_pick *p = &o->picks[k];
        bool second = i > 0 && choices[k].fused[i - 1];

        if (!own || !krn_usable(own, net->model, i) ||
            (fused && (second || !fused->fused || !krn_usable(fused, net->model, i)))) {
            return no_primitive(net->model, i, ret_error);
        }
        second = i > 0 && o[-1].picks[k].fused != KRN_NET_NONE;
        p->fused = KRN_NET_NONE;
        if (pack == KRN_PACK_NOTHING) {
            r = add(net, i, fused, own, p);
            continue;
        }
        r = fused ? ready_some(net, i, true, only, fused, &p->fused) : 0;
        if (r == -EOPNOTSUPP) { /* then each op runs unfused */
            p->fused = KRN_NET_NONE;
            r = 0;
        }
        p->own = krn_net_add(o, own);
        if (r == 0 && (pack == KRN_PACK_ALL || (p->fused == KRN_NET_NONE && !second))) {
            r = ready_some(net, i, false, only, own, &p->own);
        } else if (r == 0) {
            r = consts(net, i, own);
        }
    }
    return r == -EOPNOTSUPP ? no_primitive(net->model, i, ret_error) : r;
}

struct krn_net *krn_net_free(struct krn_net *net)
{
    if (!net) {
        return NULL;
    }
    for (size_t i = 0; net->ops && i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->ops[i].bound_count; k++) {
            krn_bound_release(&net->ops[i].bound[k]);
        }
        free(net->ops[i].bound);
    }
    for (size_t i = 0; net->const_copies && i < net->model->storage_count; i++) {
        free(net->const_copies[i]);
    }
    krn_shelf_unref(net->shelf);
    free(net->const_copies);
    free(net->ops);
    free(net);
    return NULL;
}

static void net_freep(struct krn_net **net)
{
    *net = krn_net_free(*net);
}

/* @only: selects the replacement of a primitive that cannot be prepared. */
static int net_new(const struct mdl_model *m, const char *only, const struct krn_choice *choices,
                   size_t kind_count, enum krn_pack pack, char ret_error[MDL_ERROR_MAX],
                   struct krn_net **ret)
{
    base_cleanup(net_freep) struct krn_net *net = calloc(1, sizeof(*net));
    int r = 0;

    snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
    if (!net) {
        return -ENOMEM;
    }
    net->model = m;
    net->kind_count = kind_count;
    net->image_reader = krn_image_reader(m);
    net->ops = calloc(m->op_count + 1, sizeof(*net->ops));
    net->const_copies = calloc(m->storage_count + 1, sizeof(*net->const_copies));
    net->shelf = krn_shelf_new();
    if (!net->ops || !net->const_copies || !net->shelf) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < kind_count; i++) {
        memcpy(net->kinds[i], choices[i].kind, sizeof(net->kinds[i]));
    }
    for (size_t i = 0; i < m->op_count && r == 0; i++) {
        net->ops[i].skip = krn_writes_nothing(m, i);
        net->ops[i].may_stay = krn_nchw_may_stay(m, i);
        net->ops[i].bound = calloc(4 * kind_count, sizeof(*net->ops[i].bound));
        r = net->ops[i].bound ? 0 : -ENOMEM;
        for (size_t k = 0; r == 0 && k < 4 * kind_count; k++) {
            net->ops[i].bound[k].shelf = net->shelf;
        }
    }
    if (r == 0 && pack != KRN_PACK_NOTHING) {
        r = krn_net_pack(net, choices, pack == KRN_PACK_ALL);
    }
    for (size_t i = 0; i < m->op_count && r == 0; i++) {
        r = mdl_stopped() ? -ECANCELED : pick(net, i, only, choices, pack, ret_error);
    }
    mdl_drop_weights(m);
    if (r < 0) {
        return r;
    }
    ret_error[0] = '\0';
    *ret = base_take(net);
    return 0;
}

int krn_net_new_preferred(const struct mdl_model *m, const char *only, enum krn_pack pack,
                          char ret_error[MDL_ERROR_MAX], struct krn_net **ret)
{
    struct krn_choice choice;
    int r = krn_choice_prefer(m, only, &choice);

    if (r < 0) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return r;
    }
    r = net_new(m, only, &choice, 1, pack, ret_error, ret);
    krn_choice_deinit(&choice);
    return r;
}

int krn_net_new(const struct mdl_model *m, const char *only, char ret_error[MDL_ERROR_MAX],
                struct krn_net **ret)
{
    return krn_net_new_preferred(m, only, KRN_PACK_ALL, ret_error, ret);
}

int krn_net_new_chosen(const struct mdl_model *m, const struct krn_choice *choices,
                       size_t kind_count, enum krn_pack pack, char ret_error[MDL_ERROR_MAX],
                       struct krn_net **ret)
{
    if (kind_count == 0 || kind_count > KRN_KIND_MAX) {
        snprintf(ret_error, MDL_ERROR_MAX, "there are more than %u kinds of cores", KRN_KIND_MAX);
        return -EINVAL;
    }
    for (size_t k = 0; k < kind_count; k++) {
        if (choices[k].op_count != m->op_count) {
            snprintf(ret_error, MDL_ERROR_MAX, "the choice is of another model");
            return -EINVAL;
        }
    }
    return net_new(m, NULL, choices, kind_count, pack, ret_error, ret);
}

const struct mdl_model *krn_net_model(const struct krn_net *net)
{
    return net->model;
}

size_t krn_net_kinds(const struct krn_net *net)
{
    return net->kind_count;
}

size_t krn_net_kind(const struct krn_net *net, const char *name)
{
    size_t base = strcspn(name, ".");

    for (size_t k = 0; k < net->kind_count; k++) {
        if (strlen(net->kinds[k]) == base && strncmp(net->kinds[k], name, base) == 0) {
            return k;
        }
    }
    return 0;
}

const struct krn_primitive *krn_net_chosen(const struct krn_net *net, size_t kind, size_t op)
{
    return krn_net_own(net, kind, op)->primitive;
}

const struct krn_primitive *krn_net_chosen_fused(const struct krn_net *net, size_t kind, size_t op)
{
    const struct krn_bound *bound = krn_net_pair(net, kind, op);

    return bound ? bound->primitive : NULL;
}

size_t krn_net_packed_bytes(const struct krn_net *net)
{
    size_t bytes = net->copied_bytes;

    for (size_t i = 0; i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->ops[i].bound_count; k++) {
            bytes += krn_bound_bytes(&net->ops[i].bound[k]);
        }
    }
    return bytes;
}

/* Does a kind before @kind run the same primitive of @op? */
static bool is_counted(const struct krn_net *net, size_t kind, const struct krn_bound *bound,
                       size_t op, bool fused)
{
    for (size_t k = 0; k < kind; k++) {
        if (bound == (fused ? krn_net_pair(net, k, op) : krn_net_own(net, k, op))) {
            return true;
        }
    }
    return false;
}

size_t krn_net_ops_need_bytes(const struct krn_net *net, size_t first, size_t last)
{
    size_t bytes = 0;

    for (size_t k = 0; k < net->kind_count; k++) {
        size_t i = first + (first > 0 && krn_net_pair(net, k, first - 1));

        for (; i <= last; i++) {
            const struct krn_bound *fused = krn_net_pair(net, k, i);
            const struct krn_bound *bound = fused ? fused : krn_net_own(net, k, i);

            if (!is_counted(net, k, bound, i, fused != NULL)) {
                bytes += krn_bound_packed_bytes(bound, net->model, i);
            }
            i += fused != NULL;
        }
    }
    return bytes;
}

size_t krn_net_need_bytes(const struct krn_net *net)
{
    return krn_net_ops_need_bytes(net, 0, net->model->op_count - 1) + net->copied_bytes;
}

/* ---- what teams run ---- */
