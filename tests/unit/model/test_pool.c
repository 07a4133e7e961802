/* SPDX-License-Identifier: Apache-2.0 */
#include "model/common/pool.h"
#include "tests/harness.h"

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
