/* SPDX-License-Identifier: Apache-2.0 */
/* Choices as text for other boards, which serve segments of the model. */
#include <inttypes.h>

#include "base/base.h"
#include "daemon/models/choosing_private.h"
#include "model/segment/segment.h"

#define NAMES_MAX 64u /* primitives of a kind */
#define NS_MAX 1e15

/* ---- at the board that has the whole model ---- */

struct names {
    size_t count;
    const struct krn_primitive *primitive[NAMES_MAX];
};

/* Return: its number in the list, which it is added to; NAMES_MAX: the list is full. */
static size_t number_of(struct names *n, const struct krn_primitive *p)
{
    for (size_t i = 0; i < n->count; i++) {
        if (n->primitive[i] == p) {
            return i;
        }
    }
    if (n->count < NAMES_MAX) {
        n->primitive[n->count++] = p;
        return n->count - 1;
    }
    return NAMES_MAX;
}

/* Return: the primitive that also runs the op behind @op, if that is before @end; NULL. */
static const struct krn_primitive *pair_at(const struct krn_net *net, size_t kind, size_t op,
                                           size_t end)
{
    return op + 1 < end ? krn_net_chosen_fused(net, kind, op) : NULL;
}

struct text {
    char *to;
    size_t bytes;
};

/* Adds the kind @k of the choice. Return: it is there as a whole. */
static bool add_kind(const struct text *t, const struct dmn_kept_choice *choice, size_t k,
                     const struct krn_net *net, size_t first, size_t end)
{
    size_t kind = krn_net_kind(net, choice->kind[k].name);
    const double *op_ns = choice->kind[k].op_ns;
    struct names names = {0};
    bool listed = true, fits;

    for (size_t i = first; i < end; i++) {
        const struct krn_primitive *fused = pair_at(net, kind, i, end);

        listed &= number_of(&names, krn_net_chosen(net, kind, i)) < NAMES_MAX;
        listed &= !fused || number_of(&names, fused) < NAMES_MAX;
    }
    fits = base_append(t->to, t->bytes, "%s%016" PRIx64 " ", t->to[0] ? ";" : "",
                       choice->kind[k].class);
    for (size_t n = 0; n < names.count; n++) {
        fits &= base_append(t->to, t->bytes, "%s%s", n ? "," : "", names.primitive[n]->name);
    }
    for (size_t i = first; i < end && listed && fits; i++) {
        const struct krn_primitive *fused = pair_at(net, kind, i, end);

        fits =
            base_append(t->to, t->bytes, " %zu", number_of(&names, krn_net_chosen(net, kind, i)));
        if (fused) {
            fits &= base_append(t->to, t->bytes, "+%zu", number_of(&names, fused));
        }
        if (op_ns && op_ns[i] >= 1 && op_ns[i] < NS_MAX) {
            fits &= base_append(t->to, t->bytes, ":%.0f", op_ns[i]);
        }
    }
    return listed && fits;
}

void dmn_choice_text(const struct dmn_kept_choice *k, const struct krn_net *net, size_t first_op,
                     size_t end_op, char *ret, size_t bytes)
{
    ret[0] = '\0';
    for (size_t i = 0; i < k->count; i++) {
        size_t before = strlen(ret);

        if (!add_kind(&(struct text){ret, bytes}, k, i, net, first_op, end_op)) {
            ret[before] = '\0';
        }
    }
}

uint32_t dmn_choice_digest(const struct dmn_kept_choice *k, const struct krn_net *net)
{
    size_t count = krn_net_model(net)->op_count;
    uint64_t h = DMN_CHOOSE_MIX_START;

    for (size_t i = 0; i < k->count; i++) {
        size_t kind = krn_net_kind(net, k->kind[i].name);

        for (size_t op = 0; op < count; op++) {
            const struct krn_primitive *fused = pair_at(net, kind, op, count);

            h = dmn_choose_mix(h, krn_net_chosen(net, kind, op)->name);
            h = dmn_choose_mix(h, fused ? fused->name : "");
        }
    }
    return (uint32_t)(h >> 32 ^ h);
}

/* ---- at a board that serves a segment ---- */

