/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Primitives over libraries that keep objects beside the packed weights: results where the residual
 * was, many teams at once, other widths made while runs are under way, and a process that may not
 * write code.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/check_values.h"

#define TEAMS 4u
#define RUNS 24u

static struct one_op *conv_new(size_t c, size_t size, size_t o, size_t k, size_t y_pixel)
{
    struct one_op *op = one_op_new(MDL_OP_CONV);

    op->op.in[0] = one_op_image(op, 1, c, size, size, 0);
    op->op.in[1] = one_op_tensor(op, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){o, c, k, k}, NULL);
    op->op.out[0] = one_op_image(op, 1, o, size, size, y_pixel);
    op->op.attr.conv.groups = 1;
    op->op.attr.conv.window = (struct mdl_window){.rank = 2,
                                                  .kernel = {k, k},
                                                  .stride = {1, 1},
                                                  .dilation = {1, 1},
                                                  .pad_begin = {k / 2, k / 2},
                                                  .pad_end = {k / 2, k / 2}};
    check_fill(op, op->op.in[0], 1.0f);
    check_fill(op, op->op.in[1], 0.5f);
    snprintf(op->name, sizeof(op->name), "%zux%zux%zu -> %zu, %zux%zu, pixels %zu", c, size, size,
             o, k, k, y_pixel);
    return op;
}

static struct one_op *product_new(size_t m, size_t k, size_t n)
{
    struct one_op *op = one_op_new(MDL_OP_GEMM);

    op->op.in[0] = one_op_tensor(op, MDL_F32, MDL_HOME_ARENA, 2, (size_t[]){m, k}, NULL);
    op->op.in[1] = one_op_tensor(op, MDL_F32, MDL_HOME_CONST, 2, (size_t[]){n, k}, NULL);
    op->op.out[0] = one_op_tensor(op, MDL_F32, MDL_HOME_ARENA, 2, (size_t[]){m, n}, NULL);
    op->op.attr.gemm.trans_b = true;
    op->op.attr.gemm.alpha = op->op.attr.gemm.beta = 1;
    check_fill(op, op->op.in[0], 1.0f);
    check_fill(op, op->op.in[1], 0.5f);
    snprintf(op->name, sizeof(op->name), "%zu x %zu x %zu", m, k, n);
    return op;
}

/* an op without weights, or PRELU, on an image of 32 x 12 x 12 */
static struct one_op *light_new(enum mdl_op_kind kind)
{
    struct one_op *op = one_op_new(kind);
    bool pools = kind == MDL_OP_MAX_POOL || kind == MDL_OP_AVG_POOL;
    size_t size = kind == MDL_OP_REDUCE ? 1 : pools ? 6 : 12;

    op->op.in[0] = one_op_image(op, 1, 32, 12, 12, 0);
    op->op.out[0] = one_op_image(op, 1, 32, size, size, 0);
    check_fill(op, op->op.in[0], 1.0f);
    if (kind == MDL_OP_BINARY || kind == MDL_OP_PRELU) {
        op->op.in[1] = one_op_tensor(op, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){1, 32, 12, 12},
                                     (ptrdiff_t[]){0, 1, 0, 0});
        check_fill(op, op->op.in[1], 1.0f);
    }
    if (pools) {
        op->op.attr.pool.window = (struct mdl_window){.rank = 2,
                                                      .kernel = {3, 3},
                                                      .stride = {2, 2},
                                                      .dilation = {1, 1},
                                                      .pad_begin = {1, 1},
                                                      .pad_end = {1, 1}};
        op->op.attr.pool.pad_end_model[0] = op->op.attr.pool.pad_end_model[1] = 1;
    }
    if (kind == MDL_OP_REDUCE) {
        op->op.attr.reduce.which = MDL_RED_MEAN;
        op->op.attr.reduce.axes[2] = op->op.attr.reduce.axes[3] = true;
    }
    op->op.act = kind == MDL_OP_UNARY ? MDL_ACT_SIGMOID : MDL_ACT_NONE;
    snprintf(op->name, sizeof(op->name), "kind %d", (int)kind);
    return op;
}

