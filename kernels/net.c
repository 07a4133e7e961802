/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base.h"
#include "kernels/kernels.h"
#include "kernels/preprocess.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

struct packed {
    void *data; /* owned: mmap'ed if mapped_bytes, else aligned_alloc'ed */
    size_t bytes, mapped_bytes;
};

/* One row made ready for one op. */
struct net_row {
    const struct krn_variant *variant; /* NULL: none */
    struct packed packed;
    struct krn_prepared prepared;
};

struct net_op {
    struct net_row own;
    struct net_row fused; /* runs the next op too, where both are asked for */
    bool skip;            /* nothing to write */
};

struct krn_net {
    const struct mdl_model *model; /* borrowed */
    struct net_op *ops;            /* op_count, owned */
    /* Per storage: an aligned copy of a constant that a fast primitive reads at run time and whose
     * bytes in the file are not aligned to their element type; owned. NULL: as the model has it. */
    void **const_copies;
    size_t packed_bytes;
};

static size_t elements(const struct mdl_model *m, size_t tensor)
{
    return tensor == MDL_NONE ? 0 : mdl_elements(&m->tensors[tensor]);
}

static bool any_empty_input(const struct mdl_model *m, const struct mdl_op *op)
{
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        if (op->in[i] != MDL_NONE && elements(m, op->in[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Does the variant's name hold one of the comma-separated parts of @only? */
static bool named(const char *name, const char *only)
{
    for (const char *part = only; part; part = strchr(part, ',')) {
        part += *part == ',';
        size_t n = strcspn(part, ",");

        if (n && memmem(name, strlen(name), part, n)) {
            return true;
        }
    }
    return false;
}

/* The bytes of a tensor in the arena. False: it has none there. */
static bool arena_range(const struct mdl_model *m, size_t tensor, size_t *ret_begin,
                        size_t *ret_end)
{
    if (tensor == MDL_NONE) {
        return false;
    }
    const struct mdl_storage *s = &m->storages[m->tensors[tensor].storage];

    *ret_begin = s->offset;
    *ret_end = s->offset + s->bytes;
    return s->home == MDL_HOME_ARENA;
}

static bool arena_overlap(const struct mdl_model *m, size_t a, size_t b)
{
    size_t a_begin, a_end, b_begin, b_end;

    return arena_range(m, a, &a_begin, &a_end) && arena_range(m, b, &b_begin, &b_end) &&
           a_begin < b_end && b_begin < a_end;
}

/* Can ops @i and @i + 1 be run as one? What lies between them is read by nobody else, and nothing
 * that the second writes lies where the first still reads. */
static bool is_pair(const struct mdl_model *m, size_t i)
{
    const struct mdl_op *a = &m->ops[i], *b = &a[1];

    if (i + 1 >= m->op_count || a->out[1] != MDL_NONE || b->in[0] != a->out[0] ||
        b->residual_in == a->out[0]) {
        return false;
    }
    const struct mdl_storage *between = &m->storages[m->tensors[a->out[0]].storage];

    if (between->home != MDL_HOME_ARENA || between->first_op != i || between->last_op != i + 1) {
        return false;
    }
    for (size_t k = 0; k <= MDL_OP_IN_MAX; k++) {
        size_t in = k < MDL_OP_IN_MAX ? a->in[k] : a->residual_in;

        if (k > 0 && k < MDL_OP_IN_MAX && b->in[k] == a->out[0]) {
            return false;
        }
        for (size_t o = 0; o < MDL_OP_OUT_MAX; o++) {
            if (arena_overlap(m, in, b->out[o])) {
                return false;
            }
        }
    }
    return true;
}

bool krn_usable(const struct krn_variant *v, const struct mdl_model *m, size_t i)
{
    const struct mdl_op *op = &m->ops[i];

    if (v->kind != op->kind || (v->needs & ~krn_cpu_features())) {
        return false;
    }
    if (v->fused &&
        (!is_pair(m, i) || any_empty_input(m, op + 1) || elements(m, op[1].out[0]) == 0)) {
        return false;
    }
    return (v->reference || !any_empty_input(m, op)) && v->supports(m, op);
}

/* The next row of op @i after @after (NULL: the first) in the order in which they are tried: those
 * that @only names, then, where the row is not a fused one, the others. */
static const struct krn_variant *choose(const struct mdl_model *m, size_t i, bool fused,
                                        const char *only, const struct krn_variant *after)
{
    const struct krn_variant *table;
    size_t count, k = 0;
    bool wanted = !after || !only || named(after->name, only);

    table = krn_variants(&count);
    if (after) {
        k = (size_t)(after - table) + 1;
    }
    for (;; wanted = false, k = 0) {
        for (; k < count; k++) {
            const struct krn_variant *v = &table[k];

            if (v->fused == fused && (!only || named(v->name, only)) == wanted &&
                (!v->inexact || (only && wanted)) && krn_usable(v, m, i)) {
                return v;
            }
        }
        if (!wanted || !only || fused) {
            return NULL;
        }
    }
}

/* 64-byte aligned. Large ones are mappings aligned to huge pages: packed weights are read from end
 * to end for every frame, and the translation of small pages costs. Only whole huge pages inside
 * the mapping are used, so that it never takes more memory than small pages would. */
static int packed_new(size_t bytes, struct packed *ret)
{
    struct packed p = {.bytes = bytes};

    if (bytes < 2 * HUGE_PAGE_BYTES) {
        p.data = aligned_alloc(64, base_align_up(bytes, 64));
        if (!p.data) {
            return -ENOMEM;
        }
        *ret = p;
        return 0;
    }
    if (bytes > SIZE_MAX / 2) {
        return -ENOMEM;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = base_align_up(bytes, page);
    uint8_t *raw = mmap(NULL, body + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        return -ENOMEM;
    }
    size_t head = base_align_up((uintptr_t)raw, HUGE_PAGE_BYTES) - (uintptr_t)raw;
    if (head) {
        munmap(raw, head);
    }
    if (head < HUGE_PAGE_BYTES) {
        munmap(raw + head + body, HUGE_PAGE_BYTES - head);
    }
    p.data = raw + head;
    p.mapped_bytes = body;
    (void)madvise(p.data, body, MADV_HUGEPAGE); /* a wish: without it small pages do */
    *ret = p;
    return 0;
}

static void packed_deinit(struct packed *p)
{
    if (p->mapped_bytes) {
        munmap(p->data, p->mapped_bytes);
    } else {
        free(p->data);
    }
    *p = (struct packed){0};
}

/* Copies the constant storages of op @i that its fast primitive reads at run time and cannot read
 * where they are. References read unaligned; what a primitive packs is input 1. */
static int align_consts(struct krn_net *net, size_t i, const struct krn_variant *v)
{
    const struct mdl_model *m = net->model;
    const struct mdl_op *op = &m->ops[i];
    size_t tensors[MDL_OP_IN_MAX + 1];

    for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
        tensors[k] = (v->pack || v->prepare) && k == 1 ? MDL_NONE : op->in[k];
    }
    tensors[MDL_OP_IN_MAX] = op->residual == MDL_RESIDUAL_NONE ? MDL_NONE : op->residual_in;
    for (size_t k = 0; !v->reference && k < base_array_count(tensors); k++) {
        if (tensors[k] == MDL_NONE) {
            continue;
        }
        const struct mdl_tensor *t = &m->tensors[tensors[k]];
        const struct mdl_storage *s = &m->storages[t->storage];
        void **copy = &net->const_copies[t->storage];

        if (s->home == MDL_HOME_CONST && !*copy && (uintptr_t)s->data % mdl_dtype_bytes(t->dtype)) {
            *copy = aligned_alloc(64, base_align_up(s->bytes, 64));
            if (!*copy) {
                return -ENOMEM;
            }
            memcpy(*copy, s->data, s->bytes);
            net->packed_bytes += s->bytes;
        }
    }
    return 0;
}

static void row_deinit(struct net_row *row)
{
    if (row->variant && row->variant->release) {
        row->variant->release(&row->prepared);
    }
    packed_deinit(&row->packed);
    row->variant = NULL;
}

/* Packs op @i for @v and makes the objects that it needs. Return: 0, -ENOMEM, -EOPNOTSUPP (then
 * nothing is left behind). */
static int row_init(struct krn_net *net, size_t i, const struct krn_variant *v, struct net_row *ret)
{
    const struct mdl_model *m = net->model;
    size_t bytes = v->packed_bytes ? v->packed_bytes(m, &m->ops[i]) : 0;
    int r = bytes ? packed_new(bytes, &ret->packed) : 0;

    ret->variant = v;
    if (r == 0 && v->pack) {
        v->pack(m, &m->ops[i], ret->packed.data);
    }
    if (r == 0 && v->prepare) {
        r = v->prepare(m, &m->ops[i], ret->packed.data, 1, &ret->prepared);
    }
    for (size_t k = i; r == 0 && k <= i + v->fused; k++) {
        r = align_consts(net, k, v);
    }
    if (r < 0) {
        row_deinit(ret);
        return r;
    }
    net->packed_bytes += bytes + ret->prepared.bytes;
    if (v->pack || v->prepare) {
        mdl_drop_op_weights(m, i);
    }
    return 0;
}

/* The first row in the order of choose() that can be made ready. Return: 0, also where there is
 * none (ret->variant is then NULL), -ENOMEM. */
static int row_choose(struct krn_net *net, size_t i, bool fused, const char *only,
                      struct net_row *ret)
{
    const struct krn_variant *v = choose(net->model, i, fused, only, NULL);
    int r = 0;

    while (v && (r = row_init(net, i, v, ret)) == -EOPNOTSUPP) {
        v = choose(net->model, i, fused, only, v);
        r = 0;
    }
    return r;
}

/* @fuse: the op before is not yet run together with this one */
static int net_op_init(struct krn_net *net, size_t i, bool fuse, const char *only,
                       char ret_error[MDL_ERROR_MAX])
{
    const struct mdl_model *m = net->model;
    const struct mdl_op *op = &m->ops[i];
    struct net_op *o = &net->ops[i];
    int r = row_choose(net, i, false, only, &o->own);

    if (r == 0 && !o->own.variant) {
        snprintf(ret_error, MDL_ERROR_MAX,
                 "%s '%.200s': no primitive for these shapes and types (result %s)",
                 mdl_op_kind_name(op->kind), op->name ? op->name : "",
                 mdl_dtype_name(m->tensors[op->out[0]].dtype));
        return -EOPNOTSUPP;
    }
    o->skip = elements(m, op->out[0]) == 0;
    return r == 0 && fuse ? row_choose(net, i, true, only, &o->fused) : r;
}

struct krn_net *krn_net_free(struct krn_net *net)
{
    if (!net) {
        return NULL;
    }
    for (size_t i = 0; net->ops && i < net->model->op_count; i++) {
        row_deinit(&net->ops[i].own);
        row_deinit(&net->ops[i].fused);
    }
    for (size_t i = 0; net->const_copies && i < net->model->storage_count; i++) {
        free(net->const_copies[i]);
    }
    free(net->const_copies);
    free(net->ops);
    free(net);
    return NULL;
}

static void net_freep(struct krn_net **net)
{
    *net = krn_net_free(*net);
}

int krn_net_new(const struct mdl_model *m, const char *only, char ret_error[MDL_ERROR_MAX],
                struct krn_net **ret)
{
    base_cleanup(net_freep) struct krn_net *net = calloc(1, sizeof(*net));
    int r = 0;

    snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
    if (!net) {
        return -ENOMEM;
    }
    net->model = m;
    net->ops = calloc(m->op_count + 1, sizeof(*net->ops));
    net->const_copies = calloc(m->storage_count + 1, sizeof(*net->const_copies));
    if (!net->ops || !net->const_copies) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->op_count && r == 0; i++) {
        r = net_op_init(net, i, i == 0 || !net->ops[i - 1].fused.variant, only, ret_error);
    }
    if (r < 0) {
        return r;
    }
    ret_error[0] = '\0';
    *ret = base_take(net);
    return 0;
}

const struct mdl_model *krn_net_model(const struct krn_net *net)
{
    return net->model;
}

const struct krn_variant *krn_net_variant(const struct krn_net *net, size_t op)
{
    return net->ops[op].own.variant;
}

const struct krn_variant *krn_net_fused(const struct krn_net *net, size_t op)
{
    return net->ops[op].fused.variant;
}

size_t krn_net_packed_bytes(const struct krn_net *net)
{
    return net->packed_bytes;
}

static size_t row_scratch(const struct krn_net *net, const struct net_row *row, size_t i,
                          size_t width)
{
    const struct krn_variant *v = row->variant;
    struct krn_prepared prepared = row->prepared;

    if (prepared.object && width > 1) { /* where it fails, less of the team runs the op */
        (void)v->prepare(net->model, &net->model->ops[i], row->packed.data, width, &prepared);
    }
    return v && v->scratch_bytes ? v->scratch_bytes(net->model, &net->model->ops[i], width) : 0;
}

size_t krn_net_scratch_bytes(const struct krn_net *net, size_t width)
{
    size_t most = krn_preprocess_scratch_bytes(net->model, width);

    for (size_t i = 0; i < net->model->op_count; i++) {
        most = base_max(most, row_scratch(net, &net->ops[i].own, i, width));
        most = base_max(most, row_scratch(net, &net->ops[i].fused, i, width));
    }
    return base_align_up(most, 64);
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

static void *tensor_ptr(const struct krn_net *net, size_t t, const struct krn_mem *mem)
{
    if (t == MDL_NONE) {
        return NULL;
    }
    const struct mdl_tensor *tensor = &net->model->tensors[t];
    void *copy = net->const_copies[tensor->storage];

    return copy ? (uint8_t *)copy + tensor->offset : krn_tensor_ptr(net->model, t, mem);
}

static void fill_call(const struct krn_net *net, size_t i, const struct krn_mem *mem,
                      const struct krn_exec *exec, struct krn_call *ret)
{
    const struct mdl_op *op = &net->model->ops[i];

    *ret = (struct krn_call){
        .model = net->model,
        .op = op,
        .pool = exec->pool,
        .width = exec->width ? exec->width : 1,
        .scratch = exec->scratch,
    };
    for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
        ret->in[k] = tensor_ptr(net, op->in[k], mem);
    }
    for (size_t k = 0; k < MDL_OP_OUT_MAX; k++) {
        ret->out[k] = tensor_ptr(net, op->out[k], mem);
    }
    if (op->residual != MDL_RESIDUAL_NONE) {
        ret->residual = tensor_ptr(net, op->residual_in, mem);
    }
}

void krn_net_run_ops(const struct krn_net *net, size_t first, size_t last,
                     const struct krn_mem *mem, const struct krn_exec *exec)
{
    size_t end = base_min(last + 1, net->model->op_count);

    for (size_t i = first; i < end; i++) {
        const struct net_op *o = &net->ops[i];
        const struct net_row *row = o->fused.variant && i + 1 < end ? &o->fused : &o->own;
        struct krn_call call, next;

        if (o->skip) {
            continue;
        }
        fill_call(net, i, mem, exec, &call);
        call.packed = row->packed.data;
        call.prepared = row->prepared.object;
        call.prepared = row->prepared.object;
        if (row == &o->fused) {
            fill_call(net, ++i, mem, exec, &next);
            call.next = &next;
        }
        row->variant->run(&call);
    }
}
