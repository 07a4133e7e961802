/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "kernels/choice.h"
#include "kernels/form.h"
#include "kernels/image/image_input.h"
#include "kernels/kernels.h"
#include "kernels/image/preprocess.h"
#include "kernels/row.h"
#include "model/common/share.h"

/* For one op and one kind: indices of the op's rows. */
struct pick {
    uint8_t own, fused; /* fused: NO_ROW where it runs alone */
};
#define NO_ROW UINT8_MAX

struct net_op {
    struct krn_row *rows; /* [row_count], owned: every row that some kind chose, once */
    size_t row_count;
    struct pick picks[KRN_KIND_MAX];
    bool skip;     /* nothing to write */
    bool may_stay; /* krn_form_may_stay() */
};

struct krn_net {
    const struct mdl_model *model; /* borrowed */
    struct net_op *ops;            /* op_count, owned */
    size_t kind_count;
    char kinds[KRN_KIND_MAX][KRN_KIND_NAME_MAX];
    /* Per storage: an aligned copy of a constant that a fast primitive reads at run time and whose
     * bytes in the file are not aligned to their element type; owned. NULL: as the model has it. */
    void **const_copies;
    size_t copied_bytes;
    struct krn_store store; /* of the rows that are packed at load */
    size_t image_reader;    /* krn_image_reader() */
};

static struct krn_row *own_row(const struct krn_net *net, size_t kind, size_t i)
{
    return &net->ops[i].rows[net->ops[i].picks[kind].own];
}

/* NULL: the op runs alone. */
static struct krn_row *fused_row(const struct krn_net *net, size_t kind, size_t i)
{
    uint8_t at = net->ops[i].picks[kind].fused;

    return at == NO_ROW ? NULL : &net->ops[i].rows[at];
}

static int consts(struct krn_net *net, size_t i, const struct krn_variant *v)
{
    return krn_row_consts(v, net->model, i, net->const_copies, &net->copied_bytes);
}

static uint8_t add_row(struct net_op *o, const struct krn_variant *v)
{
    uint8_t at = 0;

    while (at < o->row_count && o->rows[at].variant != v) {
        at++;
    }
    if (at == o->row_count) {
        o->rows[o->row_count++].variant = v;
    }
    return at;
}

/* Readies row @v of op @i, or one after it in the order of preference that can be made ready after
 * all. Return: 0, -ENOMEM, -EOPNOTSUPP (there is none). */
static int ready_some(struct krn_net *net, size_t i, bool fused, const char *only,
                      const struct krn_variant *v, uint8_t *ret)
{
    struct net_op *o = &net->ops[i];
    int r = -EOPNOTSUPP;

    while (v && r == -EOPNOTSUPP) {
        size_t before = o->row_count;

        *ret = add_row(o, v);
        r = krn_row_ready(&o->rows[*ret], net->model, i, 1);
        if (r == -EOPNOTSUPP) {
            o->row_count = before;
            v = krn_row_next(net->model, i, fused, only, v);
        }
    }
    return r == 0 ? consts(net, i, v) : r;
}

static int no_row(const struct mdl_model *m, size_t i, char ret_error[MDL_ERROR_MAX])
{
    const struct mdl_op *op = &m->ops[i];

    snprintf(ret_error, MDL_ERROR_MAX,
             "%s '%.200s': no primitive for these shapes and types (result %s)",
             mdl_op_kind_name(op->kind), op->name ? op->name : "",
             mdl_dtype_name(m->tensors[op->out[0]].dtype));
    return -EOPNOTSUPP;
}

/* Op @i as @choices have it. Rows that will be run first are made ready here, so that little is
 * left to do when a plan is built: those of a plan of one stage, with @all the others too. */
static int pick(struct krn_net *net, size_t i, const char *only, const struct krn_choice *choices,
                bool all, char ret_error[MDL_ERROR_MAX])
{
    struct net_op *o = &net->ops[i];
    int r = 0;

    for (size_t k = 0; r == 0 && k < net->kind_count; k++) {
        const struct krn_variant *own = choices[k].own[i], *fused = choices[k].fused[i];
        struct pick *p = &o->picks[k];
        bool second = i > 0 && choices[k].fused[i - 1];

        if (!own || !krn_usable(own, net->model, i) ||
            (fused && (second || !fused->fused || !krn_usable(fused, net->model, i)))) {
            return no_row(net->model, i, ret_error);
        }
        second = i > 0 && o[-1].picks[k].fused != NO_ROW;
        p->fused = NO_ROW;
        r = fused ? ready_some(net, i, true, only, fused, &p->fused) : 0;
        if (r == -EOPNOTSUPP) { /* each by its own, then */
            p->fused = NO_ROW;
            r = 0;
        }
        p->own = add_row(o, own);
        if (r == 0 && (all || (p->fused == NO_ROW && !second))) {
            r = ready_some(net, i, false, only, own, &p->own);
        } else if (r == 0) {
            r = consts(net, i, own);
        }
    }
    return r == -EOPNOTSUPP ? no_row(net->model, i, ret_error) : r;
}

