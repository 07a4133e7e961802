/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum as transposes, products and sums: the inputs are combined from left to right, and a label
 * that nothing further needs is summed over as soon as possible. */
#include "model/lower/lowering.h"

/* Labels: letters, then the dims of an ellipsis, the last one being LABELS - 1. */
#define LETTERS 52u
#define LABELS (LETTERS + MDL_RANK_MAX)
#define OPERANDS 16u

/* A tensor whose dimension i is named label[i]. */
struct term {
    size_t value;
    size_t rank;
    unsigned char label[MDL_RANK_MAX];
};

struct equation {
    size_t count;
    struct term in[OPERANDS]; /* a label may occur twice in one */
    struct term out;          /* each label once; value is not set */
    size_t dim[LABELS];       /* size of each label that occurs */
};

/* ---- the equation ---- */

/* The number of a letter, or LETTERS. */
static unsigned letter_of(char c)
{
    return c >= 'a' && c <= 'z'   ? (unsigned)(c - 'a') + 26
           : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A')
                                  : LETTERS;
}

/* The equation without spaces; *ret_arrow: where its output begins, or NULL. */
static void read_equation(struct mdl_lower *l, char **ret, char **ret_arrow)
{
    const char *given = mdl_l_string(l, "equation", "");
    char *text, *to;

    to = text = mdl_ir_alloc(l->ir, strlen(given) + 1, 1);
    for (const char *from = given; *from; from++) {
        if (*from != ' ') {
            *to++ = *from;
        }
    }
    *to = '\0';
    *ret = text;
    *ret_arrow = strstr(text, "->");
    if (*ret_arrow) {
        **ret_arrow = '\0';
        *ret_arrow += 2;
    }
}

/* Labels of one term from *at up to a comma or the end. @ellipsis: how many dims "..." stands for.
 */
static void read_term(struct mdl_lower *l, const char **at, size_t ellipsis, struct term *ret)
{
    bool seen = false;

    ret->rank = 0;
    for (; **at && **at != ','; (*at)++) {
        size_t count = 1, label = letter_of(**at);

        if (strncmp(*at, "...", 3) == 0 && !seen) {
            seen = true;
            count = ellipsis;
            label = LABELS - ellipsis;
            *at += 2;
        } else if (label == LETTERS) {
            mdl_l_refuse(l, -EBADMSG, "the equation is not valid at \"%.20s\"", *at);
        }
        for (; count; count--, label++) {
            mdl_bad_if(l, ret->rank == MDL_RANK_MAX, "a term has more than %u labels",
                       MDL_RANK_MAX);
            ret->label[ret->rank++] = (unsigned char)label;
        }
    }
}

/* How many dims an ellipsis in the term at @at stands for, for a tensor of @rank. */
static size_t ellipsis_of(const char *at, size_t rank)
{
    size_t letters = 0;
    bool has = false;

    for (; *at && *at != ','; at++) {
        has |= *at == '.';
        letters += *at != '.';
    }
    return has && rank > letters ? rank - letters : 0;
}

static void read_operands(struct mdl_lower *l, const char *at, struct equation *e,
                          size_t *ret_ellipsis)
{
    *ret_ellipsis = 0;
    for (size_t i = 0; i < LABELS; i++) {
        e->dim[i] = MDL_NONE;
    }
    for (e->count = 0; e->count < l->in_count; e->count++) {
        struct term *t = &e->in[e->count];
        const struct mdl_ir_value *x = mdl_l_value(l, l->in[e->count]);
        size_t ellipsis = ellipsis_of(at, x->rank);

        read_term(l, &at, ellipsis, t);
        mdl_bad_if(l, t->rank != x->rank || (*at != ',') != (e->count + 1 == l->in_count),
                   "the equation does not fit input %zu of rank %zu", e->count, x->rank);
        at += *at == ',';
        t->value = l->in[e->count];
        *ret_ellipsis = base_max(*ret_ellipsis, ellipsis);
        for (size_t i = 0; i < t->rank; i++) {
            size_t *dim = &e->dim[t->label[i]];

            mdl_bad_if(l, *dim != MDL_NONE && *dim != 1 && x->dim[i] != 1 && x->dim[i] != *dim,
                       "a label stands for %zu and for %zu", *dim, x->dim[i]);
            *dim = *dim == MDL_NONE || *dim == 1 ? x->dim[i] : *dim;
        }
    }
}

/* Without an arrow: the dims of the ellipsis, then the letters that occur once, in the order of
 * their codes. */
