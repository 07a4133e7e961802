/* SPDX-License-Identifier: Apache-2.0 */
/* Does a network have outputs of these names and shapes? */
#include "model/recipes.h"

struct matching {
    const struct mdl_signs *signs;
    int64_t size['z' + 1]; /* of a letter; 0: not known yet */
    bool shown;            /* a name, or a dimension behind the batch, is not open */
    struct mdl_match *to;
};

/* An item of a pattern; name and dims point into it. */
struct item {
    unsigned role;
    const char *name, *dims;
    size_t name_bytes;
    char type; /* 'f', 'i'; '\0': any */
    bool more; /* not an item but "..." */
};

/* Reads the item at @s. Return: what follows. */
static const char *read_item(const char *s, struct item *ret)
{
    size_t word;

    *ret = (struct item){.role = OUTPUT_AS_BOXES, .more = strncmp(s, "...", 3) == 0};
    if (ret->more) {
        return s + 3;
    }
    word = strcspn(s, ":[");
    if (s[word] == ':') {
        for (unsigned r = 0; output_role_words[r]; r++) {
            if (strncmp(output_role_words[r], s, word) == 0 && !output_role_words[r][word]) {
                ret->role = r;
            }
        }
        s += word + 1;
    }
    ret->name = s;
    ret->name_bytes = strcspn(s, "[");
    ret->dims = s + ret->name_bytes + 1;
    s = strchr(s, ']') + 1;
    ret->type = *s == 'f' || *s == 'i' ? *s++ : '\0';
    return s + strspn(s, " ");
}

/* ---- dimensions ---- */

static int64_t cells(const struct mdl_guess *g, size_t first, size_t last)
{
    size_t sum = 0;

    for (size_t s = first; s <= last; s *= 2) {
        sum += ((g->height + s - 1) / s) * ((g->width + s - 1) / s);
    }
    return (int64_t)sum;
}

/* Return: whether the picture has @rows cells at some strides, at @anchors a cell. */
static bool is_cells(struct matching *m, int64_t rows, int64_t anchors)
{
    static const struct {
        size_t first, last;
    } usual[] = {{8, 32}, {8, 64}, {4, 32}, {16, 32}, {8, 16}, {4, 64}, {8, 128}};
    const struct mdl_guess *g = &m->signs->guess;

    for (size_t i = 0; i < base_array_count(usual) && g->height && g->width; i++) {
        if (rows == anchors * cells(g, usual[i].first, usual[i].last)) {
            m->to->stride_count = 0;
            for (size_t s = usual[i].first; s <= usual[i].last; s *= 2) {
                m->to->stride[m->to->stride_count++] = s;
            }
            return true;
        }
    }
    return false;
}

/* @size: -1: open. */
static bool dim_fits(struct matching *m, char letter, int64_t size)
{
    if (size < 0) {
        return true;
    }
    switch (letter) {
    case 'g':
        return is_cells(m, size, 1);
    case 'r':
        return is_cells(m, size, 2);
    case 't':
        return is_cells(m, size, 3);
    case 'k':
        return m->signs->labels > 0 && size == (int64_t)m->signs->labels + 4;
    default:
        if (m->size[(unsigned char)letter] == 0) {
            m->size[(unsigned char)letter] = size;
        }
        return m->size[(unsigned char)letter] == size;
    }
}

static bool dims_fit(struct matching *m, const char *s, const int64_t *dim, size_t rank)
{
    size_t k = 0;

    for (; *s != ']'; k++, s += *s == ',') {
        char *end;
        int64_t number = strtoll(s, &end, 10);
        bool is_number = end != s;

        if (k == rank || (is_number && dim[k] != number && dim[k] >= 0) ||
            (!is_number && !dim_fits(m, *s, dim[k]))) {
            return false;
        }
        m->shown |= k > 0 && dim[k] >= 0;
        if (m->to->count == 0 && strchr("grt", *s)) {
            m->to->cells_dim = k;
        }
        s = is_number ? end : s + 1;
    }
    return k == rank;
}

/* ---- outputs ---- */

/* Names of TensorFlow may end in ":0". */
static bool is_named(const struct item *it, const char *name)
{
    size_t n = it->name_bytes;

    return n == 0 || (strncmp(name, it->name, n) == 0 && (!name[n] || name[n] == ':'));
}

static bool output_fits(struct matching *m, const struct item *it, const struct mdl_gvalue *v)
{
    struct matching before = *m;

    if (!is_named(it, v->name) ||
        (it->type && v->has_dtype && (v->dtype == MDL_F32) != (it->type == 'f'))) {
        return false;
    }
    m->shown |= it->name_bytes > 0;
    if (v->typed ? dims_fit(m, it->dims, v->dim, v->rank) : it->name_bytes > 0) {
        return true;
    }
    *m = before;
    return false;
}

bool mdl_match_outputs(const struct mdl_signs *s, const char *pattern, struct mdl_match *ret)
{
    struct matching m = {.signs = s, .to = ret};
    size_t count = base_min(s->output_count, (size_t)MDL_SIGN_OUTPUTS_MAX);
    bool used[MDL_SIGN_OUTPUTS_MAX] = {false}, more = false;

    *ret = (struct mdl_match){0};
    m.size['h'] = (int64_t)s->guess.height;
    m.size['w'] = (int64_t)s->guess.width;
    while (*pattern) {
        struct item it;
        size_t o = 0;

        pattern = read_item(pattern, &it);
        if (it.more) {
            more = true;
            break;
        }
        while (o < count && (used[o] || !output_fits(&m, &it, &s->outputs[o].v))) {
            o++;
        }
        if (o == count) {
            return false;
        }
        used[o] = true;
        ret->of[ret->count].role = it.role;
        ret->of[ret->count++].output = o;
    }
    return m.shown && (more || ret->count == s->output_count);
}

bool mdl_match_input(const struct mdl_signs *s, const char *pattern)
{
    const struct mdl_guess *g = &s->guess;
    struct mdl_match ignored = {0};
    struct matching m = {.signs = s, .to = &ignored};
    int64_t dim[] = {(int64_t)g->channels, (int64_t)g->height, (int64_t)g->width};

    return g->picture && dims_fit(&m, pattern + 1, dim, 3);
}