/* ---- packing at load ---- */

static _Thread_local size_t pack_threads;

void krn_pack_threads(size_t count)
{
    pack_threads = count;
}

/* A row that will be asked for. */
struct wanted {
    struct krn_row *row;
    size_t op;
};

struct packing {
    const struct mdl_model *m;
    struct wanted *rows; /* [count], owned */
    size_t count;
    _Atomic size_t next; /* writers: the threads that share the work */
};

static void want(struct packing *p, struct net_op *o, size_t op, const struct krn_variant *v)
{
    if (v && krn_usable(v, p->m, op)) {
        p->rows[p->count++] = (struct wanted){&o->rows[add_row(o, v)], op};
    }
}

static void want_chosen(struct krn_net *net, struct packing *p, const struct krn_choice *choices,
                        bool all)
{
    for (size_t i = 0; i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->kind_count; k++) {
            const struct krn_choice *c = &choices[k];
            bool of_pair = c->fused[i] || (i > 0 && c->fused[i - 1]);

            want(p, &net->ops[i], i, c->fused[i]);
            want(p, &net->ops[i], i, of_pair && !all ? NULL : c->own[i]);
        }
    }
}

static void pack_some(void *arg)
{
    struct packing *p = arg;

    for (;;) {
        size_t at = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);

        if (at >= p->count) {
            return;
        }
        (void)krn_row_ready(p->rows[at].row, p->m, p->rows[at].op, 1);
    }
}

static int by_bytes(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    size_t of_x = x->row->packed.bytes, of_y = y->row->packed.bytes;

    return of_x < of_y ? 1 : of_x > of_y ? -1 : x->op < y->op ? -1 : x->op > y->op;
}

/*
 * Readies, side by side, what the choice will ask for: the largest first, so that no thread is left
 * with a large one at the end. A row that cannot be made ready is left to those who ask for it, op
 * by op, and know what to take in its place.
 */
static int pack_ahead(struct krn_net *net, const struct krn_choice *choices, bool all)
{
    struct packing p = {.m = net->model};
    size_t most = 2 * net->kind_count * net->model->op_count, bytes = 0, count = 0;

    p.rows = calloc(most + 1, sizeof(*p.rows));
    if (!p.rows) {
        return -ENOMEM;
    }
    want_chosen(net, &p, choices, all);
    for (size_t i = 0; i < p.count; i++) {
        bool twice = false; /* two kinds chose the same; those of an op stand together */

        for (size_t k = i; !twice && k > 0 && p.rows[k - 1].op == p.rows[i].op; k--) {
            twice = p.rows[k - 1].row == p.rows[i].row;
        }
        if (!twice) {
            p.rows[count++] = p.rows[i];
        }
    }
    p.count = count;
    for (size_t i = 0; i < p.count; i++) {
        p.rows[i].row->packed.bytes = krn_row_packed_bytes(p.rows[i].row, p.m, p.rows[i].op);
        bytes += base_align_up(p.rows[i].row->packed.bytes, BASE_CACHE_LINE_BYTES);
    }
    krn_store_init(&net->store, bytes);
    for (size_t i = 0; i < p.count; i++) {
        krn_store_reserve(&net->store, p.rows[i].row->packed.bytes, &p.rows[i].row->packed);
    }
    qsort(p.rows, p.count, sizeof(*p.rows), by_bytes);
    mdl_share(base_min(base_max(pack_threads, (size_t)1), p.count), pack_some, &p);
    free(p.rows);
    return 0;
}

struct krn_net *krn_net_free(struct krn_net *net)
{
    if (!net) {
        return NULL;
    }
    for (size_t i = 0; net->ops && i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->ops[i].row_count; k++) {
            krn_row_release(&net->ops[i].rows[k]);
        }
        free(net->ops[i].rows);
    }
    for (size_t i = 0; net->const_copies && i < net->model->storage_count; i++) {
        free(net->const_copies[i]);
    }
    krn_store_deinit(&net->store);
    free(net->const_copies);
    free(net->ops);
    free(net);
    return NULL;
}

