/* SPDX-License-Identifier: Apache-2.0 */
#include "model/common/pool.h"
#include "tests/harness.h"

/*
 * The heap of this test (the linker's --wrap): calloc() returns addresses that are @heap_offset
 * past a multiple of 64, and free() looks at the bytes behind the block.
 */
#define HEAP_ALIGN 64u
#define HEAP_GUARD 0xa5

struct heap_head {
    void *raw; /* owned: what the real calloc() returned */
    size_t bytes;
};

static size_t heap_offset;
static bool heap_overrun;

void *__real_calloc(size_t count, size_t size);
void __real_free(void *p);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *p);

void *__wrap_calloc(size_t count, size_t size)
{
    size_t bytes = count * size;
    unsigned char *raw = __real_calloc(1, bytes + 4 * HEAP_ALIGN), *p;

    if (!raw) {
        return NULL;
    }
    p = raw + HEAP_ALIGN;
    p += -(uintptr_t)p % HEAP_ALIGN + heap_offset;
    memcpy(p - sizeof(struct heap_head), &(struct heap_head){raw, bytes}, sizeof(struct heap_head));
    memset(p + bytes, HEAP_GUARD, HEAP_ALIGN);
    return p;
}

void __wrap_free(void *p)
{
    struct heap_head head;

    if (!p) {
        return;
    }
    memcpy(&head, (unsigned char *)p - sizeof(head), sizeof(head));
    for (size_t i = 0; i < HEAP_ALIGN; i++) {
        heap_overrun |= ((unsigned char *)p)[head.bytes + i] != HEAP_GUARD;
    }
    __real_free(head.raw);
}

/* One piece of @bytes in a new pool, behind @before bytes (0: none), and a small one behind it. */
static bool piece_fits(size_t bytes, size_t before)
{
    struct mdl_pool *pool = NULL;
    unsigned char *first, *piece, *next;
    bool ok;

    if (mdl_pool_new(0, &pool) < 0) {
        return false;
    }
    first = before ? mdl_pool_alloc(pool, before, 1) : NULL;
    piece = mdl_pool_alloc(pool, bytes, 1);
    next = mdl_pool_alloc(pool, 24, 1);
    ok = piece && next && (first || !before) && (uintptr_t)piece % (bytes >= 4096 ? 64 : 16) == 0;
    if (ok) {
        memset(piece, 0xff, bytes);
        memset(next, 0xff, 24);
    }
    mdl_pool_free(pool);
    return ok;
}

TEST(pieces_are_zeroed_aligned_and_apart)
{
    struct mdl_pool *pool = NULL;
    unsigned char *piece[400];
    size_t bytes[400];

    T_EQ(mdl_pool_new(0, &pool), 0);
    for (size_t i = 0; i < 400; i++) {
        bytes[i] = i % 50 == 49 ? 100000 : (size_t)t_range(0, 9000);
        piece[i] = mdl_pool_alloc(pool, bytes[i], 1);
        T_TRUE(piece[i] != NULL);
        T_EQ((uintptr_t)piece[i] % (bytes[i] >= 4096 ? 64 : 16), 0);
        for (size_t k = 0; k < bytes[i]; k++) {
            T_EQ(piece[i][k], 0);
        }
        memset(piece[i], (int)(i % 251) + 1, bytes[i]);
    }
    for (size_t i = 0; i < 400; i++) {
        for (size_t k = 0; k < bytes[i]; k++) {
            T_EQ(piece[i][k], (int)(i % 251) + 1);
        }
    }
    T_TRUE(mdl_pool_free(pool) == NULL);
}

/* the sizes where a piece gets 64 in place of 16, and where it gets a block of its own */
TEST(pieces_of_every_size_fit_at_every_address_of_the_heap)
{
    static const size_t borders[] = {4096, 65536}, before[] = {0, 8, 40, 4096};

    for (heap_offset = 0; heap_offset < HEAP_ALIGN; heap_offset += 16) {
        for (size_t i = 0; i < base_array_count(borders) * base_array_count(before); i++) {
            size_t border = borders[i % 2], ahead = before[i / 2];

            for (size_t bytes = border - 160; bytes <= border + 160; bytes++) {
                if (!piece_fits(bytes, ahead)) {
                    T_FAIL("no piece of %zu bytes behind %zu, heap at %zu mod 64", bytes, ahead,
                           heap_offset);
                }
            }
        }
    }
    heap_offset = 0;
    T_TRUE(!heap_overrun);
}

TEST(the_cap_and_overflow_are_refused_and_change_nothing)
{
    struct mdl_pool *pool = NULL;
    size_t used;

    T_EQ(mdl_pool_new(1000, &pool), 0);
    T_TRUE(mdl_pool_alloc(pool, 500, 1) != NULL);
    used = mdl_pool_used(pool);
    T_TRUE(mdl_pool_alloc(pool, 501, 1) == NULL);
    T_TRUE(mdl_pool_alloc(pool, SIZE_MAX, 1) == NULL);
    T_TRUE(mdl_pool_alloc(pool, SIZE_MAX / 2 + 2, 2) == NULL);
    T_TRUE(mdl_pool_alloc(pool, SIZE_MAX / 2, SIZE_MAX / 2) == NULL);
    T_EQ(mdl_pool_used(pool), used);
    T_TRUE(mdl_pool_alloc(pool, 400, 1) != NULL);
    mdl_pool_free(pool);
}

TEST(arrays_that_grow_keep_what_they_have)
{
    struct mdl_pool *pool = NULL;
    size_t *list = NULL, cap = 0;

    T_EQ(mdl_pool_new(4096, &pool), 0);
    for (size_t i = 0; i < 100; i++) {
        T_TRUE(mdl_pool_grow(pool, (void **)&list, &cap, i, sizeof(*list)));
        list[i] = i;
    }
    for (size_t i = 0; i < 100; i++) {
        T_EQ(list[i], i);
    }
    T_TRUE(!mdl_pool_grow(pool, (void **)&list, &cap, cap, 1 << 20)); /* past the pool's cap */
    T_EQ(list[99], 99);
    mdl_pool_free(pool);
}

TEST(texts)
{
    struct mdl_pool *pool = NULL;

    T_EQ(mdl_pool_new(0, &pool), 0);
    T_STR(mdl_pool_strdup(pool, ""), "");
    T_STR(mdl_pool_strndup(pool, "abcdef", 3), "abc");
    T_STR(mdl_pool_strndup(pool, NULL, 0), "");
    T_STR(mdl_pool_printf(pool, "%s-%d", "x", 7), "x-7");
    T_TRUE(memcmp(mdl_pool_memdup(pool, "a\0b", 3), "a\0b", 3) == 0);
    T_TRUE(mdl_pool_alloc(pool, 0, 8) != NULL);
    T_TRUE(mdl_pool_alloc(pool, 0, 8) != mdl_pool_alloc(pool, 0, 8));
    mdl_pool_free(pool);
    T_TRUE(mdl_pool_free(NULL) == NULL);
}

TEST_MAIN()