static void implicit_output(struct mdl_lower *l, struct equation *e, size_t ellipsis)
{
    size_t times[LABELS] = {0};

    for (size_t i = 0; i < e->count; i++) {
        for (size_t k = 0; k < e->in[i].rank; k++) {
            times[e->in[i].label[k]]++;
        }
    }
    e->out.rank = 0;
    for (size_t i = 0; i < LABELS; i++) {
        size_t label = (i + LABELS - ellipsis) % LABELS;

        if (label < LETTERS ? times[label] != 1 : i >= ellipsis) {
            continue;
        }
        mdl_large_if(l, e->out.rank == MDL_RANK_MAX, "the result has more than %u dimensions",
                     MDL_RANK_MAX);
        e->out.label[e->out.rank++] = (unsigned char)label;
    }
}

static void check_output(struct mdl_lower *l, const struct equation *e)
{
    bool seen[LABELS] = {0};

    for (size_t i = 0; i < e->out.rank; i++) {
        size_t label = e->out.label[i];

        mdl_bad_if(l, e->dim[label] == MDL_NONE || seen[label],
                   "the equation's output names a label %s",
                   seen[label] ? "twice" : "that no input has");
        seen[label] = true;
    }
}

/* Dims of one label must be equal or 1. */
static void parse(struct mdl_lower *l, struct equation *ret)
{
    char *text = NULL, *arrow = NULL;
    const char *at;
    size_t ellipsis;

    mdl_unserved_if(l, l->in_count < 1 || l->in_count > OPERANDS,
                    "%zu inputs are not supported (1 to %u are)", l->in_count, OPERANDS);
    read_equation(l, &text, &arrow);
    read_operands(l, text, ret, &ellipsis);
    if (!arrow) {
        implicit_output(l, ret, ellipsis);
    } else {
        at = arrow;
        read_term(l, &at, ellipsis, &ret->out);
        mdl_bad_if(l, *at, "the equation's output has a comma");
    }
    check_output(l, ret);
}

/* ---- what it computes ---- */

static size_t dim_of(const struct mdl_lower *l, const struct term *t, size_t i)
{
    return mdl_l_value(l, t->value)->dim[i];
}

static size_t find(const struct term *t, size_t label)
{
    for (size_t i = 0; i < t->rank; i++) {
        if (t->label[i] == label) {
            return i;
        }
    }
    return MDL_NONE;
}

/* Puts the dims into the order of @label, which has all of the term's labels. */
static void arrange(struct mdl_lower *l, struct term *t, const unsigned char *label)
{
    size_t perm[MDL_RANK_MAX];

    for (size_t i = 0; i < t->rank; i++) {
        perm[i] = find(t, label[i]);
    }
    t->value = mdl_ir_permute(l->ir, t->value, perm);
    memcpy(t->label, label, t->rank);
}

/* Dims @a and @b of one label become its diagonal: every (n + 1)th element of both as one dim. */
static void take_diagonal(struct mdl_lower *l, struct term *t, size_t a, size_t b)
{
    unsigned char label = t->label[a];
    size_t perm[MDL_RANK_MAX], dim[MDL_RANK_MAX], start[MDL_RANK_MAX] = {0}, rank = 0;
    size_t n = dim_of(l, t, a);
    ptrdiff_t step[MDL_RANK_MAX];

    mdl_bad_if(l, n != dim_of(l, t, b), "the label of a diagonal stands for %zu and for %zu", n,
               dim_of(l, t, b));
    for (size_t i = 0; i < t->rank; i++) {
        if (i != a && i != b) {
            t->label[rank] = t->label[i];
            dim[rank] = dim_of(l, t, i);
            step[rank] = 1;
            perm[rank++] = i;
        }
    }
    perm[rank] = a;
    perm[rank + 1] = b;
    t->label[rank] = label;
    t->rank = rank + 1;
    t->value = mdl_ir_permute(l->ir, t->value, perm);
    mdl_large_if(l, !base_mul(n, n, &dim[rank]), "a diagonal of %zu is too large", n);
    t->value = mdl_ir_reshape(l->ir, t->value, t->rank, dim);
    step[rank] = (ptrdiff_t)n + 1;
    dim[rank] = n;
    t->value = mdl_ir_slice(l->ir, t->value, start, step, dim);
}

static void take_diagonals(struct mdl_lower *l, struct term *t)
{
    for (size_t i = 0; i < t->rank; i++) {
        for (size_t k = i + 1; k < t->rank; k++) {
            if (t->label[i] == t->label[k]) {
                take_diagonal(l, t, i, k);
                take_diagonals(l, t);
                return;
            }
        }
    }
}

