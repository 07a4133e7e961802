/* SPDX-License-Identifier: Apache-2.0 */
#include "model/declared.h"

#include <string.h>

#include "base.h"
#include "model/common/pool.h"
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

/* Along a counted dimension the model has the most rows, and the file may say what it likes. */
bool mdl_is_declared(const struct mdl_model *m, size_t i, const struct mdl_gvalue *declared)
{
    struct mdl_gvalue served = mdl_served_output(m, i);

    if (declared->has_dtype && declared->dtype != served.dtype) {
        return false;
    }
    if (!declared->typed) {
        return true;
    }
    if (declared->rank != served.rank) {
        return false;
    }
    for (size_t k = 0; k < served.rank; k++) {
        bool counted = m->outputs[i].rows_output && m->outputs[i].rows_dim == k;

        if (declared->dim[k] >= 0 && declared->dim[k] != served.dim[k] && !counted) {
            return false;
        }
    }
    return true;
}

static const char *describe(const struct mdl_gvalue *v, char *shape)
{
    return v->typed ? mdl_shape_format(v, shape, SHAPE_MAX) : "";
}

int mdl_note_unlike(struct mdl_model *m, const struct mdl_graph *g)
{
    size_t count = 0;
    const char *text = "";

    for (size_t i = 0; i < g->output_count && i < m->output_count; i++) {
        const struct mdl_gvalue *declared = &g->outputs[i];
        struct mdl_gvalue served = mdl_served_output(m, i);
        char ours[SHAPE_MAX], theirs[SHAPE_MAX];

        if (mdl_is_declared(m, i, declared) || count++ >= NAMED_MAX) {
            continue;
        }
        text = mdl_pool_printf(
            m->private->pool, "%s%soutput %s is %s %s, and the file declares %s %s", text,
            text[0] ? "; " : "", served.name, mdl_dtype_name(served.dtype), describe(&served, ours),
            mdl_dtype_name(declared->dtype), describe(declared, theirs));
        if (!text) {
            return -ENOMEM;
        }
    }
    if (count > NAMED_MAX) {
        text = mdl_pool_printf(m->private->pool, "%s; and %zu more", text, count - NAMED_MAX);
    }
    if (text && count) {
        mdl_add_note(m, text);
    }
    return text ? 0 : -ENOMEM;
}

const char *mdl_note(const struct mdl_model *m, size_t i)
{
    return m->private && i < m->private->note_count ? m->private->notes[i] : NULL;
}
