/* SPDX-License-Identifier: Apache-2.0 */
#include "model/signs.h"

#include <ctype.h>
#include <strings.h>

#include "base/shown_text.h"
#include "model/declared.h"
#include "model/sidecar.h"
#include "model/sidecar_output.h"

#define SMALL_VECTOR 16 /* a box, five points */
#define SIDE_LARGE 320  /* classifiers take smaller pictures */

static bool is(const struct mdl_gnode *n, const char *op)
{
    return n && n->input_count > 0 && strcmp(n->op_type, op) == 0;
}

/* Return: whether Sigmoid, of a ConvTranspose and perhaps its bias, makes @output. */
static bool is_over_wide(const struct mdl_graph *g, const char *output)
{
    const struct mdl_gnode *n = mdl_graph_maker(g, output);

    if (!is(n, "Sigmoid")) {
        return false;
    }
    n = mdl_graph_maker(g, n->inputs[0]);
    if (is(n, "Add")) {
        const struct mdl_gnode *left = mdl_graph_maker(g, n->inputs[0]);

        n = left || n->input_count < 2 ? left : mdl_graph_maker(g, n->inputs[1]);
    }
    return is(n, "ConvTranspose");
}

static bool has_op(const struct mdl_graph *g, const char *op)
{
    for (size_t i = 0; i < g->node_count; i++) {
        if (strcmp(g->nodes[i].op_type, op) == 0) {
            return true;
        }
    }
    return false;
}

/* Numbers of a text such as "[640, 480]". Return: how many there are, at most @most. */
static size_t numbers(const char *text, size_t *ret, size_t most)
{
    size_t count = 0;

    for (const char *s = text ? text + strspn(text, "[( ") : ""; count < most; count++) {
        char *end;
        unsigned long v = strtoul(s, &end, 10);

        if (end == s || v == 0 || v > 1u << 14) {
            return count;
        }
        ret[count] = v;
        s = end + strspn(end, ", ");
    }
    return count;
}

/* Names that Paddle's converter gives to open dimensions, and its tensors. */
static bool is_of_paddle(const struct mdl_graph *g)
{
    bool named = strstr(g->producer ? g->producer : "", "addle") != NULL;

    for (size_t i = 0; i < g->input_count; i++) {
        for (size_t k = 0; k < g->inputs[i].rank; k++) {
            named |= g->inputs[i].symbol[k] && strstr(g->inputs[i].symbol[k], "DynamicDimension");
        }
    }
    for (size_t i = 0; i < g->output_count; i++) {
        named |= strstr(g->outputs[i].name, ".tmp_") != NULL ||
                 strncmp(g->outputs[i].name, "fetch_name_", 11) == 0;
    }
    return named;
}

static unsigned signs_of_file(const struct mdl_graph *g, const struct mdl_guess *guess)
{
    const char *producer = g->producer ? g->producer : "";
    const struct {
        bool so;
        unsigned sign;
    } all[] = {
        {g->author && strcmp(g->author, "Ultralytics") == 0, MDL_SIGN_ULTRALYTICS},
        {is_of_paddle(g), MDL_SIGN_PADDLE},
        {strstr(producer, "CNTK") != NULL, MDL_SIGN_CNTK},
        {strstr(producer, "torch") != NULL, MDL_SIGN_TORCH},
        {strstr(producer, "affe") || has_op(g, "LRN"), MDL_SIGN_CAFFE},
        {guess->nhwc || strstr(producer, "tf2onnx") || strstr(producer, "keras"), MDL_SIGN_KERAS},
        {guess->nhwc, MDL_SIGN_NHWC},
        {has_op(g, "Exp"), MDL_SIGN_EXP},
    };
    unsigned is = 0;

    for (size_t i = 0; i < base_array_count(all); i++) {
        is |= all[i].so ? all[i].sign : 0;
    }
    return is;
}

/* Classes for each pixel: the outputs are maps of the picture's size, or were enlarged last, and
 * are not a picture again. */
