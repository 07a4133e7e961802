/* SPDX-License-Identifier: Apache-2.0 */
#include "model/open_shapes.h"

#include "base/base.h"
#include "tests/unit/model/load_files.h"

static char error[MDL_ERROR_MAX];

/* A dimension: fixed, open (-1), or open with a name. */
struct dim {
    int64_t size;
    const char *symbol;
};

static struct pb value(const char *name, int type, const struct dim *dims, size_t rank)
{
    struct pb v = {0}, tensor = {0}, shape = {0}, outer = {0};

    for (size_t i = 0; i < rank; i++) {
        struct pb d = {0};

        if (dims[i].symbol) {
            pb_text(&d, 2, dims[i].symbol);
        } else if (dims[i].size >= 0) {
            pb_int(&d, 1, dims[i].size);
        }
        pb_sub(&shape, 1, d);
    }
    pb_int(&tensor, 1, type);
    if (rank) {
        pb_sub(&tensor, 2, shape);
    }
    pb_sub(&outer, 1, tensor);
    pb_text(&v, 1, name);
    pb_sub(&v, 2, outer);
    return v;
}

/* y = x + mask, both open: x [batch, 3, height, width], mask [batch, 1, height, width]. */
static const char *put_open(void)
{
    static const struct dim x[] = {{-1, "batch"}, {3, NULL}, {-1, "height"}, {-1, "width"}};
    static const struct dim mask[] = {{-1, "batch"}, {1, NULL}, {-1, "height"}, {-1, "width"}};
    struct pb g = {0}, m;
    const char *path;

    pb_sub(&g, 1, pb_node("Add", "add", "x", "mask", "y"));
    pb_sub(&g, 11, value("x", 1, x, 4));
    pb_sub(&g, 11, value("mask", 1, mask, 4));
    pb_sub(&g, 12, value("y", 1, NULL, 0));
    m = pb_model(g, 8, 13);
    path = load_put("open.onnx", m.data, m.bytes);
    pb_free(&m);
    return path;
}

/* Loads with these shapes. @ret: its two inputs as "1x3x4x5 1x1x4x5". Return: of mdl_load(). */
static int try_shapes(const char *path, const char *shapes, char ret[200])
{
    struct mdl_load_options o = {.shapes = shapes};
    struct mdl_model *m = NULL;
    size_t used = 0;
    int r = mdl_load(path, &o, error, &m);

    ret[0] = '\0';
    for (size_t i = 0; r == 0 && i < m->input_count; i++) {
        const struct mdl_tensor *t = &m->tensors[m->inputs[i].tensor];

        used += (size_t)snprintf(ret + used, 200 - used, "%s", i ? " " : "");
        for (size_t k = 0; k < t->rank; k++) {
            used += (size_t)snprintf(ret + used, 200 - used, "%s%zu", k ? "x" : "", t->dim[k]);
        }
    }
    if (r < 0) {
        printf("  %d: %s\n", r, error);
    }
    mdl_free(m);
    return r;
}

TEST(text_and_json_say_the_same)
{
    mdl_autopool struct mdl_pool *pool = NULL;
    json_t *j = json_pack("{s:[i,i,i,i], s:i}", "images:0", 1, 3, 480, 640, "height", 480);
    base_autofree char *text = mdl_shapes_text(j, error);
    struct mdl_shapes s;

    T_STR(text, "images:0=1x3x480x640,height=480");
    T_EQ(mdl_pool_new(0, &pool), 0);
    T_EQ(mdl_shapes_parse(text, pool, error, &s), 0);
    T_EQ(s.count, 2);
    T_STR(s.list[0].name, "images:0");
    T_EQ(s.list[0].count, 4);
    T_EQ(s.list[0].dim[3], 640);
    T_EQ(s.list[1].count, 1);
    T_EQ(mdl_shapes_parse("a=b,c=3x4", pool, error, &s), 0); /* such a name is allowed */
    T_EQ(s.count, 1);
    T_STR(s.list[0].name, "a=b,c");
    T_EQ(mdl_shapes_parse("", pool, error, &s), 0);
    T_EQ(s.count, 0);
    json_decref(j);
}

