/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs with odd_heap.c preloaded: that heap does what it says, and models of every size around the
 * pool's common block load from it. The parsers' own tests run with it beside (meson.build).
 */
#include <malloc.h>
#include <unistd.h>

#include "base/base.h"
#include "model/common/graph.h"
#include "model/model.h"
#include "tests/harness.h"
#include "tests/unit/model/onnx_bytes.h"

void odd_heap_set(unsigned offset) __attribute__((weak));

static const unsigned offsets[] = {16, 32, 48};
static char error[MDL_ERROR_MAX];

/* the compiler knows malloc() and would leave blocks out that nobody reads */
static void *get(size_t bytes)
{
    void *p = malloc(bytes);

    __asm__ volatile("" : "+r"(p)::"memory");
    return p;
}

TEST(blocks_are_never_more_aligned_than_asked)
{
    size_t seen[4] = {0};

    T_TRUE(odd_heap_set != NULL);
    for (size_t bytes = 0; bytes < 3000; bytes++) {
        unsigned char *p = get(bytes), *q;

        T_TRUE(p != NULL);
        T_EQ((uintptr_t)p % 16, 0);
        seen[(uintptr_t)p % 64 / 16]++;
        memset(p, (int)(bytes % 251), bytes);
        q = realloc(p, bytes + 1000);
        T_TRUE(q != NULL);
        T_EQ(malloc_usable_size(q), bytes + 1000);
        for (size_t i = 0; i < bytes; i++) {
            T_EQ(q[i], bytes % 251);
        }
        free(q);
    }
    T_EQ(seen[0], 0);
    T_LT(500, seen[1]);
    T_LT(500, seen[2]);
    T_LT(500, seen[3]);
    for (size_t align = 32; align <= 8192; align *= 2) {
        unsigned char *p = aligned_alloc(align, 3 * align);

        T_EQ((uintptr_t)p % (2 * align), align);
        memset(p, 1, 3 * align);
        free(p);
    }
}

/* @nodes nodes in a row that do nothing much */
static struct pb model_of_nodes(size_t nodes)
{
    static const int64_t x[] = {1, 4};
    struct pb g = {0};
    char in[24] = "x", out[24];

    for (size_t i = 0; i < nodes; i++) {
        snprintf(out, sizeof(out), "y%zu", i);
        pb_sub(&g, 1, pb_node("Relu", out, in, NULL, out));
        memcpy(in, out, sizeof(in));
    }
    pb_sub(&g, 11, pb_value("x", 1, x, 2));
    pb_sub(&g, 12, pb_value(in, 1, x, 2));
    return pb_model(g, 7, 13);
}

/* a constant of @count floats that is added to the input */
static struct pb model_of_constant(size_t count)
{
    const int64_t dim[] = {1, (int64_t)count};
    float *values = calloc(count, sizeof(*values));
    struct pb g = {0}, t = pb_tensor("t", 1, dim, 2);

    pb_bytes(&t, 9, values, count * sizeof(*values));
    free(values);
    pb_sub(&g, 1, pb_node("Add", "add", "x", "t", "y"));
    pb_sub(&g, 5, t);
    pb_sub(&g, 11, pb_value("x", 1, dim, 2));
    pb_sub(&g, 12, pb_value("y", 1, dim, 2));
    return pb_model(g, 7, 13);
}

/* Reads and compiles @model with the heap at each offset. */
static bool loads_everywhere(struct pb model)
{
    char path[] = "/tmp/piped-heap-XXXXXX.onnx";
    int fd = mkstemps(path, 5), r = 0;
    bool written = fd >= 0 && write(fd, model.data, model.bytes) == (ssize_t)model.bytes;

    for (size_t i = 0; written && r == 0 && i < base_array_count(offsets); i++) {
        struct mdl_model *m = NULL;

        odd_heap_set(offsets[i]);
        r = mdl_load(path, NULL, error, &m);
        m = mdl_free(m);
        odd_heap_set(0);
        if (r < 0) {
            printf("  heap at %u mod 64: %s\n", offsets[i], error);
        }
    }
    pb_free(&model);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    return written && r == 0;
}

/* their array is 64 KiB at 910 nodes */
TEST(networks_of_about_910_nodes)
{
    for (size_t nodes = 905; nodes <= 912; nodes++) {
        if (!loads_everywhere(model_of_nodes(nodes))) {
            T_FAIL("%zu nodes", nodes);
        }
    }
}

TEST(constants_of_about_64_kib)
{
    for (size_t count = 16384 - 20; count <= 16384 + 4; count++) {
        if (!loads_everywhere(model_of_constant(count))) {
            T_FAIL("a constant of %zu bytes", 4 * count);
        }
    }
}

TEST_MAIN()
