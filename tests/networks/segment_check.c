/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_check [--costs] MODEL - is a chain of segments, bit for bit, the whole model
 *
 * With the same primitives, at every cut: the two segments that it makes; then segments of one unit
 * each; then random chains of 3 and 4. Inputs are read-only pages, and both inputs and outputs end
 * where a page without access begins. Arena, weights and constants of a segment must not exceed the
 * whole's.
 *
 * --costs prints for each border its bytes, and what its copies take.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "kernels/choice.h"
#include "kernels/kernels.h"
#include "model/segment/segment.h"

#define IO_MAX 64u

struct buffer {
    uint8_t *map, *data;
    size_t map_bytes;
};

struct border_data {
    struct buffer of[IO_MAX];
    size_t count;
};

static size_t cases, failed;
static uint64_t seed = 20;

static void die(const char *what)
{
    fprintf(stderr, "segment_check: %s\n", what);
    exit(1);
}

/* The data end at a page without access, as far as 64-byte alignment allows. */
static struct buffer buffer_make(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE),
           room = base_align_up(base_max(bytes, (size_t)1), 64);
    size_t used = base_align_up(room, page);
    struct buffer b = {.map_bytes = used + page};

    b.map = mmap(NULL, b.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.map == MAP_FAILED || mprotect(b.map + used, page, PROT_NONE) < 0) {
        die("no memory");
    }
    b.data = b.map + used - room;
    memset(b.map, 0xff, used);
    return b;
}

static void buffer_lock(const struct buffer *b)
{
    if (mprotect(b->map, b->map_bytes - (size_t)sysconf(_SC_PAGESIZE), PROT_READ) < 0) {
        die("mprotect");
    }
}

static void data_free(struct border_data *d)
{
    for (size_t i = 0; i < d->count; i++) {
        munmap(d->of[i].map, d->of[i].map_bytes);
    }
    d->count = 0;
}

/* The primitives that the whole model's ops have; copies take the first that can run them. */
static void choose(const struct mdl_model *m, const struct krn_choice *whole, size_t first_op,
                   size_t copies_in, size_t ops, struct krn_choice *ret)
{
    if (krn_choice_init(ret, m->op_count) < 0) {
        die("no memory");
    }
    for (size_t i = 0; i < m->op_count; i++) {
        if (i < copies_in || i >= copies_in + ops) {
            ret->own[i] = krn_primitive_next(m, i, false, NULL, NULL);
            continue;
        }
        ret->own[i] = whole->own[first_op + i - copies_in];
        ret->fused[i] = i + 1 < copies_in + ops ? whole->fused[first_op + i - copies_in] : NULL;
    }
}

struct runner {
    const struct mdl_model *m;
    struct krn_net *net;
    struct krn_choice choice;
    uint8_t *arena, *scratch;
};

static void runner_init(struct runner *r, const struct mdl_model *m)
{
    char error[MDL_ERROR_MAX] = "";

    r->m = m;
    if ((r->choice.op_count
             ? krn_net_new_chosen(m, &r->choice, 1, KRN_PACK_ONE_STAGE, error, &r->net)
             : krn_net_new(m, NULL, error, &r->net)) < 0) {
        fprintf(stderr, "%s: %s\n", m->name, error);
        exit(1);
    }
    r->arena = aligned_alloc(64, base_align_up(m->arena_bytes + 64, 64));
    r->scratch = aligned_alloc(64, base_align_up(krn_net_scratch_bytes(r->net, 1) + 64, 64));
    if (!r->arena || !r->scratch) {
        die("no memory");
    }
    memset(r->arena, 0xff, m->arena_bytes);
}

static void runner_deinit(struct runner *r)
{
    krn_net_free(r->net);
    krn_choice_deinit(&r->choice);
    free(r->arena);
    free(r->scratch);
    *r = (struct runner){0};
}

