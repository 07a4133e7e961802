/* SPDX-License-Identifier: Apache-2.0 */
#include "model/declared.h"

#include "model/common/private.h"
#include "model/open_shapes.h"

#define SHAPE_MAX 256u
#define NAMED_MAX 3u /* outputs that the text names */

struct mdl_gvalue mdl_served_output(const struct mdl_model *m, size_t i)
{
    const struct mdl_tensor *t = &m->tensors[m->outputs[i].tensor];
    struct mdl_gvalue v = {.name = m->outputs[i].name,
                           .typed = true,
                           .has_dtype = true,
                           .dtype = t->dtype,
                           .rank = t->rank};

    for (size_t k = 0; k < t->rank; k++) {
        v.dim[k] = (int64_t)t->dim[k];
    }
    return v;
}

static bool fits(const struct mdl_gvalue *served, const struct mdl_gvalue *declared)
{
    if (declared->has_dtype && declared->dtype != served->dtype) {
        return false;
    }
    if (!declared->typed) {
        return true;
    }
    if (declared->rank != served->rank) {
        return false;
    }
    for (size_t k = 0; k < served->rank; k++) {
        if (declared->dim[k] >= 0 && declared->dim[k] != served->dim[k]) {
            return false;
        }
    }
    return true;
}

static const char *describe(const struct mdl_gvalue *v, char *shape)
{
    return v->typed ? mdl_shape_format(v, shape, SHAPE_MAX) : "";
}

/* Keeps what the file declares of output @i. *text: of those before; they were @count. */
static int note_one(struct mdl_model *m, size_t i, const struct mdl_gvalue *declared, size_t count,
                    const char **text)
{
    struct mdl_pool *pool = m->private->pool;
    struct mdl_gvalue served = mdl_served_output(m, i);
    const char *type = mdl_dtype_name(declared->dtype), *ours = mdl_dtype_name(served.dtype);
    bool other_type = declared->has_dtype && declared->dtype != served.dtype;
    char is[SHAPE_MAX], theirs[SHAPE_MAX] = "";
    const char *shape = describe(declared, theirs);

    m->private->declared[i] = mdl_pool_printf(pool, "%s%s%s", other_type ? type : "",
                                              other_type && shape[0] ? " " : "", shape);
    if (count < NAMED_MAX) {
        *text = mdl_pool_printf(pool, "%s%soutput %s is %s%s %s, and the file declares %s %s",
                                *text, *text[0] ? "; " : "", served.name,
                                m->outputs[i].rows_output ? "at most " : "", ours,
                                describe(&served, is), type, shape);
    }
    return m->private->declared[i] && *text ? 0 : -ENOMEM;
}

int mdl_note_unlike(struct mdl_model *m, const struct mdl_graph *g)
{
    size_t count = 0;
    const char *text = "";
    int r = 0;

    m->private->declared = mdl_pool_alloc(m->private->pool, m->output_count, sizeof(char *));
    if (!m->private->declared) {
        return -ENOMEM;
    }
    for (size_t i = 0; r == 0 && i < g->output_count && i < m->output_count; i++) {
        struct mdl_gvalue declared = g->outputs[i], served = mdl_served_output(m, i);

        for (size_t k = 0; declared.typed && k < declared.rank; k++) {
            if (declared.dim[k] < 0 && declared.symbol[k]) {
                declared.dim[k] = mdl_symbol_size(g, NULL, declared.symbol[k]);
            }
        }
        if (!fits(&served, &declared)) {
            r = note_one(m, i, &declared, count++, &text);
        }
    }
    if (r == 0 && count > NAMED_MAX) {
        text = mdl_pool_printf(m->private->pool, "%s; and %zu more", text, count - NAMED_MAX);
    }
    if (text && count) {
        mdl_add_note(m, "declared", text);
    }
    return r < 0 || !text ? -ENOMEM : 0;
}

const char *mdl_declared(const struct mdl_model *m, size_t i)
{
    return m->private && m->private->declared ? m->private->declared[i] : NULL;
}

const struct mdl_note *mdl_note(const struct mdl_model *m, size_t i)
{
    return m->private && i < m->private->note_count ? &m->private->notes[i] : NULL;
}