static bool are_maps(const struct mdl_signs *s)
{
    for (size_t i = 0; i < s->output_count && i < MDL_SIGN_OUTPUTS_MAX; i++) {
        const struct mdl_gvalue *v = &s->outputs[i].v;
        size_t rows = s->is & MDL_SIGN_NHWC ? 1 : v->rank - 2;
        bool whole = v->typed && (v->rank == 4 || (v->rank == 3 && v->dtype != MDL_F32));

        if (!whole || (v->rank == 4 && v->dim[s->is & MDL_SIGN_NHWC ? 3 : 1] == 3) ||
            (!s->outputs[i].enlarged &&
             (s->guess.open_size || v->dim[rows] != (int64_t)s->guess.height ||
              v->dim[rows + 1] != (int64_t)s->guess.width))) {
            return false;
        }
    }
    return s->guess.channels == 3 && s->output_count > 0;
}

/* Return: whether a word of @name begins as those for boxes, points, features or distances. */
static bool says_other(const char *name)
{
    static const char *const begins[] = {"box",  "bbox", "loc",   "landm", "kps",  "keyp", "pose",
                                         "feat", "embe", "depth", "dispa", "flow", "regr"};

    for (const char *s = name; *s; s++) {
        bool begin = s == name || !isalpha((unsigned char)s[-1]) ||
                     (islower((unsigned char)s[-1]) && isupper((unsigned char)*s));

        for (size_t i = 0; begin && i < base_array_count(begins); i++) {
            if (strncasecmp(s, begins[i], strlen(begins[i])) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Return: how many numbers there are if all are in one dimension, an open batch being 1; else 0. */
static int64_t vector_of(const struct mdl_gvalue *v)
{
    int64_t count = v->typed;

    for (size_t k = 0; v->typed && k < v->rank; k++) {
        int64_t size = k == 0 && v->dim[0] < 0 ? 1 : v->dim[k];

        if (size < 1 || (size > 1 && count > 1)) {
            return 0;
        }
        count *= size;
    }
    return count;
}

static bool has_other(const struct mdl_signs *s)
{
    bool small = false, differ = false, other = false;
    int64_t first = 0;

    for (size_t i = 0; i < s->output_count && i < MDL_SIGN_OUTPUTS_MAX; i++) {
        int64_t count = vector_of(&s->outputs[i].v);

        other |= says_other(s->outputs[i].v.name);
        first = first ? first : count;
        differ |= count > 0 && count != first;
        small |= count > 0 && count <= SMALL_VECTOR && !s->outputs[i].probabilities;
    }
    return other || (small && differ);
}

/* The signs that shapes of outputs give. */
static void by_shapes(struct mdl_signs *s)
{
    bool large = s->guess.picture && (s->guess.open_size || s->guess.height >= SIDE_LARGE);
    bool areas = s->output_count == 1 && s->outputs[0].over_wide;

    for (size_t i = 0; i < s->output_count && i < MDL_SIGN_OUTPUTS_MAX; i++) {
        large &= s->outputs[i].v.typed && s->outputs[i].v.rank > 2;
    }
    s->is &= ~(unsigned)(MDL_SIGN_MAPS | MDL_SIGN_LARGE | MDL_SIGN_AREAS | MDL_SIGN_OTHER);
    s->is |= (are_maps(s) ? MDL_SIGN_MAPS : 0u) | (large ? MDL_SIGN_LARGE : 0u) |
             (areas ? MDL_SIGN_AREAS : 0u) | (has_other(s) ? MDL_SIGN_OTHER : 0u);
}

static const char *kept(struct mdl_pool *pool, const char *text)
{
    return text ? mdl_pool_strdup(pool, text) : NULL;
}

void mdl_signs_read(const struct mdl_graph *g, size_t labels, struct mdl_pool *pool,
                    struct mdl_signs *ret)
{
    size_t size[2] = {0}, points[2] = {0};

    *ret = (struct mdl_signs){.labels = labels, .output_count = g->output_count};
    mdl_guess(g, &ret->guess);
    ret->is = signs_of_file(g, &ret->guess);
    ret->task = kept(pool, g->task);
    ret->characters = kept(pool, g->characters);
    size[1] = numbers(g->image_size, size, 2) == 1 ? size[0] : size[1];
    ret->height = size[0];
    ret->width = size[1];
    if (numbers(g->points, points, 2) == 2) {
        ret->points = points[0];
        ret->point_numbers = points[1];
    }
    for (size_t i = 0; i < g->output_count && i < MDL_SIGN_OUTPUTS_MAX; i++) {
        struct mdl_sign_output *o = &ret->outputs[i];
        const struct mdl_gnode *maker = mdl_graph_maker(g, g->outputs[i].name);

        o->v = g->outputs[i];
        o->v.name = kept(pool, g->outputs[i].name);
        o->v.name = o->v.name ? o->v.name : "";
        o->probabilities = mdl_ends_in_probabilities(g, g->outputs[i].name);
        o->enlarged = is(maker, "Resize") || is(maker, "Upsample");
        o->over_wide = is_over_wide(g, g->outputs[i].name);
    }
    if (ret->outputs[0].v.typed && ret->outputs[0].v.rank == 2 && ret->outputs[0].v.dim[1] > 1) {
        ret->is |= MDL_SIGN_CLASSES;
    }
    by_shapes(ret);
}

void mdl_signs_serve(struct mdl_signs *s, const struct mdl_model *m)
{
    const struct mdl_tensor *t = m->input_count ? &m->tensors[m->inputs[0].tensor] : NULL;

    for (size_t i = 0; i < m->output_count && i < MDL_SIGN_OUTPUTS_MAX; i++) {
        const char *name = s->outputs[i].v.name;

        s->outputs[i].v = mdl_served_output(m, i);
        s->outputs[i].v.name = name;
    }
    if (s->guess.picture && t && t->rank == 4) {
        s->guess.height = t->dim[s->guess.nhwc ? 1 : 2];
        s->guess.width = t->dim[s->guess.nhwc ? 2 : 3];
    }
    s->is &= ~(unsigned)MDL_SIGN_CLASSES;
    s->is |= mdl_has_classes(m) ? MDL_SIGN_CLASSES : 0u;
    by_shapes(s);
}

/* ---- names of classes ---- */

static const char *skip(const char *s)
{
    while (*s == ' ') {
        s++;
    }
    return s;
}

/* Return: what follows @c and blanks; NULL: @s is NULL or begins otherwise. */
static const char *take(const char *s, char c)
{
    return s && *s == c ? skip(s + 1) : NULL;
}

/* A name in quotes. Return: what follows; NULL: it is none. @ret: without quotes. */
static const char *take_name(const char *s, char ret[MDL_LABEL_BYTES_MAX])
{
    char quote = s ? *s : '\0';
    size_t n = 0;

    if (quote != '\'' && quote != '"') {
        return NULL;
    }
    for (s++; *s && *s != quote; s++) {
        if (*s == '\\' && !strchr("'\"\\", *++s)) {
            return NULL;
        }
        if (!*s || n + 1 == MDL_LABEL_BYTES_MAX) {
            return NULL;
        }
        ret[n++] = *s;
    }
    ret[n] = '\0';
    return *s && shown_ok((const unsigned char *)ret, n) ? skip(s + 1) : NULL;
}

/* The number of class @i and a colon. JSON has keys in quotes. */
static const char *take_key(const char *s, size_t i)
{
    char quote = *s == '\'' || *s == '"' ? *s : '\0';
    char *end;

    s += quote != '\0';
    if (!isdigit((unsigned char)*s) || strtoull(s, &end, 10) != i) {
        return NULL;
    }
    if (quote && *end++ != quote) {
        return NULL;
    }
    return take(skip(end), ':');
}

/* Return: how many names there are; 0: the text is of another form. @names: NULL: only counts. */
static size_t read_names(const char *text, struct mdl_pool *pool, char **names)
{
    bool listed = *skip(text) == '[';
    const char *s = take(skip(text), listed ? '[' : '{');
    size_t count = 0;

    while (s && count < MDL_LABELS_MAX) {
        char name[MDL_LABEL_BYTES_MAX];

        s = take_name(listed ? s : take_key(s, count), name);
        if (s && names && !(names[count] = mdl_pool_strdup(pool, name))) {
            return 0;
        }
        count++;
        if (s && *s != ',') {
            s = take(s, listed ? ']' : '}');
            return s && !*s ? count : 0;
        }
        s = take(s, ',');
    }
    return 0;
}

char **mdl_class_names(const char *text, struct mdl_pool *pool, size_t *ret_count)
{
    size_t count = read_names(text, pool, NULL);
    char **names = count ? mdl_pool_alloc(pool, count, sizeof(*names)) : NULL;

    *ret_count = names && read_names(text, pool, names) == count ? count : 0;
    return *ret_count ? names : NULL;
}
