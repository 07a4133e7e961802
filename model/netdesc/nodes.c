/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the graph of a network description: nodes, values, seeded weights. */
#include <linux/magic.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "base/leaves/load_work.h"
#include "model/netdesc/layers.h"

#define NODE_ATTRS_MAX 8u

static bool failed(struct mdl_nd *nd, int code)
{
    nd->failure = nd->failure < 0 ? nd->failure : code;
    return nd->failure < 0;
}

struct mdl_gnode *mdl_nd_node(struct mdl_nd *nd, const char *op_type, const char *const *inputs,
                              const char *output)
{
    struct mdl_graph *g = nd->graph;
    bool room =
        mdl_pool_grow(g->pool, (void **)&g->nodes, &nd->node_cap, g->node_count, sizeof(*g->nodes));
    const char **outputs = mdl_pool_memdup(g->pool, &output, sizeof(output)), **in;
    struct mdl_gattr *attrs = mdl_pool_alloc(g->pool, NODE_ATTRS_MAX, sizeof(*attrs));
    size_t count = 0;

    while (inputs[count]) {
        count++;
    }
    in = mdl_pool_memdup(g->pool, inputs, (count + 1) * sizeof(*inputs));
    if (failed(nd, room && outputs && in && attrs && output ? 0 : -ENOMEM)) {
        return NULL;
    }
    g->nodes[g->node_count] = (struct mdl_gnode){.op_type = op_type,
                                                 .domain = "",
                                                 .name = output,
                                                 .inputs = in,
                                                 .input_count = count,
                                                 .outputs = outputs,
                                                 .output_count = 1,
                                                 .attrs = attrs};
    return &g->nodes[g->node_count++];
}

static void add_attr(struct mdl_nd *nd, struct mdl_gnode *n, const struct mdl_gattr *a)
{
    if (n && !failed(nd, n->attr_count < NODE_ATTRS_MAX ? 0 : -ENOMEM)) {
        ((struct mdl_gattr *)(uintptr_t)n->attrs)[n->attr_count++] = *a;
    }
}

void mdl_nd_attr_int(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, int64_t v)
{
    add_attr(nd, n, &(struct mdl_gattr){.name = name, .type = MDL_ATTR_INT, .i = v});
}

void mdl_nd_attr_float(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, float v)
{
    add_attr(nd, n, &(struct mdl_gattr){.name = name, .type = MDL_ATTR_FLOAT, .f = v});
}

void mdl_nd_attr_string(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, const char *v)
{
    add_attr(nd, n, &(struct mdl_gattr){.name = name, .type = MDL_ATTR_STRING, .s = v});
}

void mdl_nd_attr_ints(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, const size_t *v,
                      size_t count)
{
    int64_t *ints = mdl_pool_alloc(nd->graph->pool, count, sizeof(*ints));

    if (failed(nd, ints ? 0 : -ENOMEM)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ints[i] = (int64_t)v[i];
    }
    add_attr(
        nd, n,
        &(struct mdl_gattr){.name = name, .type = MDL_ATTR_INTS, .ints = ints, .count = count});
}

static void initializer_new(struct mdl_nd *nd, const struct mdl_gtensor *t, enum mdl_nd_fill fill,
                            size_t fan_in)
{
    struct mdl_graph *g = nd->graph;
    size_t at = g->initializer_count,
           cap[3] = {nd->initializer_cap, nd->initializer_cap, nd->initializer_cap};
    bool room = mdl_pool_grow(g->pool, (void **)&g->initializers, &cap[0], at, sizeof(*t)) &&
                mdl_pool_grow(g->pool, (void **)&nd->fills, &cap[1], at, sizeof(*nd->fills)) &&
                mdl_pool_grow(g->pool, (void **)&nd->fan_ins, &cap[2], at, sizeof(*nd->fan_ins));

    if (failed(nd, room && t->name ? 0 : -ENOMEM)) {
        return;
    }
    nd->initializer_cap = cap[0];
    g->initializers[at] = *t;
    nd->fills[at] = fill;
    nd->fan_ins[at] = fan_in;
    g->initializer_count++;
}

void mdl_nd_weight(struct mdl_nd *nd, const struct mdl_nd_weight *w)
{
    struct mdl_gtensor t = {.name = w->name, .dtype = MDL_F32, .rank = w->rank, .in_file = true};
    size_t n = 1, bytes, total;
    bool fits = true;

    for (size_t i = 0; i < w->rank; i++) {
        t.dim[i] = w->dim[i];
        fits &= base_mul(n, w->dim[i], &n);
    }
    if (failed(nd, fits && base_add(nd->weight_floats, n, &total) &&
                           base_mul(total, sizeof(float), &bytes) &&
                           bytes <= MDL_ND_WEIGHT_BYTES_MAX
                       ? 0
                       : -E2BIG)) {
        return;
    }
    nd->weight_floats = total;
    t.bytes = n * sizeof(float);
    initializer_new(nd, &t, w->fill, base_max(w->fan_in, (size_t)1));
}

