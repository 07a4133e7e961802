/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights that nets of one file share. */
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "kernels/kernels.h"
#include "kernels/net_private.h"
#include "tests/harness.h"

#define SIDE 8u
#define IN (64u * SIDE * SIDE)
#define OUT (256u * SIDE * SIDE)

/* Weights of more than 2 MiB, so that they lie in a place of the net's own. Return: owned; NULL. */
static struct mdl_model *model(unsigned seed)
{
    struct mdl_model *m = NULL;
    char error[MDL_ERROR_MAX];
    FILE *f = fopen("shared.json", "w");

    if (!f ||
        fprintf(f,
                "{\"seed\": %u, \"input\": {\"shape\": [64, %u, %u]}, \"layers\": ["
                "{\"op\": \"conv\", \"out\": 256, \"kernel\": 3, \"pad\": 1, \"act\": \"relu\"},"
                "{\"op\": \"conv\", \"out\": 256, \"kernel\": 3, \"pad\": 1, \"act\": \"relu\"},"
                "{\"op\": \"conv\", \"out\": 256, \"kernel\": 1}]}",
                seed, SIDE, SIDE) < 0 ||
        fclose(f) != 0 || mdl_load("shared.json", NULL, error, &m) < 0) {
        return NULL;
    }
    unlink("shared.json");
    return m;
}

static struct krn_net *net_of(const struct mdl_model *m)
{
    char error[MDL_ERROR_MAX];
    struct krn_net *net = NULL;

    /* those of libraries pack for themselves */
    return krn_net_new(m, "igemm", error, &net) == 0 ? net : NULL;
}

/* Return: the sum of what @net answers to a frame, weighted by place. */
static double answer(const struct krn_net *net)
{
    const struct mdl_model *m = krn_net_model(net);
    static float x[IN], y[OUT];
    const void *inputs[] = {x};
    void *outputs[] = {y};
    struct krn_exec exec = {.width = 1,
                            .scratch = aligned_alloc(64, krn_net_scratch_bytes(net, 1) + 64)};
    struct krn_mem mem = {.arena = aligned_alloc(64, base_align_up(m->arena_bytes, 64) + 64),
                          .inputs = inputs,
                          .outputs = outputs};
    double sum = 0;

    for (size_t i = 0; i < IN; i++) {
        x[i] = (float)(i % 13) - 6.0f;
    }
    krn_net_run_ops(net, 0, m->op_count - 1, &mem, &exec);
    for (size_t i = 0; i < OUT; i++) {
        sum += (double)y[i] * (double)(i % 7 + 1);
    }
    free(mem.arena);
    free(exec.scratch);
    return sum;
}

/* Either may go first, and what stays answers as before. */
TEST(nets_of_one_file_share_their_weights)
{
    for (size_t first = 0; first < 2; first++) {
        struct mdl_model *m[2] = {model(1), model(1)};
        struct krn_net *net[2] = {NULL};
        size_t bytes;
        double alone;

        T_TRUE(m[0] && m[1]);
        net[0] = net_of(m[0]);
        T_TRUE(net[0] != NULL);
        bytes = krn_net_packed_bytes(net[0]);
        T_TRUE(bytes > 2u << 20);
        alone = answer(net[0]);
        net[1] = net_of(m[1]);
        T_TRUE(net[1] != NULL);
        T_EQ(krn_net_packed_bytes(net[0]), bytes / 2);
        T_EQ(krn_net_packed_bytes(net[1]), bytes / 2);
        T_TRUE(answer(net[1]) == alone);
        krn_net_free(net[first]);
        mdl_free(m[first]);
        T_EQ(krn_net_packed_bytes(net[!first]), bytes);
        T_TRUE(answer(net[!first]) == alone);
        krn_net_free(net[!first]);
        mdl_free(m[!first]);
    }
}