/* Sums over the labels that are not needed. */
static void sum_over(struct mdl_lower *l, struct term *t, const bool *needed)
{
    bool axes[MDL_RANK_MAX];
    size_t rank = 0;

    for (size_t i = 0; i < t->rank; i++) {
        axes[i] = !needed[t->label[i]];
        if (!axes[i]) {
            t->label[rank++] = t->label[i];
        }
    }
    if (rank < t->rank) {
        t->rank = rank;
        t->value = mdl_ir_reduce(l->ir, MDL_RED_SUM, t->value, axes, false);
    }
}

/* The labels of two terms: batch in both and needed, summed in both, left and right in one. */
struct roles {
    size_t batch_count, left_count, right_count, summed_count;
    unsigned char batch[MDL_RANK_MAX], left[MDL_RANK_MAX], right[MDL_RANK_MAX],
        summed[MDL_RANK_MAX];
};

static struct roles roles_of(const struct term *a, const struct term *b, const bool *needed)
{
    struct roles s = {0};

    for (size_t i = 0; i < a->rank; i++) {
        if (find(b, a->label[i]) == MDL_NONE) {
            s.left[s.left_count++] = a->label[i];
        } else if (needed[a->label[i]]) {
            s.batch[s.batch_count++] = a->label[i];
        } else {
            s.summed[s.summed_count++] = a->label[i];
        }
    }
    for (size_t i = 0; i < b->rank; i++) {
        if (find(a, b->label[i]) == MDL_NONE) {
            s.right[s.right_count++] = b->label[i];
        }
    }
    return s;
}

/* Appends @count labels to @to at *at. */
static void append(unsigned char *to, size_t *at, const unsigned char *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[(*at)++] = from[i];
    }
}

/* A dim of 1 of a label that is summed becomes as long as the other term's. */
static void widen(struct mdl_lower *l, struct term *t, const struct term *other,
                  const struct roles *s)
{
    struct mdl_ir_value v = *mdl_l_value(l, t->value);

    for (size_t i = 0; i < s->summed_count; i++) {
        size_t mine = find(t, s->summed[i]), n = dim_of(l, other, find(other, s->summed[i]));

        v.dim[mine] = v.dim[mine] == 1 ? n : v.dim[mine];
    }
    t->value = mdl_ir_expand(l->ir, t->value, v.rank, v.dim);
}

/* [batch ...][first ...][second ...] -> [batch ...][product of first][product of second] */
static void as_matrices(struct mdl_lower *l, struct term *t, size_t batch, size_t first)
{
    size_t dim[MDL_RANK_MAX];

    mdl_unserved_if(l, batch + 2 > MDL_RANK_MAX, "%zu common labels are too many", batch);
    dim[batch] = dim[batch + 1] = 1;
    for (size_t i = 0; i < t->rank; i++) {
        if (i < batch) {
            dim[i] = dim_of(l, t, i);
        } else {
            dim[batch + (i < batch + first ? 0 : 1)] *= dim_of(l, t, i);
        }
    }
    t->value = mdl_ir_reshape(l->ir, t->value, batch + 2, dim);
}

/* y[batch][left][right] = sum over summed of a b, as a product of matrices */
static void multiply_matrices(struct mdl_lower *l, struct term a, struct term b,
                              const struct roles *s, struct term *ret)
{
    struct mdl_ir_op like = mdl_ir_op_make(l->ir, MDL_OP_MATMUL);
    unsigned char order[2 * MDL_RANK_MAX];
    size_t dim[2 * MDL_RANK_MAX], at = 0, k = 0;

    append(order, &at, s->batch, s->batch_count);
    append(order, &at, s->left, s->left_count);
    append(order, &at, s->summed, s->summed_count);
    widen(l, &a, &b, s);
    widen(l, &b, &a, s);
    arrange(l, &a, order);
    at = s->batch_count;
    append(order, &at, s->summed, s->summed_count);
    append(order, &at, s->right, s->right_count);
    arrange(l, &b, order);
    for (size_t i = s->batch_count; i < s->batch_count + s->left_count; i++) {
        dim[i] = dim_of(l, &a, i);
    }
    at = s->batch_count + s->left_count;
    for (size_t i = 0; i < s->right_count; i++) {
        dim[at + i] = dim_of(l, &b, s->batch_count + s->summed_count + i);
    }
    as_matrices(l, &a, s->batch_count, s->left_count);
    as_matrices(l, &b, s->batch_count, s->summed_count);
    ret->value = mdl_lower_product(l, a.value, b.value, &like, MDL_F32);
    for (size_t i = 0; i < s->batch_count; i++) {
        dim[i] = dim_of(l, ret, i);
    }
    append(order, &k, s->batch, s->batch_count);
    append(order, &k, s->left, s->left_count);
    append(order, &k, s->right, s->right_count);
    mdl_large_if(l, k > MDL_RANK_MAX, "a product has more than %u dimensions", MDL_RANK_MAX);
    ret->rank = 0;
    append(ret->label, &ret->rank, order, k);
    ret->value = mdl_ir_reshape(l->ir, ret->value, k, dim);
}