static void runner_go(struct runner *r, const struct border_data *in, struct border_data *out)
{
    const void *inputs[IO_MAX];
    void *outputs[IO_MAX];
    struct krn_mem mem = {.arena = r->arena, .inputs = inputs, .outputs = outputs};
    struct krn_exec exec = {.width = 1, .scratch = r->scratch, .last_op = r->m->op_count - 1};

    if (r->m->input_count > IO_MAX || r->m->output_count > IO_MAX ||
        in->count != r->m->input_count) {
        die("inputs");
    }
    for (size_t i = 0; i < in->count; i++) {
        inputs[i] = in->of[i].data;
    }
    for (out->count = 0; out->count < r->m->output_count; out->count++) {
        out->of[out->count] = buffer_make(r->m->outputs[out->count].bytes);
        outputs[out->count] = out->of[out->count].data;
    }
    krn_net_run_ops(r->net, 0, r->m->op_count - 1, &mem, &exec);
    for (size_t i = 0; i < out->count; i++) {
        buffer_lock(&out->of[i]);
    }
}

static struct mdl_model *cut(const struct mdl_model *whole, size_t first, size_t last)
{
    char error[MDL_ERROR_MAX];
    struct mdl_model *m = NULL;

    if (mdl_segment(whole, first, last, NULL, error, &m) < 0) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return m;
}

static void take_choice(struct runner *r, const struct mdl_model *m, const struct mdl_model *whole,
                        const struct krn_choice *chosen)
{
    size_t first_op = whole->units[m->segment->first_unit].first_op;
    size_t ops = whole->units[m->segment->last_unit].last_op + 1 - first_op, in = 0;

    /* copies in come first, and read what no later op reads */
    while (m->op_count > ops && in < m->op_count - ops &&
           strcmp(m->ops[in].name, whole->ops[first_op].name) != 0) {
        in++;
    }
    choose(m, chosen, first_op, in, ops, &r->choice);
}

static bool check_sizes(const struct mdl_model *m, const struct mdl_model *whole)
{
    if (m->arena_bytes > whole->arena_bytes || m->weight_bytes > whole->weight_bytes) {
        printf("FAIL %s: arena %zu of %zu, weights %zu of %zu\n", m->name, m->arena_bytes,
               whole->arena_bytes, m->weight_bytes, whole->weight_bytes);
        return false;
    }
    return true;
}

/* Runs units @first..@last as a segment. */
static bool run_segment(const struct mdl_model *whole, const struct krn_choice *chosen,
                        size_t first, size_t last, const struct border_data *in,
                        struct border_data *out)
{
    struct mdl_model *m = cut(whole, first, last);
    struct runner r = {0};
    bool good = check_sizes(m, whole);

    take_choice(&r, m, whole, chosen);
    runner_init(&r, m);
    runner_go(&r, in, out);
    runner_deinit(&r);
    mdl_free(m);
    return good;
}

static bool same(const struct mdl_model *m, const struct border_data *a,
                 const struct border_data *b)
{
    for (size_t i = 0; i < m->output_count; i++) {
        if (memcmp(a->of[i].data, b->of[i].data, m->outputs[i].bytes) != 0) {
            return false;
        }
    }
    return a->count == m->output_count && b->count == m->output_count;
}

/* What the whole model answers if it is run in stages with the same cuts. A FUSED primitive runs
 * two ops of one stage; where its pair is cut, other primitives run. */
static void run_stages(struct runner *whole, const size_t *cuts, size_t cut_count,
                       const struct border_data *in, struct border_data *out)
{
    const struct mdl_model *m = whole->m;
    const void *inputs[IO_MAX];
    void *outputs[IO_MAX];
    struct krn_mem mem = {.arena = whole->arena, .inputs = inputs, .outputs = outputs};

    for (size_t i = 0; i < in->count; i++) {
        inputs[i] = in->of[i].data;
    }
    for (out->count = 0; out->count < m->output_count; out->count++) {
        out->of[out->count] = buffer_make(m->outputs[out->count].bytes);
        outputs[out->count] = out->of[out->count].data;
    }
    for (size_t i = 0; i <= cut_count; i++) {
        size_t last = (i < cut_count ? cuts[i] : m->unit_count) - 1;
        struct krn_exec exec = {.width = 1,
                                .first_op = m->units[i ? cuts[i - 1] : 0].first_op,
                                .last_op = m->units[last].last_op};
        size_t scratch;

        if (krn_net_join(whole->net, 0, exec.first_op, exec.last_op, 1, &scratch) < 0) {
            die("no memory");
        }
        exec.scratch = aligned_alloc(64, scratch + 64);
        krn_net_run_ops(whole->net, exec.first_op, exec.last_op, &mem, &exec);
        free(exec.scratch);
        krn_net_leave(whole->net, 0, exec.first_op, exec.last_op);
    }
}

