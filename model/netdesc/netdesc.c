/* SPDX-License-Identifier: Apache-2.0 */
#include "model/netdesc/netdesc.h"

#include <jansson.h>

#include "base/json_text.h"
#include "base/shown_text.h"
#include "model/common/private.h"
#include "model/netdesc/layers.h"

#define OPSET 13
#define IR 7
#define NAME_BYTES_MAX 128u
#define CHANNELS_OUT_MAX ((size_t)1 << 30) /* of a flat vector */

/* ---- the list ---- */

static bool name_ok(const json_t *v)
{
    const char *s = json_string_value(v);
    size_t n = s ? json_string_length(v) : 0;

    return n > 0 && n <= NAME_BYTES_MAX && shown_ok(s, n);
}

static void check_keys(struct mdl_nd_layer *l, const struct mdl_nd_kind *kind)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)l->json, key, value)
    {
        char word[64];

        if (strcmp(key, "op") == 0 || strcmp(key, "name") == 0 || strcmp(key, "in") == 0) {
            continue;
        }
        if (snprintf(word, sizeof(word), " %s ", key) >= (int)sizeof(word) || strchr(key, ' ') ||
            !strstr(kind->keys, word)) {
            mdl_nd_refuse(l, key, "unknown key");
        }
    }
}

static void find_input(struct mdl_nd_layer *l, const json_t *name)
{
    const struct mdl_nd_value *v =
        json_is_string(name) ? mdl_nd_value_find(l->nd, json_string_value(name)) : NULL;

    if (!v) {
        mdl_nd_refuse(l, "in", "names no layer before this one");
    }
    l->in[l->in_count++] = v;
}

static void find_inputs(struct mdl_nd_layer *l, const struct mdl_nd_kind *kind)
{
    const json_t *v = json_object_get(l->json, "in");

    if (!v) {
        l->in[l->in_count++] = &l->nd->values[l->nd->value_count - 1];
    } else if (json_is_array(v)) {
        if (json_array_size(v) < 1 || json_array_size(v) > kind->inputs_max) {
            mdl_nd_refuse(l, "in", "has too few or too many names");
            return;
        }
        for (size_t i = 0; i < json_array_size(v); i++) {
            find_input(l, json_array_get(v, i));
        }
    } else {
        find_input(l, v);
    }
}

/* Makes the nodes of a layer whose kind and name are known. */
static void make_layer(struct mdl_nd_layer *l, const struct mdl_nd_kind *kind)
{
    check_keys(l, kind);
    find_inputs(l, kind);
    if (l->nd->failure < 0) {
        return;
    }
    l->value = l->in[0]->name;
    kind->make(l, kind->op_type);
    l->out.name = l->name;
    if (l->out.height > MDL_ND_SIZE_MAX || l->out.width > MDL_ND_SIZE_MAX) {
        mdl_nd_refuse(l, NULL, "the output is larger than 16384 on a side");
    }
    if (l->out.channels > CHANNELS_OUT_MAX) {
        mdl_nd_refuse(l, NULL, "the output has too many channels");
    }
    if (!mdl_nd_value_add(l->nd, &l->out)) {
        mdl_nd_refuse(l, "name", "is already taken");
    }
}

static int read_layer(struct mdl_nd *nd, const json_t *json, size_t index)
{
    struct mdl_nd_layer l = {.nd = nd, .json = json, .index = index, .op = "?", .name = ""};
    const json_t *op = json_object_get(json, "op"), *name = json_object_get(json, "name");
    const struct mdl_nd_kind *kind =
        json_is_string(op) ? mdl_nd_kind_find(json_string_value(op)) : NULL;

    if (name && !name_ok(name)) {
        return mdl_nd_refuse(&l, "name",
                             "must be a text of 1 to 128 bytes without control characters");
    }
    l.name = name ? json_string_value(name) : "";
    if (!kind) {
        return mdl_nd_refuse(&l, "op", "is missing or unknown");
    }
    l.op = kind->op;
    l.name = name ? mdl_pool_strdup(nd->graph->pool, l.name)
                  : mdl_pool_printf(nd->graph->pool, "%s%zu", kind->op, index);
    if (!l.name) {
        return mdl_fail(nd->error, -ENOMEM, "out of memory");
    }
    make_layer(&l, kind);
    if (nd->failure == -E2BIG) {
        mdl_fail(nd->error, -E2BIG, "layer %zu '%.60s': the weights are larger than %zu GiB",
                 l.index, l.name, MDL_ND_WEIGHT_BYTES_MAX >> 30);
    } else if (nd->failure == -ENOMEM) {
        mdl_fail(nd->error, -ENOMEM, "layer %zu '%.60s': out of memory", l.index, l.name);
    }
    return nd->failure;
}

static int root_fail(struct mdl_nd *nd, const char *key, const char *why)
{
    return mdl_fail(nd->error, -EBADMSG, "key '%.60s': %s", key, why);
}

