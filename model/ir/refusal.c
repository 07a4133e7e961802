/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons for a refusal, and the sentence that sums them up. */

#include "base/base.h"
#include "model/ir/ir.h"

#define NODES_NAMED 3u

void mdl_ir_reason(struct mdl_ir *ir, const struct mdl_reason *what, const struct mdl_gnode *n,
                   const char *name)
{
    struct mdl_reasons *all = ir->reasons;
    struct mdl_reason *r;

    all->total++;
    if (all->count == MDL_REASONS_MAX) {
        return;
    }
    all->list = all->list ? all->list : calloc(MDL_REASONS_MAX, sizeof(*all->list));
    if (!all->list) {
        mdl_ir_nomem(ir);
    }
    r = &all->list[all->count++];
    *r = (struct mdl_reason){.kind = what->kind,
                             .code = what->code,
                             .version = what->version,
                             .op_type = strdup(n ? n->op_type : ""),
                             .domain = strdup(n ? n->domain : ""),
                             .node = strdup(name),
                             .text = strdup(ir->error)};
    if (!r->op_type || !r->domain || !r->node || !r->text) {
        mdl_ir_nomem(ir);
    }
}

/* ---- the sentence ---- */

struct text {
    char s[MDL_ERROR_MAX - 256]; /* the file's name comes before it */
    bool full;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds all of it or nothing. */
static void add(struct text *t, const char *format, ...)
{
    size_t before = strlen(t->s);
    va_list args;

    if (t->full) {
        return;
    }
    va_start(args, format);
    t->full = !base_vappend(t->s, sizeof(t->s), format, args);
    va_end(args);
    if (t->full) {
        t->s[before] = '\0';
    }
}

static bool same_operator(const struct mdl_reason *a, const struct mdl_reason *b)
{
    return b->kind == MDL_REASON_OPERATOR && strcmp(a->op_type, b->op_type) == 0 &&
           strcmp(a->domain, b->domain) == 0 && a->version == b->version;
}

/* "operator X is not supported (nodes a, b, c and 5 more)". Return: false: it was said before. */
static bool add_operator(struct text *t, const struct mdl_reasons *all, size_t first)
{
    const struct mdl_reason *r = &all->list[first];
    size_t count = 0;

    for (size_t i = 0; i < first; i++) {
        if (same_operator(r, &all->list[i])) {
            return false;
        }
    }
    add(t, "operator %.60s%s%.60s", r->op_type, r->domain[0] ? " of domain " : "", r->domain);
    if (r->version) {
        add(t, " as of operator set %lld", r->version);
    }
    add(t, " (");
    for (size_t i = first; i < all->count; i++) {
        if (same_operator(r, &all->list[i])) {
            count++;
            if (count <= NODES_NAMED) {
                add(t, "%s%.80s", count > 1 ? ", " : "", all->list[i].node);
            }
        }
    }
    if (count > NODES_NAMED) {
        add(t, " and %zu more", count - NODES_NAMED);
    }
    add(t, ")");
    return true;
}

/* Operators first, each once. */
static void add_operators(struct text *t, const struct mdl_reasons *all)
{
    for (size_t i = 0; i < all->count && !t->full; i++) {
        size_t before = strlen(t->s);

        if (all->list[i].kind != MDL_REASON_OPERATOR) {
            continue;
        }
        add(t, "%s", before ? "; " : "not supported: ");
        if (!add_operator(t, all, i) || t->full) {
            t->s[before] = '\0';
        }
    }
    if (t->s[0]) {
        add(t, "; docs/operators.md lists those that are");
    }
}

void mdl_ir_refuse_all(struct mdl_ir *ir)
{
    const struct mdl_reasons *all = ir->reasons;
    struct text *t;

    if (all->total == 0) {
        return;
    }
    if (all->total == 1) {
        mdl_ir_leave(ir, mdl_fail(ir->error, all->list[0].code, "%s", all->list[0].text));
    }
    t = mdl_ir_alloc(ir, 1, sizeof(*t));
    add_operators(t, all);
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].kind != MDL_REASON_OPERATOR) {
            add(t, "%s%.300s", t->s[0] ? "; " : "", all->list[i].text);
        }
    }
    mdl_ir_leave(ir, mdl_fail(ir->error, all->list[0].code, "%s%s", t->s,
                              t->full || all->total > all->count ? "; and more" : ""));
}