static void net_freep(struct krn_net **net)
{
    *net = krn_net_free(*net);
}

/* @only: what takes the place of a row that cannot be made ready after all. */
static int net_new(const struct mdl_model *m, const char *only, const struct krn_choice *choices,
                   size_t kind_count, bool all, char ret_error[MDL_ERROR_MAX], struct krn_net **ret)
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
    if (!net->ops || !net->const_copies) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < kind_count; i++) {
        memcpy(net->kinds[i], choices[i].kind, sizeof(net->kinds[i]));
    }
    for (size_t i = 0; i < m->op_count && r == 0; i++) {
        net->ops[i].skip = mdl_elements(&m->tensors[m->ops[i].out[0]]) == 0;
        net->ops[i].may_stay = krn_form_may_stay(m, i);
        net->ops[i].rows = calloc(4 * kind_count, sizeof(*net->ops[i].rows));
        r = net->ops[i].rows ? 0 : -ENOMEM;
    }
    r = r < 0 ? r : pack_ahead(net, choices, all);
    for (size_t i = 0; i < m->op_count && r == 0; i++) {
        r = pick(net, i, only, choices, all, ret_error);
    }
    mdl_drop_weights(m);
    if (r < 0) {
        return r;
    }
    ret_error[0] = '\0';
    *ret = base_take(net);
    return 0;
}

static int new_preferred(const struct mdl_model *m, const char *only, bool all,
                         char ret_error[MDL_ERROR_MAX], struct krn_net **ret)
{
    struct krn_choice choice;
    int r = krn_choice_prefer(m, only, &choice);

    if (r < 0) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return r;
    }
    r = net_new(m, only, &choice, 1, all, ret_error, ret);
    krn_choice_deinit(&choice);
    return r;
}

int krn_net_new(const struct mdl_model *m, const char *only, char ret_error[MDL_ERROR_MAX],
                struct krn_net **ret)
{
    return new_preferred(m, only, true, ret_error, ret);
}

int krn_net_new_preferred(const struct mdl_model *m, const char *only,
                          char ret_error[MDL_ERROR_MAX], struct krn_net **ret)
{
    return new_preferred(m, only, false, ret_error, ret);
}

int krn_net_new_chosen(const struct mdl_model *m, const struct krn_choice *choices,
                       size_t kind_count, char ret_error[MDL_ERROR_MAX], struct krn_net **ret)
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
    return net_new(m, NULL, choices, kind_count, false, ret_error, ret);
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
    for (size_t k = 0; k < net->kind_count; k++) {
        if (strcmp(net->kinds[k], name) == 0) {
            return k;
        }
    }
    return 0;
}

const struct krn_variant *krn_net_row(const struct krn_net *net, size_t kind, size_t op)
{
    return own_row(net, kind, op)->variant;
}

const struct krn_variant *krn_net_row_fused(const struct krn_net *net, size_t kind, size_t op)
{
    const struct krn_row *row = fused_row(net, kind, op);

    return row ? row->variant : NULL;
}

const struct krn_variant *krn_net_variant(const struct krn_net *net, size_t op)
{
    return krn_net_row(net, 0, op);
}

const struct krn_variant *krn_net_fused(const struct krn_net *net, size_t op)
{
    return krn_net_row_fused(net, 0, op);
}

size_t krn_net_packed_bytes(const struct krn_net *net)
{
    size_t bytes = net->copied_bytes;

    for (size_t i = 0; i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->ops[i].row_count; k++) {
            bytes += krn_row_bytes(&net->ops[i].rows[k]);
        }
    }
    return bytes;
}

static size_t row_scratch(const struct krn_net *net, const struct krn_row *row, size_t i,
                          size_t width)
{
    return krn_row_scratch_bytes(row->variant, net->model, i, width);
}

size_t krn_net_scratch_bytes(const struct krn_net *net, size_t width)
{
    size_t most = krn_preprocess_scratch_bytes(net->model, width);

    for (size_t i = 0; i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->ops[i].row_count; k++) {
            struct krn_row *row = &net->ops[i].rows[k];

            if (row->ready) {
                (void)krn_row_ready(row, net->model, i, width);
            }
            most = base_max(most, row_scratch(net, row, i, width));
        }
    }
    return base_align_up(most, 64);
}

/* ---- what teams run ---- */

/* Calls @visit for every row that a team running ops @first..@last may run. Return: 0 or what
 * @visit returned. */