TEST(hostile_shapes_are_refused)
{
    static const char *const bad[] = {"x",        "x=",     "=3",           "x=0",
                                      "x=1x",     "x=-1",   "x=1x0",        "x=1,",
                                      "x=1.5",    "x=1 x2", "x=4294967296", "x=1x1x1x1x1x1x1x1x1",
                                      "x=1,,y=2", ",x=1 "};
    static const char *const bad_json[] = {"[]",
                                           "{\"x\": 0}",
                                           "{\"x\": []}",
                                           "{\"x\": 1.5}",
                                           "{\"x\": [1, -1]}",
                                           "{\"\": 1}",
                                           "{\"x\": \"3\"}",
                                           "{\"x\": [1,1,1,1,1,1,1,1,1]}",
                                           "{\"x\": 99999999999}"};
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_shapes s;

    T_EQ(mdl_pool_new(0, &pool), 0);
    for (size_t i = 0; i < base_array_count(bad); i++) {
        T_EQ(mdl_shapes_parse(bad[i], pool, error, &s), -EBADMSG);
    }
    for (size_t i = 0; i < base_array_count(bad_json); i++) {
        json_t *j = json_loads(bad_json[i], 0, NULL);

        T_TRUE(j != NULL);
        T_EQ(mdl_shapes_read(j, pool, error, &s), -EBADMSG);
        T_TRUE(mdl_shapes_text(j, error) == NULL);
        json_decref(j);
    }
}

TEST(a_suffix_is_told_from_a_name)
{
    const char *text = "net=dir/m.onnx:x:0=1x3x4x5,h=4";
    char path[300];

    T_STR(mdl_shapes_suffix(text), "x:0=1x3x4x5,h=4");
    T_STR(mdl_shapes_suffix("m.onnx:a=1"), "a=1");
    T_TRUE(mdl_shapes_suffix("m.onnx") == NULL);
    T_TRUE(mdl_shapes_suffix("a:b/m.onnx") == NULL);
    T_TRUE(mdl_shapes_suffix(":a=1") == NULL);
    T_TRUE(mdl_shapes_suffix("none.onnx:a=x") == NULL);
    snprintf(path, sizeof(path), "%s:a=x", load_put("there.onnx", "", 0));
    T_STR(mdl_shapes_suffix(path), "a=x"); /* meant as shapes */
    snprintf(path, sizeof(path), "%s:b/x", load_put("there.onnx", "", 0));
    T_TRUE(mdl_shapes_suffix(path) == NULL);
    T_TRUE(mdl_shapes_suffix(load_put("odd:a=1", "", 0)) == NULL); /* there is such a file */
}

TEST(inputs_and_dimensions_are_settled_by_name)
{
    const char *path = put_open();
    char got[200];

    T_EQ(try_shapes(path, "height=4,width=5", got), 0);
    T_STR(got, "1x3x4x5 1x1x4x5");
    T_EQ(try_shapes(path, "x=2x3x4x5", got), 0); /* the mask has the same symbols */
    T_STR(got, "2x3x4x5 2x1x4x5");
    T_EQ(try_shapes(path, "x=1x3x4x5,mask=1x1x1x1", got), 0); /* the mask is spread */
    T_STR(got, "1x3x4x5 1x1x1x1");
    T_EQ(try_shapes(path, "batch=3,height=4,width=5", got), 0);
    T_STR(got, "3x3x4x5 3x1x4x5");
}

