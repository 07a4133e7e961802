/* SPDX-License-Identifier: Apache-2.0 */
#include "model/open_shapes.h"

#include "base/tensor_name.h"
#include "model/common/private.h"

/* ---- reading ---- */

/* Reads "1x3x480x640" up to the end or a comma. Return: what follows; NULL: not dimensions. */
static const char *read_dims(const char *text, struct mdl_shape *ret)
{
    ret->count = 0;
    for (;;) {
        int64_t v = 0;
        size_t digits = 0;

        for (; *text >= '0' && *text <= '9' && v <= INT32_MAX; text++, digits++) {
            v = 10 * v + (*text - '0');
        }
        if (digits == 0 || v < 1 || v > INT32_MAX || ret->count == MDL_RANK_MAX) {
            return NULL;
        }
        ret->dim[ret->count++] = v;
        if (*text != 'x') {
            return *text == '\0' || *text == ',' ? text : NULL;
        }
        text++;
    }
}

/* Reads NAME=DIMS. A name may contain '=' and ',': it ends where dimensions follow. */
static const char *read_one(const char *text, size_t *ret_name_bytes, struct mdl_shape *ret)
{
    if (*text == ',') {
        return NULL;
    }
    for (const char *equals = strchr(text, '='); equals; equals = strchr(equals + 1, '=')) {
        const char *after = read_dims(equals + 1, ret);

        if (after && equals > text) {
            *ret_name_bytes = (size_t)(equals - text);
            return after;
        }
    }
    return NULL;
}

static struct mdl_shape *new_shape(struct mdl_shapes *s, size_t max, struct mdl_pool *pool)
{
    if (!s->list) {
        s->list = mdl_pool_alloc(pool, max, sizeof(*s->list));
    }
    return s->list && s->count < max ? &s->list[s->count++] : NULL;
}

int mdl_shapes_parse(const char *text, struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX],
                     struct mdl_shapes *ret)
{
    struct mdl_shapes out = {0};

    while (*text) {
        struct mdl_shape shape = {0}, *to;
        size_t bytes = 0;
        const char *after = read_one(text, &bytes, &shape);

        if (!after || (*after == ',' && after[1] == '\0')) {
            return mdl_fail(ret_error, -EBADMSG,
                            "'%.120s' is not a shape; write INPUT=1x3x480x640, or the name of an "
                            "open dimension and its size, as in height=480",
                            text);
        }
        if (out.count == MDL_SHAPES_MAX) {
            return mdl_fail(ret_error, -EBADMSG, "more than %u shapes", MDL_SHAPES_MAX);
        }
        to = new_shape(&out, MDL_SHAPES_MAX, pool);
        shape.name = mdl_pool_strndup(pool, text, bytes);
        if (!to || !shape.name) {
            return mdl_fail(ret_error, -ENOMEM, "out of memory");
        }
        *to = shape;
        text = *after == ',' ? after + 1 : after;
    }
    *ret = out;
    return 0;
}

int mdl_shapes_check(const char *text, char ret_error[MDL_ERROR_MAX])
{
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_shapes parsed;

    return mdl_pool_new(0, &pool) < 0 ? mdl_fail(ret_error, -ENOMEM, "out of memory")
                                      : mdl_shapes_parse(text, pool, ret_error, &parsed);
}

static bool read_json_dims(const json_t *v, struct mdl_shape *ret)
{
    ret->count = json_is_array(v) ? json_array_size(v) : 1;
    if (ret->count == 0 || ret->count > MDL_RANK_MAX) {
        return false;
    }
    for (size_t i = 0; i < ret->count; i++) {
        const json_t *n = json_is_array(v) ? json_array_get(v, i) : v;

        ret->dim[i] = json_integer_value(n);
        if (!json_is_integer(n) || ret->dim[i] < 1 || ret->dim[i] > INT32_MAX) {
            return false;
        }
    }
    return true;
}

int mdl_shapes_read(const json_t *object, struct mdl_pool *pool, char ret_error[MDL_ERROR_MAX],
                    struct mdl_shapes *ret)
{
    struct mdl_shapes out = {0};
    const char *name;
    json_t *value;

    if (!json_is_object(object) || json_object_size(object) > MDL_SHAPES_MAX) {
        return mdl_fail(ret_error, -EBADMSG, "must be an object of at most %u shapes",
                        MDL_SHAPES_MAX);
    }
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        struct mdl_shape *to = new_shape(&out, MDL_SHAPES_MAX, pool);