/* what MemoryDenyWriteExecute= does to memory that was writable */
static bool deny_code(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = base_array_count(filter), .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Return: 0 if no primitive that compiles takes @op, and another one does */
static int child_main(struct one_op *op)
{
    size_t count, usable = 0;
    const struct krn_primitive *v = krn_primitives(&count);

    if (!deny_code()) {
        return 77;
    }
    for (size_t i = 0; i < count; i++) {
        bool takes = krn_usable(&v[i], &op->m, 0);

        if (takes && strstr(v[i].name, "__dnnl")) {
            return 1;
        }
        usable += takes;
    }
    return usable > 0 ? 0 : 2;
}

/* first: a library that was started before stays started */
TEST(a_process_that_may_not_write_code)
{
    struct one_op *op = conv_new(16, 8, 16, 3, 0);
    pid_t child = fork();
    int status;

    if (child == 0) {
        _exit(child_main(op));
    }
    T_TRUE(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    one_op_free(op);
    if (WEXITSTATUS(status) == 77) {
        T_SKIP("no seccomp filters here");
    }
    T_EQ(WEXITSTATUS(status), 0);
}

/* the sum of a residual network, kept in one place */
TEST(residual_where_the_result_goes)
{
    for (int i = 0; i < 60; i++) {
        size_t k = i % 2 ? 1 : 3, o = (size_t)t_range(1, 70), c = (size_t)t_range(1, 40);
        struct one_op *op = conv_new(c, (size_t)t_range(1, 9), o, k, i % 5 ? 0 : o + 3);
        struct mdl_tensor *y = &op->tensors[op->op.out[0]];
        struct check check = {.bound = CHECK_SUM,
                              .terms = (double)(c * k * k),
                              .ulps = 6,
                              .absolute = 2e-7,
                              .expect = "igemm",
                              .residual_in_place = true};

        check_epilogue(op, o, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS), MDL_RESIDUAL_NONE);
        op->op.residual = i % 3 ? MDL_RESIDUAL_BEFORE_ACT : MDL_RESIDUAL_AFTER_ACT;
        op->op.residual_in = one_op_tensor(op, MDL_F32, MDL_HOME_ARENA, y->rank, y->dim, y->stride);
        check_fill(op, op->op.residual_in, 1.0f);
        op->tensors[op->op.residual_in].storage = y->storage;
        T_TRUE(check_run(op, &check));
        one_op_free(op);
    }
}

struct shared {
    struct one_op *op;
    const struct krn_primitive *v;
    struct one_op_buffer packed, want;
    struct krn_prepared prepared;
    size_t scratch_bytes;
    pthread_barrier_t start;
};

struct team {
    struct shared *s;
    pthread_t thread;
    size_t width, differing;
};

static void run_once(struct shared *s, struct one_op_buffer *out, uint8_t *scratch, size_t width)
{
    struct krn_call c = one_op_call(s->op, out, NULL, width, s->packed.data, scratch);

    c.prepared = s->prepared.object;
    s->v->run(&c);
}

static void *team_main(void *arg)
{
    struct team *t = arg;
    struct shared *s = t->s;
    struct one_op_buffer scratch = one_op_buffer_new(s->scratch_bytes, 64);

    pthread_barrier_wait(&s->start);
    for (size_t i = 0; i < RUNS; i++) {
        struct one_op_buffer out[MDL_OP_OUT_MAX] = {one_op_buffer_new(s->want.bytes, 4)};
        struct krn_prepared prepared = s->prepared;

        if (t->width > 1 && i == RUNS / 2) { /* the others are running */
            (void)s->v->prepare(&s->op->m, &s->op->op, s->packed.data, t->width, &prepared);
        }
        run_once(s, out, scratch.data, i < RUNS / 2 ? 1 : t->width);
        for (size_t e = 0; e < s->want.bytes / sizeof(float); e++) {
            float got, want;

            memcpy(&got, out[0].data + e * sizeof(float), sizeof(float));
            memcpy(&want, s->want.data + e * sizeof(float), sizeof(float));
            t->differing += !(got - want <= 1e-3f && want - got <= 1e-3f);
        }
        one_op_buffer_free(&out[0]);
    }
    one_op_buffer_free(&scratch);
    return NULL;
}

/* Return: how many values differ from those of one team alone */
static size_t at_once(struct one_op *op, const struct krn_primitive *v)
{
    struct shared s = {.op = op, .v = v};
    struct one_op_buffer out[MDL_OP_OUT_MAX] = {0};
    struct team teams[TEAMS];
    struct one_op_buffer scratch;
    size_t differing = 0;

    s.packed = one_op_buffer_new(v->packed_bytes ? v->packed_bytes(&op->m, &op->op) : 0, 64);
    for (size_t w = 1; v->scratch_bytes && w <= TEAMS; w++) {
        s.scratch_bytes = base_max(s.scratch_bytes, v->scratch_bytes(&op->m, &op->op, w));
    }
    if (v->prepare(&op->m, &op->op, s.packed.data, 1, &s.prepared) != 0) {
        return SIZE_MAX;
    }
    s.want = one_op_buffer_new(op->buffers[op->op.out[0]].bytes, 4);
    scratch = one_op_buffer_new(s.scratch_bytes, 64);
    out[0] = s.want;
    run_once(&s, out, scratch.data, 1);
    pthread_barrier_init(&s.start, NULL, TEAMS);
    for (size_t i = 0; i < TEAMS; i++) {
        teams[i] = (struct team){.s = &s, .width = 1 + i};
        pthread_create(&teams[i].thread, NULL, team_main, &teams[i]);
    }
    for (size_t i = 0; i < TEAMS; i++) {
        pthread_join(teams[i].thread, NULL);
        differing += teams[i].differing;
    }
    pthread_barrier_destroy(&s.start);
    v->release(&s.prepared);
    one_op_buffer_free(&s.want);
    one_op_buffer_free(&s.packed);
    one_op_buffer_free(&scratch);
    return differing;
}

/* Return: whether no primitive differed */
static bool all_at_once(struct one_op *op)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        if (v[i].prepare && !v[i].inexact && krn_usable(&v[i], &op->m, 0)) {
            size_t differing = at_once(op, &v[i]);

            if (differing) {
                fprintf(stderr, "%s, %s: %zu values differ\n", v[i].name, op->name, differing);
                return false;
            }
        }
    }
    return true;
}