static bool cuts_a_pair(const struct runner *whole, const size_t *cuts, size_t cut_count)
{
    for (size_t i = 0; i < cut_count; i++) {
        if (whole->choice.fused[whole->m->units[cuts[i]].first_op - 1]) {
            return true;
        }
    }
    return false;
}

/* Runs a chain that is cut before units @cuts, and compares its answer. */
static void check_chain(struct runner *of, const size_t *cuts, size_t cut_count,
                        const struct border_data *input, const struct border_data *plain)
{
    const struct mdl_model *whole = of->m;
    const struct krn_choice *chosen = &of->choice;
    struct border_data at = {.count = 0}, next = {.count = 0}, staged = {.count = 0};
    const struct border_data *expected = plain;
    bool good = true;

    if (cuts_a_pair(of, cuts, cut_count)) {
        run_stages(of, cuts, cut_count, input, &staged);
        expected = &staged;
    }
    for (size_t i = 0; i <= cut_count; i++) {
        size_t first = i ? cuts[i - 1] : 0;
        size_t last = (i < cut_count ? cuts[i] : whole->unit_count) - 1;

        good &= run_segment(whole, chosen, first, last, i ? &at : input, &next);
        data_free(&at);
        at = next;
    }
    if (!same(whole, &at, expected)) {
        printf("FAIL %s cut before", whole->name);
        for (size_t i = 0; i < cut_count; i++) {
            printf(" %zu", cuts[i]);
        }
        printf(": differs from the whole\n");
        good = false;
    }
    data_free(&at);
    data_free(&staged);
    cases += good;
    failed += !good;
}

static int by_number(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

/* Ascending, different, from 1 to @units - 1. */
static bool random_cuts(size_t units, size_t count, size_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        ret[i] = 1 + (size_t)(base_splitmix64(&seed) % (units - 1));
    }
    qsort(ret, count, sizeof(*ret), by_number);
    for (size_t i = 1; i < count; i++) {
        if (ret[i] == ret[i - 1]) {
            return false;
        }
    }
    return true;
}

static void check_chains(struct runner *of, const struct border_data *input,
                         const struct border_data *expected)
{
    const struct mdl_model *whole = of->m;
    size_t *cuts = calloc(whole->unit_count, sizeof(*cuts));

    for (size_t u = 1; cuts && u < whole->unit_count; u++) {
        check_chain(of, &u, 1, input, expected);
        cuts[u - 1] = u;
    }
    check_chain(of, cuts, whole->unit_count - 1, input, expected);
    check_chain(of, cuts, 0, input, expected);
    for (size_t i = 0; i < 12 && whole->unit_count > 4; i++) {
        size_t count = 2 + i % 2;

        if (random_cuts(whole->unit_count, count, cuts)) {
            check_chain(of, cuts, count, input, expected);
        }
    }
    free(cuts);
}

/* The time of a segment's copies at its borders; without the entry op, which the whole has, too. */
static double copy_us(const struct mdl_model *m, size_t *ret_count, size_t *ret_bytes)
{
    struct border_data in = {.count = 0}, out = {.count = 0};
    struct runner r = {0};
    double best = 0;

    *ret_count = *ret_bytes = 0;
    runner_init(&r, m);
    for (size_t i = 0; i < m->input_count; i++) {
        in.of[in.count++] = buffer_make(m->inputs[i].bytes);
    }
    runner_go(&r, &in, &out);
    for (size_t k = 0; k < m->op_count; k++) {
        const struct mdl_tensor *y = &m->tensors[m->ops[k].out[0]];
        const struct mdl_tensor *x = m->ops[k].in[0] == MDL_NONE ? y : &m->tensors[m->ops[k].in[0]];
        const void *inputs[IO_MAX];
        void *outputs[IO_MAX];
        struct krn_mem mem = {.arena = r.arena, .inputs = inputs, .outputs = outputs};
        struct krn_exec exec = {.width = 1, .scratch = r.scratch, .first_op = k, .last_op = k};
        uint64_t least = UINT64_MAX;

        if (m->ops[k].kind != MDL_OP_COPY || k == m->inputs[0].entry_op ||
            (m->storages[x->storage].home != MDL_HOME_INPUT &&
             m->storages[y->storage].home != MDL_HOME_OUTPUT)) {
            continue;
        }
        for (size_t i = 0; i < in.count; i++) {
            inputs[i] = in.of[i].data;
        }
        for (size_t i = 0; i < out.count; i++) {
            mprotect(out.of[i].map, out.of[i].map_bytes - (size_t)sysconf(_SC_PAGESIZE),
                     PROT_READ | PROT_WRITE);
            outputs[i] = out.of[i].data;
        }
        for (size_t i = 0; i < 20; i++) {
            uint64_t start = base_now_ns();

            krn_net_run_ops(r.net, k, k, &mem, &exec);
            least = base_min(least, base_now_ns() - start);
        }
        best += (double)least / 1e3;
        ++*ret_count;
        *ret_bytes += mdl_elements(y) * mdl_dtype_bytes(y->dtype);
    }
    data_free(&in);
    data_free(&out);
    runner_deinit(&r);
    return best;
}