TEST(errors_say_what_is_open_and_what_to_write)
{
    const char *path = put_open();
    char got[200];

    T_EQ(try_shapes(path, NULL, got), -EOPNOTSUPP);
    T_CONTAINS(error, "input 'x' is [1, 3, height, width]: open dimensions: height, width");
    T_CONTAINS(error, "--shape x=1x3xNxN");
    T_CONTAINS(error, "FILE:x=1x3xNxN of piped --model");
    T_CONTAINS(error, "\"shapes\" in the sidecar or the configuration");
    T_EQ(try_shapes(path, "height=4", got), -EOPNOTSUPP);
    T_CONTAINS(error, "open dimensions: width;");
    T_EQ(try_shapes(path, "hight=4,width=5", got), -EBADMSG);
    T_CONTAINS(error, "shape 'hight': there is no input and no open dimension of that name");
    T_CONTAINS(error, "'x' [batch, 3, height, width]");
    T_EQ(try_shapes(path, "x=1x4x4x5", got), -EBADMSG);
    T_CONTAINS(error, "input 'x' has 3 in dimension 1, which is not open; 4 was given");
    T_EQ(try_shapes(path, "x=1x3x4", got), -EBADMSG);
    T_CONTAINS(error, "of 4 dimensions; a shape of 3 was given");
    T_EQ(try_shapes(path, "height=4,height=5,width=5", got), -EBADMSG);
    T_CONTAINS(error, "given twice: as 4 and as 5");
    T_TRUE(try_shapes(path, "x=2147483647x3x2147483647x2147483647", got) < 0);
}

TEST(the_caller_comes_before_the_sidecar)
{
    static const char side[] = "{\"shapes\": {\"x\": [1, 3, 4, 5], \"height\": 4}}";
    static const char wrong[] = "{\"shapes\": {\"x\": [1, 3, 0, 5]}}";
    const char *path = put_open();
    char got[200];

    load_put("open.sidecar.json", side, sizeof(side) - 1);
    T_EQ(try_shapes(path, NULL, got), 0);
    T_STR(got, "1x3x4x5 1x1x4x5");
    T_EQ(try_shapes(path, "height=6", got), 0);
    T_STR(got, "1x3x6x5 1x1x6x5");
    load_put("open.sidecar.json", wrong, sizeof(wrong) - 1);
    T_EQ(try_shapes(path, NULL, got), -EBADMSG);
    T_CONTAINS(error, "key 'shapes': 'x' must be a size, or a list of 1 to 8 sizes");
    unlink(load_path("open.sidecar.json"));
}

TEST(sizes_are_part_of_what_is_learned)
{
    struct mdl_load_options a = {.shapes = "height=4,width=5"}, b = {.shapes = "height=4,width=6"},
                            c = {.shapes = "x=1x3x4x5"};
    const char *path = put_open();
    struct mdl_model *m[3] = {NULL};

    T_EQ(mdl_load(path, &a, error, &m[0]), 0);
    T_EQ(mdl_load(path, &b, error, &m[1]), 0);
    T_EQ(mdl_load(path, &c, error, &m[2]), 0);
    T_STR(m[0]->hash, m[1]->hash);
    T_TRUE(strcmp(m[0]->identity, m[1]->identity) != 0);
    T_TRUE(strncmp(m[0]->identity, m[0]->hash, 64) == 0 && m[0]->identity[64] == '@');
    for (size_t i = 0; i < 3; i++) {
        mdl_free(m[i]);
    }
}

TEST(weights_that_are_inputs_too_are_constants)
{
    static const int64_t x[] = {1, 4}, w[] = {4, 2};
    const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct pb g = {0}, t = pb_tensor("w", 1, w, 2), file;
    struct mdl_model *m = NULL;
    const char *path;

    pb_bytes(&t, 9, data, sizeof(data));
    pb_sub(&g, 1, pb_node("MatMul", "product", "x", "w", "y"));
    pb_sub(&g, 5, t);
    pb_sub(&g, 11, pb_value("w", 1, w, 2));
    pb_sub(&g, 11, pb_value("x", 1, x, 2));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    file = pb_model(g, 8, 13);
    path = load_put("weights.onnx", file.data, file.bytes);
    pb_free(&file);
    T_EQ(mdl_load(path, NULL, error, &m), 0);
    T_EQ(m->input_count, 1);
    T_STR(m->inputs[0].name, "x");
    T_EQ(m->weight_bytes, sizeof(data));
    mdl_free(m);
}

LOAD_MAIN()