        if (!to || !(to->name = mdl_pool_strdup(pool, name))) {
            return mdl_fail(ret_error, -ENOMEM, "out of memory");
        }
        if (!name[0] || !read_json_dims(value, to)) {
            return mdl_fail(ret_error, -EBADMSG,
                            "'%.80s' must be a size, or a list of 1 to %u sizes, each 1 or more",
                            name, MDL_RANK_MAX);
        }
    }
    *ret = out;
    return 0;
}

char *mdl_shapes_text(const json_t *object, char ret_error[MDL_ERROR_MAX])
{
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_shapes shapes = {0};
    size_t bytes = 1;
    char *text;

    if (mdl_pool_new(0, &pool) < 0 ||
        (object && mdl_shapes_read(object, pool, ret_error, &shapes) < 0)) {
        return NULL;
    }
    for (size_t i = 0; i < shapes.count; i++) {
        bytes += strlen(shapes.list[i].name) + 2 + 12 * shapes.list[i].count;
    }
    text = calloc(bytes, 1);
    for (size_t i = 0; text && i < shapes.count; i++) {
        const struct mdl_shape *s = &shapes.list[i];

        base_append(text, bytes, "%s%s=", i ? "," : "", s->name);
        for (size_t k = 0; k < s->count; k++) {
            base_append(text, bytes, "%s%lld", k ? "x" : "", (long long)s->dim[k]);
        }
    }
    return text;
}

/* Return: whether @text is a list of shapes. */
static bool is_shapes(const char *text)
{
    struct mdl_shape shape;
    size_t bytes;

    while (text && *text) {
        text = read_one(text, &bytes, &shape);
        if (text && *text == '\0') {
            return true;
        }
        text = text ? text + 1 : NULL;
    }
    return false;
}

const char *mdl_shapes_suffix(const char *text)
{
    const char *found = NULL, *colon = access(text, F_OK) == 0 ? NULL : strchr(text, ':');
    int most = 0;

    for (; colon; colon = strchr(colon + 1, ':')) {
        base_autofree char *file = strndup(text, (size_t)(colon - text));
        bool fits = colon > text && is_shapes(colon + 1);
        bool there = file && access(file, F_OK) == 0 && (fits || !strchr(colon, '/'));

        if (colon[1] && 2 * there + fits > most) {
            most = 2 * there + fits;
            found = colon + 1;
        }
    }
    return found;
}

/* ---- settling ---- */

char *mdl_shape_format(const struct mdl_gvalue *v, char *ret, size_t bytes)
{
    snprintf(ret, bytes, "%s", v->typed ? "[" : "of unknown shape");
    for (size_t k = 0; v->typed && k < v->rank; k++) {
        const char *comma = k ? ", " : "";

        if (v->dim[k] >= 0) {
            base_append(ret, bytes, "%s%lld", comma, (long long)v->dim[k]);
        } else {
            base_append(ret, bytes, "%s%.30s", comma, v->symbol[k] ? v->symbol[k] : "?");
        }
    }
    base_append(ret, bytes, "%s", v->typed ? "]" : "");
    return ret;
}

int mdl_settle_begin(struct mdl_settling *s, struct mdl_graph *g, char *error)
{
    *s = (struct mdl_settling){.g = g, .error = error};
    s->dims = mdl_pool_alloc(g->pool, g->input_count, sizeof(*s->dims));
    return s->dims ? 0 : mdl_fail(error, -ENOMEM, "out of memory");
}

/* Sets a dimension. A size that was given with more right stays. */
static int set_dim(struct mdl_settling *s, size_t i, size_t k, int64_t size,
                   enum mdl_shapes_from from)
{
    struct mdl_gvalue *v = &s->g->inputs[i];
    uint8_t by = s->dims[i].by[k];

    if (v->dim[k] < 0) {
        v->dim[k] = size;
        s->dims[i].by[k] = (uint8_t)from;
        return 0;
    }
    if (v->dim[k] == size || (by != 0 && by < from)) {
        return 0;
    }
    if (by != 0) {
        return mdl_fail(s->error, -EBADMSG,
                        "dimension %zu of input '%.80s' is given twice: as %lld and as %lld", k,
                        v->name, (long long)v->dim[k], (long long)size);
    }
    return mdl_fail(s->error, -EBADMSG,
                    "input '%.80s' has %lld in dimension %zu, which is not open; %lld was given",
                    v->name, (long long)v->dim[k], k, (long long)size);
}

