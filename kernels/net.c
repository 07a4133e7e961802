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

struct net_op {
    const struct krn_variant *variant;
    struct packed packed;
    bool skip; /* nothing to write */
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

/* The first usable variant, or the first one that @only names where there is one. An empty input is
 * left to the reference: what is over nothing is seldom run and easily wrong. */
static const struct krn_variant *choose(const struct mdl_model *m, const struct mdl_op *op,
                                        const char *only)
{
    uint32_t have = krn_cpu_features();
    bool empty = any_empty_input(m, op);
    const struct krn_variant *first = NULL, *table;
    size_t count;

    table = krn_variants(&count);
    for (size_t i = 0; i < count; i++) {
        const struct krn_variant *v = &table[i];

        if (v->kind != op->kind || v->fused || (v->needs & ~have) || (empty && !v->reference) ||
            !v->supports(m, op)) {
            continue;
        }
        if (!only || named(v->name, only)) {
            return v;
        }
        first = first ? first : v;
    }
    return first;
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
static int align_consts(struct krn_net *net, size_t i)
{
    const struct mdl_model *m = net->model;
    const struct mdl_op *op = &m->ops[i];
    const struct krn_variant *v = net->ops[i].variant;
    size_t tensors[MDL_OP_IN_MAX + 1];

    for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
        tensors[k] = v->pack && k == 1 ? MDL_NONE : op->in[k];
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

static int net_op_init(struct krn_net *net, size_t i, const char *only,
                       char ret_error[MDL_ERROR_MAX])
{
    const struct mdl_model *m = net->model;
    const struct mdl_op *op = &m->ops[i];
    struct net_op *o = &net->ops[i];

    o->variant = choose(m, op, only);
    if (!o->variant) {
        snprintf(ret_error, MDL_ERROR_MAX,
                 "%s '%.200s': no primitive for these shapes and types (result %s)",
                 mdl_op_kind_name(op->kind), op->name ? op->name : "",
                 mdl_dtype_name(m->tensors[op->out[0]].dtype));
        return -EOPNOTSUPP;
    }
    o->skip = elements(m, op->out[0]) == 0;
    if (o->variant->pack) {
        size_t bytes = o->variant->packed_bytes(m, op);
        int r = bytes ? packed_new(bytes, &o->packed) : 0;

        if (r < 0) {
            return r;
        }
        o->variant->pack(m, op, o->packed.data);
        net->packed_bytes += bytes;
        mdl_drop_op_weights(m, i);
    }
    return align_consts(net, i);
}

struct krn_net *krn_net_free(struct krn_net *net)
{
    if (!net) {
        return NULL;
    }
    for (size_t i = 0; net->ops && i < net->model->op_count; i++) {
        packed_deinit(&net->ops[i].packed);
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
        r = net_op_init(net, i, only, ret_error);
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
    return net->ops[op].variant;
}

size_t krn_net_packed_bytes(const struct krn_net *net)
{
    return net->packed_bytes;
}

size_t krn_net_scratch_bytes(const struct krn_net *net, size_t width)
{
    size_t most = krn_preprocess_scratch_bytes(net->model, width);

    for (size_t i = 0; i < net->model->op_count; i++) {
        const struct krn_variant *v = net->ops[i].variant;
        size_t bytes =
            v->scratch_bytes ? v->scratch_bytes(net->model, &net->model->ops[i], width) : 0;

        most = base_max(most, bytes);
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

void krn_net_run_ops(const struct krn_net *net, size_t first, size_t last,
                     const struct krn_mem *mem, const struct krn_exec *exec)
{
    for (size_t i = first; i <= last && i < net->model->op_count; i++) {
        const struct net_op *o = &net->ops[i];
        const struct mdl_op *op = &net->model->ops[i];
        struct krn_call call = {
            .model = net->model,
            .op = op,
            .packed = o->packed.data,
            .pool = exec->pool,
            .width = exec->width ? exec->width : 1,
            .scratch = exec->scratch,
        };

        if (o->skip) {
            continue;
        }
        for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
            call.in[k] = tensor_ptr(net, op->in[k], mem);
        }
        for (size_t k = 0; k < MDL_OP_OUT_MAX; k++) {
            call.out[k] = tensor_ptr(net, op->out[k], mem);
        }
        if (op->residual != MDL_RESIDUAL_NONE) {
            call.residual = tensor_ptr(net, op->residual_in, mem);
        }
        o->variant->run(&call);
    }
}