void mdl_nd_floats(struct mdl_nd *nd, const char *name, size_t rank, const float *v, size_t count)
{
    struct mdl_gtensor t = {.name = name, .dtype = MDL_F32, .rank = rank, .dim = {count}};

    t.bytes = count * sizeof(*v);
    t.data = mdl_pool_memdup(nd->graph->pool, v, t.bytes);
    if (!failed(nd, t.data ? 0 : -ENOMEM)) {
        initializer_new(nd, &t, MDL_ND_HE, 0);
    }
}

const struct mdl_nd_value *mdl_nd_value_find(const struct mdl_nd *nd, const char *name)
{
    for (size_t i = nd->value_count; i-- > 0;) {
        if (strcmp(nd->values[i].name, name) == 0) {
            return &nd->values[i];
        }
    }
    return NULL;
}

bool mdl_nd_value_add(struct mdl_nd *nd, const struct mdl_nd_value *v)
{
    bool room = mdl_pool_grow(nd->graph->pool, (void **)&nd->values, &nd->value_cap,
                              nd->value_count, sizeof(*v));

    if (mdl_nd_value_find(nd, v->name)) {
        return false;
    }
    if (!failed(nd, room ? 0 : -ENOMEM)) {
        nd->values[nd->value_count++] = *v;
    }
    return true;
}

#define FILL_STEP ((size_t)1 << 20) /* floats, of a call to mdl_stopped() */

/* The upper 24 bits of each random number as a float in [-1, 1). */
static void fill(float *f, size_t n, uint64_t seed, float middle, float spread)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;

    for (size_t i = 0; i < n && !(i % FILL_STEP == 0 && mdl_stopped()); i++) {
        f[i] =
            middle + spread * ((float)(int32_t)(base_splitmix64(&state) >> 40) * 0x1p-23f - 1.0f);
    }
}

/* Makes an unnamed file of @bytes in @dir. Return: its descriptor; -1 if that fails, or if @dir is
 * in memory. */
static int nameless_file(const char *dir, size_t bytes)
{
    base_autofree char *path = NULL;
    base_autoclose int fd = -1;
    struct statfs fs;

    if (!dir || asprintf(&path, "%s/weights-XXXXXX", dir) < 0) {
        path = NULL;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    unlink(path);
    if (fstatfs(fd, &fs) < 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ||
        posix_fallocate(fd, 0, (off_t)bytes) != 0) {
        return -1;
    }
    return base_take_fd(&fd);
}

static int weights_map(struct mdl_nd *nd, size_t bytes)
{
    base_autoclose int fd = nd->no_weights ? -1 : nameless_file(nd->weights_dir, bytes);
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);

    if (map == MAP_FAILED) {
        return -errno;
    }
    nd->graph->file_map = map;
    nd->graph->file_bytes = bytes;
    nd->graph->owns_map = true;
    nd->graph->map_is_file = fd >= 0;
    return 0;
}

/* Drops written pages; they are in the file and can be read again. */
static void drop_written(const struct mdl_graph *g, float *from, size_t bytes)
{
    uintptr_t first = (uintptr_t)from & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

    if (g->map_is_file) {
        (void)madvise((void *)first, (uintptr_t)from + bytes - first, MADV_DONTNEED);
    }
}

int mdl_nd_finish(struct mdl_nd *nd)
{
    struct mdl_graph *g = nd->graph;
    size_t bytes = nd->weight_floats * sizeof(float);
    int r = bytes ? weights_map(nd, bytes) : 0;
    float *at;

    if (r < 0 || bytes == 0) {
        return r;
    }
    at = (float *)(uintptr_t)g->file_map;
    for (size_t i = 0; i < g->initializer_count; i++) {
        struct mdl_gtensor *t = &g->initializers[i];
        size_t n = t->bytes / sizeof(float);

        if (nd->fan_ins[i] == 0) {
            continue;
        }
        if (!nd->no_weights) {
            fill(at, n, nd->seed + i + 1, nd->fills[i] == MDL_ND_NEAR_ONE ? 1.0f : 0.0f,
                 nd->fills[i] == MDL_ND_HE ? sqrtf(6.0f / (float)nd->fan_ins[i]) : 0.1f);
            drop_written(g, at, t->bytes);
        }
        t->data = at;
        at += n;
    }
    return mprotect((void *)(uintptr_t)g->file_map, bytes, PROT_READ) < 0 ? -errno : 0;
}