/* Sets the dimensions of that name. Return: how many there are, or -errno. */
static int set_named(struct mdl_settling *s, const char *symbol, int64_t size,
                     enum mdl_shapes_from from)
{
    int found = 0;

    for (size_t i = 0; i < s->g->input_count; i++) {
        const struct mdl_gvalue *v = &s->g->inputs[i];

        for (size_t k = 0; v->typed && k < v->rank; k++) {
            if (v->symbol[k] && strcmp(v->symbol[k], symbol) == 0) {
                int r = set_dim(s, i, k, size, from);

                if (r < 0) {
                    return r;
                }
                found = 1;
            }
        }
    }
    return found;
}

static int set_input(struct mdl_settling *s, size_t i, const struct mdl_shape *shape,
                     enum mdl_shapes_from from)
{
    struct mdl_gvalue *v = &s->g->inputs[i];
    char has[200];
    int r = 0;

    if (!v->typed && v->has_dtype) { /* the file gives no rank either */
        v->typed = true;
        v->rank = shape->count;
        for (size_t k = 0; k < v->rank; k++) {
            v->dim[k] = -1;
        }
    }
    if (v->rank != shape->count) {
        return mdl_fail(s->error, -EBADMSG,
                        "input '%.80s' is %s, of %zu dimensions; a shape of %zu was given", v->name,
                        mdl_shape_format(v, has, sizeof(has)), v->rank, shape->count);
    }
    for (size_t k = 0; r == 0 && k < v->rank; k++) {
        r = set_dim(s, i, k, shape->dim[k], from);
    }
    return r;
}

static int no_such(struct mdl_settling *s, const struct mdl_shape *shape)
{
    char inputs[300] = "";

    for (size_t i = 0; i < s->g->input_count && i < 4; i++) {
        char has[120];

        base_append(inputs, sizeof(inputs), "%s'%.60s' %s", i ? ", " : "", s->g->inputs[i].name,
                    mdl_shape_format(&s->g->inputs[i], has, sizeof(has)));
    }
    return mdl_fail(s->error, -EBADMSG,
                    "shape '%.80s': there is no input%s of that name; the inputs are %s",
                    shape->name, shape->count == 1 ? " and no open dimension" : "", inputs);
}

int mdl_settle(struct mdl_settling *s, const struct mdl_shapes *shapes, enum mdl_shapes_from from)
{
    for (size_t n = 0; n < shapes->count; n++) {
        const struct mdl_shape *shape = &shapes->list[n];
        int found = shape->count == 1 ? set_named(s, shape->name, shape->dim[0], from) : 0;

        for (size_t i = 0; found == 0 && i < s->g->input_count; i++) {
            if (tensor_same(s->g->inputs[i].name, shape->name)) {
                int r = set_input(s, i, shape, from);

                found = r < 0 ? r : 1;
            }
        }
        if (found <= 0) {
            return found < 0 ? found : no_such(s, shape);
        }
    }
    return 0;
}

int mdl_settle_size(struct mdl_settling *s, size_t height, size_t width, bool nhwc)
{
    struct mdl_gvalue *v = s->g->input_count ? &s->g->inputs[0] : NULL;
    size_t at = nhwc ? 1 : 2;
    int64_t want[2] = {(int64_t)height, (int64_t)width};

    if (!v || !v->typed || v->rank != 4) {
        return mdl_fail(s->error, -EBADMSG,
                        "sidecar key 'size': the model's first input is not an image");
    }
    for (size_t i = 0; i < 2; i++) {
        uint8_t by = s->dims[0].by[at + i];

        if (v->dim[at + i] < 0) {
            int r = set_dim(s, 0, at + i, want[i], MDL_SHAPES_SIZE);

            if (r < 0) {
                return r;
            }
        } else if (v->dim[at + i] != want[i] && (by == 0 || by == MDL_SHAPES_SIZE)) {
            return mdl_fail(s->error, -EBADMSG,
                            "sidecar key 'size': %lld where input '%.80s' has %lld (dimension %zu)",
                            (long long)want[i], v->name, (long long)v->dim[at + i], at + i);
        }
    }
    return 0;
}