/* @t with a dim of 1 for each label of @label that it lacks; its own are in that order */
static void spread_labels(struct mdl_lower *l, struct term *t, const unsigned char *label,
                          size_t rank)
{
    unsigned char own[MDL_RANK_MAX];
    size_t dim[MDL_RANK_MAX], count = 0;

    for (size_t i = 0; i < rank; i++) {
        size_t at = find(t, label[i]);

        dim[i] = at == MDL_NONE ? 1 : dim_of(l, t, at);
        if (at != MDL_NONE) {
            own[count++] = label[i];
        }
    }
    arrange(l, t, own);
    t->value = mdl_ir_reshape(l->ir, t->value, rank, dim);
}

/* Element by element; sums come later. */
static void multiply_elements(struct mdl_lower *l, struct term a, struct term b,
                              const struct roles *s, struct term *ret)
{
    unsigned char order[2 * MDL_RANK_MAX];
    size_t rank = 0;

    append(order, &rank, s->batch, s->batch_count);
    append(order, &rank, s->left, s->left_count);
    append(order, &rank, s->right, s->right_count);
    append(order, &rank, s->summed, s->summed_count);
    mdl_large_if(l, rank > MDL_RANK_MAX, "a product has more than %u dimensions", MDL_RANK_MAX);
    spread_labels(l, &a, order, rank);
    spread_labels(l, &b, order, rank);
    ret->rank = 0;
    append(ret->label, &ret->rank, order, rank);
    ret->value = mdl_ir_binary(l->ir, MDL_BIN_MUL, a.value, b.value);
}

/* A constant goes to the right, where products want their weights. */
static void combine(struct mdl_lower *l, struct term a, struct term b, const bool *needed,
                    struct term *ret)
{
    bool swap = mdl_ir_is_const(l->ir, a.value) && !mdl_ir_is_const(l->ir, b.value);
    struct term x = swap ? b : a, w = swap ? a : b;
    struct roles s = roles_of(&x, &w, needed);

    if (s.summed_count && mdl_l_value(l, x.value)->dtype == MDL_F32) {
        multiply_matrices(l, x, w, &s, ret);
    } else {
        multiply_elements(l, x, w, &s, ret);
    }
}

/* Marks the labels of the output and of the inputs from @from on. */
static void mark_needed(const struct equation *e, size_t from, bool *needed)
{
    for (size_t i = 0; i < LABELS; i++) {
        needed[i] = find(&e->out, i) != MDL_NONE;
        for (size_t k = from; k < e->count; k++) {
            needed[i] |= find(&e->in[k], i) != MDL_NONE;
        }
    }
}

static size_t lower_einsum(struct mdl_lower *l, int arg)
{
    struct equation e = {0};
    struct term y = {0};
    bool needed[LABELS], own[LABELS];

    parse(l, &e);
    for (size_t i = 0; i < e.count; i++) {
        enum mdl_dtype dtype = mdl_l_value(l, e.in[i].value)->dtype;

        mdl_bad_if(l, dtype == MDL_BOOL || dtype != mdl_l_value(l, l->in[0])->dtype,
                   "input %zu is of type %s; all must be of one "
                   "type of numbers",
                   i, mdl_dtype_name(dtype));
        take_diagonals(l, &e.in[i]);
    }
    for (size_t i = 0; i < e.count; i++) {
        /* what only this input has is summed before the product */
        mark_needed(&e, i + 1, needed);
        for (size_t k = 0; k < LABELS; k++) {
            own[k] = needed[k] || (i > 0 && find(&y, k) != MDL_NONE);
        }
        sum_over(l, &e.in[i], own);
        if (i > 0) {
            combine(l, y, e.in[i], needed, &e.in[i]);
        }
        y = e.in[i];
        sum_over(l, &y, needed);
    }
    arrange(l, &y, e.out.label);
    return y.value;
}

const struct mdl_lower_row mdl_lower_einsum[] = {
    {"Einsum", lower_einsum, MDL_LOWER_ALL},
    {0},
};
