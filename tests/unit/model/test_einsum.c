/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum against its definition: a sum over all values of all labels, in double. */
#include "tests/unit/model/one_node.h"

#define LABELS 128 /* letters by their code; an ellipsis is written as digits by the cases */

struct equation {
    const char *text;   /* as in the file */
    const char *plain;  /* the same with digits for the dims of an ellipsis, and its output */
    const char *dim[3]; /* of each input */
};

static const struct equation equations[] = {
    {"ij->ji", "ij->ji", {"2,3"}},
    {"ij", "ij->ij", {"2,3"}},
    {"ba", "ba->ab", {"2,3"}},
    {"bA", "bA->Ab", {"2,3"}},
    {"ii->i", "ii->i", {"3,3"}},
    {"ii", "ii->", {"3,3"}},
    {"bii->bi", "bii->bi", {"2,3,3"}},
    {"iji->j", "iji->j", {"3,2,3"}},
    {"iii->i", "iii->i", {"3,3,3"}},
    {"i->", "i->", {"5"}},
    {"ijk->j", "ijk->j", {"2,3,4"}},
    {"i,i->", "i,i->", {"4", "4"}},
    {"i,j->ij", "i,j->ij", {"3", "4"}},
    {" i j , j k -> i k ", "ij,jk->ik", {"2,3", "3,4"}},
    {"ij,jk", "ij,jk->ik", {"2,3", "3,4"}},
    {"ij,kj->ki", "ij,kj->ki", {"2,3", "4,3"}},
    {"bij,bjk->bik", "bij,bjk->bik", {"2,3,4", "2,4,5"}},
    {"bhid,bhjd->bhij", "bhid,bhjd->bhij", {"2,2,3,4", "2,2,5,4"}}, /* attention */
    {"bhij,bhjd->bihd", "bhij,bhjd->bihd", {"2,2,3,4", "2,2,4,5"}},
    {"bchw,bkc->bkhw", "bchw,bkc->bkhw", {"2,3,2,4", "2,5,3"}}, /* YOLO-World */
    {"nctv,cvw->nctw", "nctv,cvw->nctw", {"1,2,3,4", "2,4,5"}},
    {"bhwc,hkc->bhwk", "bhwc,hkc->bhwk", {"1,3,4,2", "3,5,2"}},
    {"abc,cd,def->abef", "abc,cd,def->abef", {"2,2,3", "3,4", "4,2,3"}},
    {"ij,jk,k->i", "ij,jk,k->i", {"2,3", "3,4", "4"}},
    {"ab,ab,ab->b", "ab,ab,ab->b", {"3,2", "3,2", "3,2"}},
    {"abcd,cdef->abef", "abcd,cdef->abef", {"2,2,3,2", "3,2,2,2"}},
    {"...ij,...jk->...ik", "01ij,01jk->01ik", {"2,2,3,4", "2,2,4,2"}},
    {"...ij,...jk->...ik", "01ij,1jk->01ik", {"2,2,3,4", "2,4,2"}},
    {"...ij,jk", "0ij,jk->0ik", {"2,3,4", "4,2"}},
    {"i...->...", "i01->01", {"3,2,4"}},
    {"...ii->...i", "0ii->0i", {"2,3,3"}},
    {"...,...->...", "01,1->01", {"2,3", "3"}},
    {"ij,jk->ik", "ij,jk->ik", {"2,1", "3,4"}}, /* one of a label's dims may be 1 */
    {"bij,bjk->bik", "bij,bjk->bik", {"1,2,3", "4,3,2"}},
    {"ij,jk->ik", "ij,jk->ik", {"2,0", "0,4"}}, /* nothing to sum */
    {",ij->ij", ",ij->ij", {"", "2,3"}},
    {",->", ",->", {"", ""}},
    {"ijkl,ijkl->", "ijkl,ijkl->", {"2,2,2,2", "2,2,2,2"}},
    {"ij,kl->ijkl", "ij,kl->ijkl", {"2,2", "2,2"}},
};

struct operand {
    size_t rank, dim[MDL_RANK_MAX];
    char label[MDL_RANK_MAX];
    const float *data;
};

