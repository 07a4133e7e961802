/* SPDX-License-Identifier: Apache-2.0 */
#include "model/netdesc/nodes.h"

#include <linux/magic.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "base/leaves/stop.h"
#include "model/common/private.h"

#define NODE_ATTRS_MAX 8u

/* Makes room for one more element in a pool array, which doubles. The old array stays in the pool:
 * at most twice the final size in total, which is little. */
static void *grown(struct mdl_pool *pool, void *old, size_t count, size_t *cap, size_t size)
{
    size_t more = *cap ? *cap * 2 : 64;
    void *p;

    if (count < *cap) {
        return old;
    }
    p = mdl_pool_alloc(pool, more, size);
    if (p && count) {
        memcpy(p, old, count * size);
    }
    if (p) {
        *cap = more;
    }
    return p;
}

int mdl_nd_init(struct mdl_nd *nd, struct mdl_pool *pool, char *error)
{
    *nd = (struct mdl_nd){.error = error, .graph = mdl_pool_alloc(pool, 1, sizeof(*nd->graph))};
    if (!nd->graph) {
        return -ENOMEM;
    }
    nd->graph->pool = pool;
    return 0;
}

int mdl_nd_node(struct mdl_nd *nd, const char *op_type, const char *const *inputs,
                const char *output, struct mdl_gnode **ret_node)
{
    struct mdl_graph *g = nd->graph;
    struct mdl_gnode *list =
        grown(g->pool, g->nodes, g->node_count, &nd->node_cap, sizeof(*g->nodes));
    const char **outputs = mdl_pool_alloc(g->pool, 1, sizeof(*outputs));
    struct mdl_gnode *n;
    size_t count = 0;
    const char **in;

    while (inputs[count]) {
        count++;
    }
    in = mdl_pool_memdup(g->pool, inputs, (count + 1) * sizeof(*inputs));
    if (!list || !outputs || !in) {
        return -ENOMEM;
    }
    g->nodes = list;
    n = &list[g->node_count++];
    outputs[0] = output;
    *n = (struct mdl_gnode){.op_type = op_type,
                            .domain = "",
                            .name = output,
                            .inputs = in,
                            .input_count = count,
                            .outputs = outputs,
                            .output_count = 1,
                            .attrs = mdl_pool_alloc(g->pool, NODE_ATTRS_MAX, sizeof(*n->attrs))};
    if (!n->attrs) {
        return -ENOMEM;
    }
    *ret_node = n;
    return 0;
}

static struct mdl_gattr *attr_new(struct mdl_gnode *n, const char *name, enum mdl_attr_type type)
{
    struct mdl_gattr *a = (struct mdl_gattr *)(uintptr_t)&n->attrs[n->attr_count];

    if (n->attr_count == NODE_ATTRS_MAX) {
        return NULL;
    }
    n->attr_count++;
    a->name = name;
    a->type = type;
    return a;
}

int mdl_nd_attr_int(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, int64_t v)
{
    struct mdl_gattr *a = attr_new(n, name, MDL_ATTR_INT);

    if (!a) {
        return -ENOMEM;
    }
    a->i = v;
    return 0;
}

int mdl_nd_attr_float(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, float v)
{
    struct mdl_gattr *a = attr_new(n, name, MDL_ATTR_FLOAT);

    if (!a) {
        return -ENOMEM;
    }
    a->f = v;
    return 0;
}

int mdl_nd_attr_string(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, const char *v)
{
    struct mdl_gattr *a = attr_new(n, name, MDL_ATTR_STRING);

    if (!a) {
        return -ENOMEM;
    }
    a->s = v;
    return 0;
}

int mdl_nd_attr_ints(struct mdl_nd *nd, struct mdl_gnode *n, const char *name, const size_t *v,
                     size_t count)
{
    struct mdl_gattr *a = attr_new(n, name, MDL_ATTR_INTS);
    int64_t *ints = mdl_pool_alloc(nd->graph->pool, count, sizeof(*ints));

    if (!a || !ints) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        ints[i] = (int64_t)v[i];
    }
    a->ints = ints;
    a->count = count;
    return 0;
}