static void print_costs(const struct mdl_model *whole)
{
    printf("border: tensors, bytes; copies of all before it, of all behind it, and of the unit "
           "behind it alone: number, bytes, us\n");
    for (size_t u = 1; u < whole->unit_count; u++) {
        struct mdl_model *head = cut(whole, 0, u - 1), *tail = cut(whole, u, whole->unit_count - 1);
        struct mdl_model *unit = cut(whole, u, u);
        struct mdl_border b;
        size_t count[3], bytes[3];
        double head_us = copy_us(head, &count[0], &bytes[0]);
        double tail_us = copy_us(tail, &count[1], &bytes[1]);
        double unit_us = copy_us(unit, &count[2], &bytes[2]);

        if (mdl_border(whole, u, &b) < 0) {
            die("no memory");
        }
        printf("%3zu: %zu %8zu; %zu %8zu %6.0f; %zu %8zu %6.0f; %zu %8zu %6.0f\n", u, b.count,
               b.bytes, count[0], bytes[0], head_us, count[1], bytes[1], tail_us, count[2],
               bytes[2], unit_us);
        mdl_border_deinit(&b);
        mdl_free(head);
        mdl_free(tail);
        mdl_free(unit);
    }
}

static void fill(const struct mdl_model *m, struct border_data *input)
{
    for (size_t i = 0; i < m->input_count; i++) {
        const struct mdl_tensor *t = &m->tensors[m->inputs[i].tensor];
        struct buffer b = buffer_make(m->inputs[i].bytes);

        for (size_t k = 0; k < mdl_elements(t); k++) {
            uint64_t random = base_splitmix64(&seed);

            if (t->dtype == MDL_F32) {
                ((float *)(void *)b.data)[k] = (float)((double)(random >> 40) * 0x1p-23 - 1);
            } else {
                b.data[k * mdl_dtype_bytes(t->dtype)] = (uint8_t)(random & 1);
            }
        }
        buffer_lock(&b);
        input->of[input->count++] = b;
    }
}

int main(int argc, char **argv)
{
    bool costs = argc == 3 && strcmp(argv[1], "--costs") == 0;
    struct mdl_load_options options = {.const_eval = krn_const_eval};
    struct border_data input = {.count = 0}, expected = {.count = 0};
    char error[MDL_ERROR_MAX];
    struct mdl_model *m = NULL;
    struct runner whole = {0};

    if (argc != 2 + costs) {
        die("usage: segment_check [--costs] MODEL");
    }
    if (mdl_load(argv[argc - 1], &options, error, &m) < 0) {
        die(error);
    }
    if (costs) {
        print_costs(m);
        mdl_free(m);
        return 0;
    }
    if (krn_choice_prefer(m, NULL, &whole.choice) < 0) {
        die("no memory");
    }
    runner_init(&whole, m);
    fill(m, &input);
    runner_go(&whole, &input, &expected);
    check_chains(&whole, &input, &expected);
    printf(
        "%s %s: %zu units, %zu chains equal the whole\ncases: %zu passed, %zu failed, 0 skipped\n",
        failed ? "FAIL" : "ok", m->name, m->unit_count, cases, cases, failed);
    runner_deinit(&whole);
    data_free(&input);
    data_free(&expected);
    mdl_free(m);
    return failed ? 1 : 0;
}