/* Which dimensions of an input are open, and what to write. */
static int still_open(const struct mdl_settling *s, const struct mdl_gvalue *v)
{
    char has[160], open[100] = "", list[100] = "";
    size_t unnamed = 0;

    for (size_t k = 0; k < v->rank; k++) {
        if (v->dim[k] >= 0) {
            base_append(list, sizeof(list), "%s%lld", k ? "x" : "", (long long)v->dim[k]);
            continue;
        }
        base_append(list, sizeof(list), "%sN", k ? "x" : "");
        base_append(open, sizeof(open), "%s%.30s", open[0] ? ", " : "",
                    v->symbol[k] ? v->symbol[k] : "number ");
        if (!v->symbol[k]) {
            base_append(open, sizeof(open), "%zu", k);
            unnamed++;
        }
    }
    return mdl_fail(s->error, -EOPNOTSUPP,
                    "input '%.60s' is %.120s: open dimensions: %s; give their sizes, by "
                    "--shape %.60s=%s of pipectl, FILE:%.60s=%s of piped --model, or \"shapes\" "
                    "in the sidecar or the configuration%s",
                    v->name, mdl_shape_format(v, has, sizeof(has)), open, v->name, list, v->name,
                    list, unnamed ? "" : ", where their own names do, too");
}

int64_t mdl_symbol_size(const struct mdl_graph *g, const struct mdl_settled *dims,
                        const char *symbol)
{
    int64_t size = -1;

    for (size_t i = 0; i < g->input_count; i++) {
        const struct mdl_gvalue *v = &g->inputs[i];

        for (size_t k = 0; v->typed && k < v->rank; k++) {
            if ((!dims || dims[i].by[k]) && v->symbol[k] && strcmp(v->symbol[k], symbol) == 0) {
                if (size >= 0 && size != v->dim[k]) {
                    return -1;
                }
                size = v->dim[k];
            }
        }
    }
    return size;
}

/* Settles what is open by what has the same symbol. */
static void spread(struct mdl_settling *s)
{
    for (size_t i = 0; i < s->g->input_count; i++) {
        struct mdl_gvalue *v = &s->g->inputs[i];

        for (size_t k = 0; v->typed && k < v->rank; k++) {
            if (v->dim[k] < 0 && v->symbol[k]) {
                v->dim[k] = mdl_symbol_size(s->g, s->dims, v->symbol[k]);
                s->dims[i].by[k] = v->dim[k] < 0 ? 0 : MDL_SHAPES_SPREAD;
            }
        }
    }
}

/* Return: whether the first dimension of @v is a batch: no other has its symbol. */
static bool is_batch(const struct mdl_gvalue *v)
{
    for (size_t k = 1; v->symbol[0] && k < v->rank; k++) {
        if (v->symbol[k] && strcmp(v->symbol[0], v->symbol[k]) == 0) {
            return false;
        }
    }
    return true;
}

/* FNV-1a over which dimensions were given, and their sizes. */
static uint64_t digest(const struct mdl_settling *s)
{
    uint64_t d = 0xcbf29ce484222325u;
    bool any = false;

    for (size_t i = 0; i < s->g->input_count; i++) {
        for (size_t k = 0; k < s->g->inputs[i].rank; k++) {
            uint64_t words[3] = {i, k, (uint64_t)s->g->inputs[i].dim[k]};

            if (s->dims[i].by[k] == 0 || s->dims[i].by[k] > MDL_SHAPES_SIZE) {
                continue;
            }
            any = true;
            for (size_t w = 0; w < base_array_count(words); w++) {
                d = (d ^ words[w]) * 0x100000001b3u;
            }
        }
    }
    return any ? d | 1 : 0;
}

int mdl_settle_end(struct mdl_settling *s, uint64_t *ret_digest)
{
    const struct mdl_graph *g = s->g;
    int r = 0;

    spread(s);
    for (size_t i = 0; i < g->input_count; i++) {
        struct mdl_gvalue *v = &g->inputs[i];

        if (v->typed && v->rank > 0 && v->dim[0] < 0) {
            v->dim[0] = 1;
            s->dims[i].by[0] = is_batch(v) ? MDL_SHAPES_BATCH : 0;
        }
    }
    spread(s);
    for (size_t i = 0; r == 0 && i < g->input_count; i++) {
        const struct mdl_gvalue *v = &g->inputs[i];

        for (size_t k = 0; r == 0 && v->typed && k < v->rank; k++) {
            r = v->dim[k] < 0 ? still_open(s, v) : 0;
        }
    }
    *ret_digest = r == 0 ? digest(s) : 0;
    return r;
}