/* The element of @o for the labels' values @at; a dim of 1 repeats. */
static double element(const struct operand *o, const size_t *at)
{
    size_t i = 0;

    for (size_t k = 0; k < o->rank; k++) {
        size_t value = at[(int)o->label[k]];

        i = i * o->dim[k] + (o->dim[k] == 1 ? 0 : value);
    }
    return (double)o->data[i];
}

/* @y: what the equation gives, by trying all values of all labels */
static void by_definition(const struct operand *in, size_t count, const char *output,
                          const size_t *size, double *y)
{
    size_t at[LABELS] = {0}, label;

    for (size_t i = 0; i < LABELS; i++) {
        if (size[i] == 0) {
            return;
        }
    }
    do {
        double product = 1;
        size_t to = 0;

        for (size_t i = 0; i < count; i++) {
            product *= element(&in[i], at);
        }
        for (const char *c = output; *c; c++) {
            to = to * size[(int)*c] + at[(int)*c];
        }
        y[to] += product;
        for (label = 0; label < LABELS && ++at[label] == size[label]; label++) {
            at[label] = 0;
        }
    } while (label < LABELS);
}

static size_t read_operands(const struct equation *e, struct operand *in, size_t *size,
                            const char **ret_output)
{
    const char *text = e->plain;
    size_t count = 0;

    for (size_t i = 0; i < LABELS; i++) {
        size[i] = 1;
    }
    for (; count < 3 && e->dim[count]; count++, text++) {
        const char *dims = e->dim[count];
        double dim[MDL_RANK_MAX];
        struct operand *o = &in[count];

        *o = (struct operand){.rank = one_node_list(&dims, '\0', dim, MDL_RANK_MAX)};
        for (size_t k = 0; k < o->rank; k++, text++) {
            size_t *all = &size[(int)*text];

            o->dim[k] = (size_t)dim[k];
            o->label[k] = *text;
            *all = *all == 1 ? o->dim[k] : *all;
        }
    }
    *ret_output = text + 1; /* behind "->" */
    return count;
}

static void check_equation(const struct equation *e, bool second_constant)
{
    struct operand in[3];
    size_t size[LABELS], elements = 1, count;
    const char *output;
    double *y;
    struct gb *g = malloc(sizeof(*g));
    struct run_model r = {0};
    struct mdl_model *m;
    bool same = true;
    char names[sizeof("a b c")];

    count = read_operands(e, in, size, &output);
    gb_init(g, 12);
    for (size_t i = 0; i < count; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        int64_t dim[MDL_RANK_MAX];

        for (size_t k = 0; k < in[i].rank; k++) {
            dim[k] = (int64_t)in[i].dim[k];
        }
        if (second_constant && i == 1) {
            gb_weights(g, name, in[i].rank, in[i].dim);
            in[i].data = g->weights[0].data;
        } else {
            gb_input(g, name, in[i].rank, dim);
        }
    }
    snprintf(names, sizeof(names), "%.*s", (int)(2 * count) - 1, "a b c");
    gb_node(g, "Einsum", "it", names, "y");
    gb_string(g, "equation", e->text);
    gb_output(g, "y");
    m = gb_compile(g, NULL);
    if (!m) {
        T_FAIL("%s: %s", e->text, g->error);
    }
    run_model_init(&r, m);
    T_TRUE(run_model_go(&r, 7));
    for (size_t i = 0, input = 0; i < count; i++) {
        in[i].data = second_constant && i == 1 ? in[i].data : r.inputs[input++];
    }
    for (const char *c = output; *c; c++) {
        elements *= size[(int)*c];
    }
    y = calloc(elements + 1, sizeof(*y));
    by_definition(in, count, output, size, y);
    T_EQ(gb_out(m, 0)->rank, strlen(output));
    T_EQ(m->outputs[0].bytes, elements * sizeof(float));
    for (size_t i = 0; i < elements; i++) {
        same &= fabs((double)((float *)r.outputs[0])[i] - y[i]) <= 1e-5;
    }
    if (!same) {
        T_FAIL("%s: other values than by the definition", e->text);
    }
    free(y);
    run_model_deinit(&r);
    mdl_free(m);
    gb_free(g);
    free(g);
}