/* Reads a number up to @max at *@at, which is set behind it. */
static bool read_number(char **at, double max, double *ret)
{
    size_t digits = strspn(*at, "0123456789");

    *ret = digits > 0 && digits <= 15 ? strtod(*at, NULL) : -1;
    *at += digits;
    return *ret >= 0 && *ret <= max;
}

/* Reads "OWN+FUSED:NS" of op @i. Return: false: not so, or a primitive cannot run here. */
static bool read_op(char *word, const struct names *names, const struct mdl_model *m, size_t i,
                    struct krn_chosen *ret)
{
    double own, fused = -1, ns = 0, max = (double)names->count - 1;

    if (!read_number(&word, max, &own) ||
        (*word == '+' && (word++, !read_number(&word, max, &fused))) ||
        (*word == ':' && (word++, !read_number(&word, NS_MAX, &ns))) || *word) {
        return false;
    }
    ret->choice.own[i] = names->primitive[(size_t)own];
    ret->choice.fused[i] = fused < 0 ? NULL : names->primitive[(size_t)fused];
    ret->op_ns[i] = ns;
    ret->ns += ns;
    return !ret->choice.own[i]->fused && krn_usable(ret->choice.own[i], m, i) &&
           (fused < 0 || (ret->choice.fused[i]->fused && krn_usable(ret->choice.fused[i], m, i) &&
                          !(i > 0 && ret->choice.fused[i - 1])));
}

static bool read_names(char *list, struct names *ret)
{
    for (char *name; (name = strsep(&list, ",")) != NULL;) {
        const struct krn_primitive *p = krn_primitive_find(name);

        if (!p || ret->count == NAMES_MAX) {
            return false;
        }
        ret->primitive[ret->count++] = p;
    }
    return ret->count > 0;
}

/* Reads what follows the class of a kind. Ops of the segment alone, which copy, are as the static
 * order has them. Return: false: not for this segment and this CPU. */
static bool read_kind(char *text, const struct mdl_model *m, struct krn_chosen *ret)
{
    struct names names = {0};
    char *list = strsep(&text, " "), *word;
    size_t op = mdl_segment_copies(m), first = op;

    if (!read_names(list, &names)) {
        return false;
    }
    for (; (word = strsep(&text, " ")) != NULL; op++) {
        if (op >= m->op_count || !read_op(word, &names, m, op, ret)) {
            return false;
        }
    }
    for (size_t i = op; i < m->op_count; i++) {
        if (m->ops[i].kind != MDL_OP_COPY) {
            return false;
        }
    }
    return op > first;
}

static bool is_class(const char *text, uint64_t class)
{
    char wanted[24];

    snprintf(wanted, sizeof(wanted), "%016" PRIx64 " ", class);
    return class != 0 && strncmp(text, wanted, strlen(wanted)) == 0;
}

/* Finds a kind in the text. Return: as dmn_choose_given(). */
static int take(const char *given, uint64_t class, const struct mdl_model *m,
                struct krn_chosen *ret)
{
    base_autofree char *copy = strdup(given);
    char *rest = copy, *kind;
    bool found = false;

    *ret = KRN_CHOSEN_NULL;
    if (!copy || krn_choice_prefer(m, NULL, &ret->choice) < 0 ||
        !(ret->op_ns = calloc(m->op_count + 1, sizeof(*ret->op_ns)))) {
        krn_chosen_deinit(ret);
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->op_count; i++) {
        ret->choice.fused[i] = NULL;
    }
    while (!found && (kind = strsep(&rest, ";")) != NULL) {
        found = is_class(kind, class) && read_kind(kind + 17, m, ret);
    }
    if (!found) {
        krn_chosen_deinit(ret);
    }
    return found ? 0 : DMN_CHOOSE_E_OTHER_CLASS;
}

int dmn_choose_given(struct dmn_choose *c, const struct mdl_model *m)
{
    int r = 0;

    for (size_t k = 0; r == 0 && k < c->kind_count; k++) {
        if (c->kinds[k].same == k) {
            r = take(c->given, c->kinds[k].class, m, &c->of[k]);
        }
    }
    for (size_t k = 0; r != 0 && k < c->kind_count; k++) {
        krn_chosen_deinit(&c->of[k]);
    }
    return r;
}