/* The net whose place holds the weights gives them up, and takes them again. */
TEST(a_net_gives_up_what_another_uses)
{
    struct mdl_model *m[2] = {model(1), model(1)};
    struct krn_net *net[2] = {m[0] ? net_of(m[0]) : NULL, m[1] ? net_of(m[1]) : NULL};
    size_t bytes, scratch;
    double alone;

    T_TRUE(net[0] && net[1]);
    alone = answer(net[0]);
    bytes = krn_net_packed_bytes(net[0]) + krn_net_packed_bytes(net[1]);
    for (size_t i = 0; i < 3; i++) {
        krn_net_trim(net[0]); /* nobody has joined it */
        T_EQ(krn_net_packed_bytes(net[0]), 0);
        T_EQ(krn_net_packed_bytes(net[1]), bytes);
        T_TRUE(answer(net[1]) == alone);
        if (i == 1) {
            krn_net_trim(net[1]);
        }
        for (size_t k = 0; k < 2; k++) {
            T_EQ(krn_net_join(net[k], 0, 0, m[k]->op_count - 1, 1, &scratch), 0);
            krn_net_leave(net[k], 0, 0, m[k]->op_count - 1);
        }
        T_EQ(krn_net_packed_bytes(net[0]) + krn_net_packed_bytes(net[1]), bytes);
        T_TRUE(answer(net[0]) == alone);
        T_TRUE(answer(net[1]) == alone);
    }
    krn_net_free(net[0]);
    krn_net_free(net[1]);
    mdl_free(m[0]);
    mdl_free(m[1]);
}

/* What is only called alike is compared, and not shared. */
TEST(other_weights_are_not_shared)
{
    struct mdl_model *m[2] = {model(1), model(2)};
    struct krn_net *net[2];
    size_t bytes;
    double alone;

    T_TRUE(m[0] && m[1]);
    net[1] = net_of(m[1]);
    T_TRUE(net[1] != NULL);
    alone = answer(net[1]);
    krn_net_free(net[1]);
    memcpy(m[1]->hash, m[0]->hash, sizeof(m[1]->hash));
    net[0] = net_of(m[0]);
    T_TRUE(net[0] != NULL);
    bytes = krn_net_packed_bytes(net[0]);
    net[1] = net_of(m[1]);
    T_TRUE(net[1] != NULL);
    T_EQ(krn_net_packed_bytes(net[0]), bytes);
    T_EQ(krn_net_packed_bytes(net[1]), bytes);
    T_TRUE(answer(net[0]) != alone);
    T_TRUE(answer(net[1]) == alone);
    krn_net_free(net[0]);
    krn_net_free(net[1]);
    mdl_free(m[0]);
    mdl_free(m[1]);
}

/* The memory policy of the first weights that are shared; -1: cannot be asked. */
static int policy(const struct krn_net *net)
{
    unsigned long nodes[16] = {0}; /* as many as the kernel may have */
    int mode = -1;

    for (size_t i = 0; i < net->model->op_count; i++) {
        for (size_t k = 0; k < net->ops[i].bound_count; k++) {
            const struct krn_bound *bound = &net->ops[i].bound[k];

            if (bound->shared) {
                return syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof(nodes), bound->packed.at,
                               MPOL_F_ADDR) == 0
                           ? mode
                           : -1;
            }
        }
    }
    return -1;
}

/* They are moved where they lie, in the place of the net that packed them, even if that is gone. */
TEST(shared_weights_are_placed)
{
    for (size_t gone = 0; gone < 2; gone++) {
        struct mdl_model *m[2] = {model(1), model(1)};
        struct krn_net *net[2] = {m[0] ? net_of(m[0]) : NULL, m[1] ? net_of(m[1]) : NULL};
        double alone;
        int before, after;

        T_TRUE(net[0] && net[1]);
        alone = answer(net[0]);
        before = policy(net[1]);
        if (gone) {
            krn_net_free(base_take(net[0]));
        }
        krn_net_place(net[1], 0, m[1]->op_count - 1, (uint64_t[]){1});
        after = policy(net[1]);
        T_TRUE(answer(net[1]) == alone);
        krn_net_free(net[0]);
        krn_net_free(net[1]);
        mdl_free(m[0]);
        mdl_free(m[1]);
        if (before < 0 || syscall(SYS_mbind, NULL, 0, MPOL_DEFAULT, NULL, 0, 0) < 0) {
            T_SKIP("memory cannot be placed here");
        }
        T_EQ(before, MPOL_DEFAULT);
        T_EQ(after, MPOL_PREFERRED);
    }
}

TEST_MAIN()