static int each_row(const struct krn_net *net, size_t kind, size_t first, size_t last,
                    int (*visit)(const struct krn_net *net, struct krn_row *row, size_t op,
                                 void *arg),
                    void *arg)
{
    size_t entry = krn_image_entry(net->model);
    int r = 0;

    for (size_t i = first; r == 0 && i <= last && i < net->model->op_count; i++) {
        struct krn_row *fused = i < last ? fused_row(net, kind, i) : NULL;

        if (!fused) {
            r = visit(net, own_row(net, kind, i), i, arg);
            continue;
        }
        r = visit(net, fused, i, arg);
        for (size_t k = i; r == 0 && (i == entry || i + 1 == entry) && k <= i + 1; k++) {
            r = visit(net, own_row(net, kind, k), k, arg);
        }
        i++;
    }
    return r;
}

struct team_needs {
    size_t width, scratch_bytes;
};

static int ready_row(const struct krn_net *net, struct krn_row *row, size_t op, void *arg)
{
    struct team_needs *needs = arg;

    needs->scratch_bytes = base_max(needs->scratch_bytes, row_scratch(net, row, op, needs->width));
    return krn_row_ready(row, net->model, op, needs->width);
}

static int use_row(const struct krn_net *net, struct krn_row *row, size_t op, void *arg)
{
    const bool *more = arg;

    (void)net;
    (void)op;
    row->users += *more ? 1 : (size_t)-1;
    return 0;
}

int krn_net_join(const struct krn_net *net, size_t kind, size_t first, size_t last, size_t width,
                 size_t *ret_scratch_bytes)
{
    struct team_needs needs = {width, krn_preprocess_scratch_bytes(net->model, width)};
    bool more = true;
    int r = each_row(net, kind, first, last, ready_row, &needs);

    if (r == 0) {
        each_row(net, kind, first, last, use_row, &more);
        *ret_scratch_bytes = base_align_up(needs.scratch_bytes, 64);
    }
    return r;
}

void krn_net_leave(const struct krn_net *net, size_t kind, size_t first, size_t last)
{
    bool more = false;

    each_row(net, kind, first, last, use_row, &more);
}

void krn_net_trim(const struct krn_net *net)
{
    for (size_t i = 0; i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->ops[i].row_count; k++) {
            if (net->ops[i].rows[k].users == 0) {
                krn_row_release(&net->ops[i].rows[k]);
            }
        }
    }
    mdl_drop_weights(net->model);
}

/* Rows side by side in the store that are read from the same nodes. */
struct neighbours {
    const uint8_t *from, *end;
    uint64_t nodes;
    bool changed;
};

static void place_neighbours(const struct krn_net *net, struct neighbours *n)
{
    if (n->changed) {
        (void)krn_store_near(&net->store, n->from, n->end, n->nodes);
    }
    *n = (struct neighbours){.nodes = 0};
}

static void place_row(const struct krn_net *net, struct krn_row *row, uint64_t nodes,
                      struct neighbours *n)
{
    bool changed = row->nodes != nodes;

    row->nodes = nodes;
    if (!row->packed.slot) {
        (void)(changed ? krn_pages_near(&row->packed, nodes) : 0);
        return;
    }
    if (n->nodes != nodes) {
        place_neighbours(net, n);
        *n = (struct neighbours){.from = row->packed.slot, .nodes = nodes};
    }
    n->end = row->packed.slot + row->packed.slot_bytes;
    n->changed |= changed;
}

static uint64_t nodes_of(const struct krn_net *net, size_t op, size_t row, const uint64_t *nodes)
{
    uint64_t all = 0;

    for (size_t k = 0; k < net->kind_count; k++) {
        const struct pick *p = &net->ops[op].picks[k];

        all |= p->own == row || p->fused == row ? nodes[k] : 0;
    }
    return all;
}

void krn_net_place(const struct krn_net *net, size_t first, size_t last, const uint64_t *nodes)
{
    struct neighbours n = {.nodes = 0};

    for (size_t i = first; i <= last && i < net->model->op_count; i++) {
        for (size_t at = 0; at < net->ops[i].row_count; at++) {
            uint64_t of_row = nodes_of(net, i, at, nodes);

            if (of_row) { /* else nobody runs it here, or nothing is known */
                place_row(net, &net->ops[i].rows[at], of_row, &n);
            }
        }
    }
    place_neighbours(net, &n);
}

uint64_t krn_net_nodes(const struct krn_net *net, size_t kind, size_t op)
{
    return own_row(net, kind, op)->nodes;
}