TEST(equations)
{
    for (size_t i = 0; i < base_array_count(equations); i++) {
        check_equation(&equations[i], false);
        if (equations[i].dim[1]) {
            check_equation(&equations[i], true);
        }
    }
}

/* Attention's products need no sum beside them, and a constant is packed like any weights. */
TEST(products_are_products)
{
    struct gb g;
    struct mdl_model *m;

    gb_init(&g, 12);
    gb_weights(&g, "w", 2, (size_t[]){4, 6});
    gb_input(&g, "x", 3, (int64_t[]){2, 3, 6});
    gb_node(&g, "Einsum", "it", "w x", "y");
    gb_string(&g, "equation", "oi,bni->bno");
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    T_TRUE(m);
    T_EQ(m->op_count, 1);
    T_EQ(m->ops[0].kind, MDL_OP_GEMM);
    mdl_free(m);
    gb_free(&g);
}

static const struct one_node cases[] = {
    {12, "Einsum", "equation'ij,jk->ik", {"i[2,2] 1 2 3 4", "i[2,2] 1 1 0 1"}, "i[2,2] 1 3 3 7"},
    {12, "Einsum", "equation'ij,kj->j", {"l[1,2] 3 4", "l[2,2] 1 2 3 4"}, "l[2] 12 24"},
    {12, "Einsum", "equation'ii", {"f[2,2] 1 2 3 nan"}, "f[] nan"},
    {12, "Einsum", "", {"f[2] 1"}, "!does not fit input 0 of rank 1"},
    {12, "Einsum", "equation:3", {"f[2] 1"}, "!attribute equation has the wrong type"},
    {12, "Einsum", "equation'i,i", {"f[2] 1"}, "!does not fit input 0"},
    {12, "Einsum", "equation'i", {"f[2] 1", "f[2] 1"}, "!does not fit input 0"},
    {12, "Einsum", "equation'ij", {"f[2] 1"}, "!does not fit input 0 of rank 1"},
    {12, "Einsum", "equation'i", {"f[2,2] 1"}, "!does not fit input 0 of rank 2"},
    {12, "Einsum", "equation'i,i->", {"f[2] 1", "f[3] 1"}, "!stands for 2 and for 3"},
    {12, "Einsum", "equation'ii->i", {"f[1,3] 1"}, "!diagonal stands for 1 and for 3"},
    {12, "Einsum", "equation'i->ii", {"f[2] 1"}, "!names a label twice"},
    {12, "Einsum", "equation'i->j", {"f[2] 1"}, "!that no input has"},
    {12, "Einsum", "equation'i->i,", {"f[2] 1"}, "!has a comma"},
    {12, "Einsum", "equation'i->i->i", {"f[2] 1"}, "!not valid at \"->i\""},
    {12, "Einsum", "equation'i.->i", {"f[2] 1"}, "!not valid at \".\""},
    {12, "Einsum", "equation'......->", {"f[2] 1"}, "!not valid at \"...\""},
    {12, "Einsum", "equation'i%->i", {"f[2,1] 1"}, "!not valid at \"%\""},
    {12, "Einsum", "equation'abcdefghi->a", {"f[2] 1"}, "!more than 8 labels"},
    {12,
     "Einsum",
     "equation'abcde,fghij->abcdefghij",
     {"f[1,1,1,1,1] 1", "f[1,1,1,1,1] 1"},
     "!more than 8"},
    {12, "Einsum", "equation'i,i->i", {"f[2] 1", "i[2] 1"}, "!all must be of one type"},
    {12, "Einsum", "equation'i->i", {"b[2] 1"}, "!type bool"},
    {12, "Einsum", "equation'i->i", {"-"}, "!input 0 is missing"},
};

TEST(integers_and_refusals)
{
    for (size_t i = 0; i < base_array_count(cases); i++) {
        T_TRUE(one_node_check(&cases[i]));
    }
}

TEST_MAIN()