TEST(many_teams_at_once)
{
    for (size_t k = 1; k <= 3; k += 2) {
        struct one_op *op = conv_new(24, 12, 40, k, 0);

        T_TRUE(all_at_once(op));
        one_op_free(op);
    }
}

/* bytes, with weights that oneDNN takes on any CPU, and a zero point that has to be padded */
TEST(many_teams_at_once_on_bytes)
{
    static const struct mdl_quant quant = {.x_zero = 77};

    for (size_t k = 1; k <= 3; k += 2) {
        struct one_op *op = conv_new(24, 12, 40, k, 0);

        for (size_t t = 0; t < 2; t++) {
            struct one_op_buffer *b = &op->buffers[op->op.in[t]];

            op->tensors[op->op.in[t]].dtype = t ? MDL_I8 : MDL_U8;
            for (size_t i = 0; i < b->bytes; i++) {
                b->data[i] = t ? (uint8_t)t_range(-64, 64) : (uint8_t)t_range(0, 255);
            }
        }
        op->op.quant = &quant;
        op->op.channels = 40;
        op->op.scale = op->scale = malloc(40 * sizeof(float));
        for (size_t i = 0; i < 40; i++) {
            op->scale[i] = 0.01f;
        }
        T_TRUE(all_at_once(op));
        one_op_free(op);
    }
}

TEST(many_teams_at_once_on_other_kinds)
{
    static const enum mdl_op_kind kinds[] = {MDL_OP_MAX_POOL, MDL_OP_AVG_POOL, MDL_OP_REDUCE,
                                             MDL_OP_BINARY,   MDL_OP_UNARY,    MDL_OP_PRELU};
    struct one_op *op;

    for (size_t i = 0; i < base_array_count(kinds); i++) {
        op = light_new(kinds[i]);
        T_TRUE(all_at_once(op));
        one_op_free(op);
    }
    for (size_t m = 1; m <= 5; m += 4) {
        op = product_new(m, 96, 200);
        T_TRUE(all_at_once(op));
        one_op_free(op);
    }
}

TEST_MAIN()