static int read_input(struct mdl_nd *nd, const json_t *v)
{
    const json_t *name = json_object_get(v, "name"), *shape = json_object_get(v, "shape");
    struct mdl_nd_value value = {.name = "input"};
    size_t *sides[] = {&value.channels, &value.height, &value.width};
    struct mdl_gvalue *in = mdl_pool_alloc(nd->graph->pool, 1, sizeof(*in));

    if (!json_is_object(v) || json_object_size(v) != (name ? 2u : 1u) ||
        json_array_size(shape) != 3) {
        return root_fail(nd, "input",
                         "must have \"shape\": [channels, height, width], and may have \"name\"");
    }
    if (name && !name_ok(name)) {
        return root_fail(nd, "input", "name must have 1 to 128 bytes without control characters");
    }
    for (size_t i = 0; i < 3; i++) {
        const json_t *n = json_array_get(shape, i);
        json_int_t d = json_integer_value(n);

        if (!json_is_integer(n) || d < 1 || d > MDL_ND_SIZE_MAX) {
            return root_fail(nd, "input", "shape must be whole numbers from 1 to 16384");
        }
        *sides[i] = (size_t)d;
    }
    if (name) {
        value.name = mdl_pool_strdup(nd->graph->pool, json_string_value(name));
    }
    if (!in || !value.name || !mdl_nd_value_add(nd, &value) || nd->failure < 0) {
        return mdl_fail(nd->error, -ENOMEM, "out of memory");
    }
    *in = (struct mdl_gvalue){
        .name = value.name,
        .typed = true,
        .dtype = MDL_F32,
        .rank = 4,
        .dim = {1, (int64_t)value.channels, (int64_t)value.height, (int64_t)value.width}};
    nd->graph->inputs = in;
    nd->graph->input_count = 1;
    return 0;
}

static int read_outputs(struct mdl_nd *nd, const json_t *v)
{
    struct mdl_graph *g = nd->graph;
    size_t count = v ? json_array_size(v) : 1;

    if (count < 1 || count > MDL_ND_INPUTS_MAX) {
        return root_fail(nd, "outputs", "must be a list of 1 to 64 layer names");
    }
    g->outputs = mdl_pool_alloc(g->pool, count, sizeof(*g->outputs));
    if (!g->outputs) {
        return mdl_fail(nd->error, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(v, i));
        const struct mdl_nd_value *found = !v     ? &nd->values[nd->value_count - 1]
                                           : name ? mdl_nd_value_find(nd, name)
                                                  : NULL;

        if (!found || found == &nd->values[0]) {
            return root_fail(nd, "outputs", "names no layer");
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(g->outputs[k].name, found->name) == 0) {
                return root_fail(nd, "outputs", "names a layer twice");
            }
        }
        g->outputs[i].name = found->name;
        g->output_count++;
    }
    return 0;
}

static int read_root(struct mdl_nd *nd, const json_t *root)
{
    static const char *const known[] = {"name", "comment", "seed", "input", "layers", "outputs"};
    const json_t *layers = json_object_get(root, "layers");
    const json_t *seed = json_object_get(root, "seed"), *name = json_object_get(root, "name");
    const char *key;
    json_t *value;
    int r;

    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        bool found = false;

        for (size_t i = 0; i < base_array_count(known); i++) {
            found |= strcmp(known[i], key) == 0;
        }
        if (!found) {
            return root_fail(nd, key, "unknown key");
        }
    }
    if ((seed && !json_is_integer(seed)) || (name && !name_ok(name))) {
        return root_fail(nd, name && !name_ok(name) ? "name" : "seed", "has a wrong type or value");
    }
    nd->seed = (uint64_t)json_integer_value(seed) << 20;
    nd->graph->name = mdl_pool_strdup(nd->graph->pool, name ? json_string_value(name) : "");
    if (json_array_size(layers) < 1 || json_array_size(layers) > MDL_ND_LAYERS_MAX) {
        return root_fail(nd, "layers", "must be a list of 1 to 4096 layers");
    }
    r = read_input(nd, json_object_get(root, "input"));
    for (size_t i = 0; r == 0 && i < json_array_size(layers); i++) {
        r = read_layer(nd, json_array_get(layers, i), i);
    }
    r = r < 0 ? r : read_outputs(nd, json_object_get(root, "outputs"));
    if (r == 0) {
        r = mdl_nd_finish(nd);
        if (r < 0) {
            mdl_fail(nd->error, r, "out of memory for %zu bytes of weights",
                     nd->weight_floats * sizeof(float));
        }
    }
    return r;
}

int mdl_netdesc_read(const void *text, size_t bytes, const char *weights_dir, bool no_weights,
                     char ret_error[MDL_ERROR_MAX], struct mdl_graph **ret)
{
    mdl_autopool struct mdl_pool *pool = NULL;
    json_error_t at;
    json_auto_t *root = json_text_read(text, bytes, JSON_REJECT_DUPLICATES, &at);
    struct mdl_nd nd = {.error = ret_error, .weights_dir = weights_dir, .no_weights = no_weights};
    int r;

    ret_error[0] = '\0';
    if (!root) {
        return mdl_fail(ret_error, -EBADMSG, "line %d: %.150s", at.line, at.text);
    }
    if (!json_is_object(root)) {
        return mdl_fail(ret_error, -EBADMSG, "not a JSON object");
    }
    r = mdl_pool_new((size_t)256 << 20, &pool);
    nd.graph = r < 0 ? NULL : mdl_pool_alloc(pool, 1, sizeof(*nd.graph));
    if (!nd.graph) {
        return mdl_fail(ret_error, -ENOMEM, "out of memory");
    }
    nd.graph->pool = pool;
    nd.graph->ir_version = IR;
    nd.graph->opset = OPSET;
    r = read_root(&nd, root);
    if (r < 0) {
        return r;
    }
    *ret = nd.graph;
    pool = NULL; /* now owned by the graph */
    return 0;
}