static int initializer_new(struct mdl_nd *nd, const struct mdl_gtensor *t, enum mdl_nd_fill fill,
                           size_t fan_in)
{
    struct mdl_graph *g = nd->graph;
    size_t cap = nd->initializer_cap;
    struct mdl_gtensor *list =
        grown(g->pool, g->initializers, g->initializer_count, &cap, sizeof(*list));
    size_t cap_fills = nd->initializer_cap, cap_fans = nd->initializer_cap;
    enum mdl_nd_fill *fills =
        grown(g->pool, nd->fills, g->initializer_count, &cap_fills, sizeof(*fills));
    size_t *fans = grown(g->pool, nd->fan_ins, g->initializer_count, &cap_fans, sizeof(*fans));

    if (!list || !fills || !fans) {
        return -ENOMEM;
    }
    nd->initializer_cap = cap;
    g->initializers = list;
    nd->fills = fills;
    nd->fan_ins = fans;
    list[g->initializer_count] = *t;
    fills[g->initializer_count] = fill;
    fans[g->initializer_count] = fan_in;
    g->initializer_count++;
    return 0;
}

int mdl_nd_weight(struct mdl_nd *nd, const struct mdl_nd_weight *w)
{
    struct mdl_gtensor t = {.name = w->name, .dtype = MDL_F32, .rank = w->rank, .in_file = true};
    size_t n = 1, bytes, total;

    for (size_t i = 0; i < w->rank; i++) {
        t.dim[i] = w->dim[i];
        if (!base_mul(n, w->dim[i], &n)) {
            return -E2BIG;
        }
    }
    if (!base_add(nd->weight_floats, n, &total) || !base_mul(total, sizeof(float), &bytes) ||
        bytes > MDL_ND_WEIGHT_BYTES_MAX) {
        return -E2BIG;
    }
    nd->weight_floats = total;
    t.bytes = n * sizeof(float);
    return initializer_new(nd, &t, w->fill, base_max(w->fan_in, (size_t)1));
}

int mdl_nd_floats(struct mdl_nd *nd, const char *name, const float *v, size_t count)
{
    struct mdl_gtensor t = {.name = name, .dtype = MDL_F32, .rank = 1, .dim = {count}};

    t.bytes = count * sizeof(*v);
    t.data = mdl_pool_memdup(nd->graph->pool, v, t.bytes);
    return t.data ? initializer_new(nd, &t, MDL_ND_HE, 0) : -ENOMEM;
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

int mdl_nd_value_add(struct mdl_nd *nd, const struct mdl_nd_value *v)
{
    struct mdl_nd_value *list =
        grown(nd->graph->pool, nd->values, nd->value_count, &nd->value_cap, sizeof(*nd->values));

    if (!list) {
        return -ENOMEM;
    }
    nd->values = list;
    if (mdl_nd_value_find(nd, v->name)) {
        return -EEXIST;
    }
    list[nd->value_count++] = *v;
    return 0;
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
    int ret;

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
    ret = fd;
    fd = -1;
    return ret;
}

static int weights_map(struct mdl_nd *nd, size_t bytes)
{
    base_autoclose int fd = nameless_file(nd->weights_dir, bytes);
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
        fill(at, n, nd->seed + i + 1, nd->fills[i] == MDL_ND_NEAR_ONE ? 1.0f : 0.0f,
             nd->fills[i] == MDL_ND_HE ? sqrtf(6.0f / (float)nd->fan_ins[i]) : 0.1f);
        drop_written(g, at, t->bytes);
        t->data = at;
        at += n;
    }
    return mprotect((void *)(uintptr_t)g->file_map, bytes, PROT_READ) < 0 ? -errno : 0;
}