void *krn_tensor_ptr(const struct mdl_model *m, size_t t, const struct krn_mem *mem)
{
    const struct mdl_tensor *tensor = &m->tensors[t];
    const struct mdl_storage *s = &m->storages[tensor->storage];
    const uint8_t *base = NULL;

    switch (s->home) {
    case MDL_HOME_ARENA:
        base = mem->arena + s->offset;
        break;
    case MDL_HOME_INPUT:
        base = mem->inputs[s->index];
        break;
    case MDL_HOME_OUTPUT:
        base = mem->outputs[s->index];
        break;
    case MDL_HOME_CONST:
        base = s->data;
        break;
    }
    return (uint8_t *)(uintptr_t)base + tensor->offset;
}

/* The row that runs op @i, with the next where both are below @end and it is a FUSED one. */
static const struct krn_row *row_at(const struct krn_net *net, size_t kind, size_t i, size_t end)
{
    const struct krn_row *fused = i + 1 < end ? fused_row(net, kind, i) : NULL;

    return fused ? fused : own_row(net, kind, i);
}

/* Does the value between ops @i and @i + 1 stay as planes where one team runs ops @of of the frame?
 * The same answer for whoever runs either. */
static bool stays(const struct krn_net *net, size_t kind, size_t i, struct krn_range of)
{
    if (i < of.begin || i + 1 >= of.end || !net->ops[i].may_stay) {
        return false;
    }
    /* pairs are of no such form */
    for (size_t k = base_max(i, of.begin + 1) - 1; k <= i + 1; k++) {
        if (k + 1 < of.end && fused_row(net, kind, k)) {
            return false;
        }
    }
    return own_row(net, kind, i)->variant->planes_out &&
           own_row(net, kind, i + 1)->variant->planes_in;
}

/* Ops of the frame in whose midst values may stay as planes, where @now is what is run now. An
 * image is converted to what the model lays out. */
static struct krn_range reach(const struct krn_net *net, struct krn_range now,
                              const struct krn_mem *mem, const struct krn_exec *exec)
{
    size_t entry = mem->image ? krn_image_entry(net->model) : MDL_NONE;

    if (exec->first_op <= now.begin && exec->last_op + 1 >= now.end) {
        now = (struct krn_range){exec->first_op, exec->last_op + 1};
    }
    now.begin = entry == MDL_NONE ? now.begin : base_max(now.begin, entry + 1);
    return now;
}

static void run_row(const struct krn_net *net, const struct krn_row *row, size_t i,
                    struct krn_range of, const struct krn_mem *mem, const struct krn_exec *exec)
{
    krn_row_run(row, &(struct krn_row_run){.m = net->model,
                                           .op = i,
                                           .copies = net->const_copies,
                                           .mem = mem,
                                           .exec = exec,
                                           .in_planes = i > 0 && stays(net, exec->kind, i - 1, of),
                                           .out_planes = stays(net, exec->kind, i, of)});
}

/* What an image does in place of op @at: it is given to the row that reads it, or converted.
 * Return: how many ops that does. */
static size_t run_image(const struct krn_net *net, size_t at, size_t end, struct krn_range of,
                        const struct krn_mem *mem, const struct krn_exec *exec)
{
    const struct mdl_model *m = net->model;
    size_t reader = net->image_reader;

    if (reader < end && krn_image_is_plain(m, mem->image)) {
        size_t op = row_at(net, exec->kind, at, end)->variant->fused ? at : reader;
        const struct krn_row *row = row_at(net, exec->kind, op, end);

        if (row->variant->from_image && row->variant->from_image(m, &m->ops[op])) {
            run_row(net, row, op, of, mem, exec);
            return op + 1 + row->variant->fused - at;
        }
    }
    krn_image_convert(m, mem, exec);
    return krn_image_entry(m) == MDL_NONE ? 0 : 1;
}

void krn_net_run_ops(const struct krn_net *net, size_t first, size_t last,
                     const struct krn_mem *mem, const struct krn_exec *exec)
{
    size_t end = base_min(last + 1, net->model->op_count);
    size_t image = mem->image ? krn_image_place(net->model) : MDL_NONE;
    struct krn_range of = reach(net, (struct krn_range){first, end}, mem, exec);
    struct krn_mem values = *mem; /* for ops that read what was made of the image */

    values.image = NULL;
    image = image < first ? MDL_NONE : image;
    for (size_t i = first; i < end;) {
        if (i == image) {
            i += run_image(net, i, end, of, mem, exec);
            image = MDL_NONE;
            continue;
        }
        const struct krn_row *row = row_at(net, exec->kind, i, base_min(end, image));

        if (!net->ops[i].skip) {
            run_row(net, row, i, of, &values, exec);
        }
        i += row->variant->fused ? 2 : 1;
    }
}
