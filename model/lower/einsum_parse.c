/* SPDX-License-Identifier: Apache-2.0 */
/* The equation of Einsum. */
#include "model/lower/einsum.h"

/* The number of a letter, or MDL_EINSUM_LETTERS. */
static unsigned letter_of(char c)
{
    return c >= 'a' && c <= 'z'   ? (unsigned)(c - 'a') + 26
           : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A')
                                  : MDL_EINSUM_LETTERS;
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
static void read_term(struct mdl_lower *l, const char **at, size_t ellipsis,
                      struct mdl_einsum_term *ret)
{
    bool seen = false;

    ret->rank = 0;
    for (; **at && **at != ','; (*at)++) {
        size_t count = 1, label = letter_of(**at);

        if (strncmp(*at, "...", 3) == 0 && !seen) {
            seen = true;
            count = ellipsis;
            label = MDL_EINSUM_LABELS - ellipsis;
            *at += 2;
        } else if (label == MDL_EINSUM_LETTERS) {
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

static void read_operands(struct mdl_lower *l, const char *at, struct mdl_einsum *e,
                          size_t *ret_ellipsis)
{
    *ret_ellipsis = 0;
    for (size_t i = 0; i < MDL_EINSUM_LABELS; i++) {
        e->dim[i] = MDL_NONE;
    }
    for (e->count = 0; e->count < l->in_count; e->count++) {
        struct mdl_einsum_term *t = &e->in[e->count];
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
static void implicit_output(struct mdl_lower *l, struct mdl_einsum *e, size_t ellipsis)
{
    size_t times[MDL_EINSUM_LABELS] = {0};

    for (size_t i = 0; i < e->count; i++) {
        for (size_t k = 0; k < e->in[i].rank; k++) {
            times[e->in[i].label[k]]++;
        }
    }
    e->out.rank = 0;
    for (size_t i = 0; i < MDL_EINSUM_LABELS; i++) {
        size_t label = (i + MDL_EINSUM_LABELS - ellipsis) % MDL_EINSUM_LABELS;

        if (label < MDL_EINSUM_LETTERS ? times[label] != 1 : i >= ellipsis) {
            continue;
        }
        mdl_large_if(l, e->out.rank == MDL_RANK_MAX, "the result has more than %u dimensions",
                     MDL_RANK_MAX);
        e->out.label[e->out.rank++] = (unsigned char)label;
    }
}

static void check_output(struct mdl_lower *l, const struct mdl_einsum *e)
{
    bool seen[MDL_EINSUM_LABELS] = {0};

    for (size_t i = 0; i < e->out.rank; i++) {
        size_t label = e->out.label[i];

        mdl_bad_if(l, e->dim[label] == MDL_NONE || seen[label],
                   "the equation's output names a label %s",
                   seen[label] ? "twice" : "that no input has");
        seen[label] = true;
    }
}

void mdl_einsum_parse(struct mdl_lower *l, struct mdl_einsum *ret)
{
    char *text = NULL, *arrow = NULL;
    const char *at;
    size_t ellipsis;

    mdl_unserved_if(l, l->in_count < 1 || l->in_count > MDL_EINSUM_OPERANDS,
                    "%zu inputs are not supported (1 to %u are)", l->in_count, MDL_EINSUM_OPERANDS);
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
