/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a file before it is served: what it is, and what is guessed of its pictures. */
#include "model/inspection.h"

#include "base/base.h"
#include "model/load_private.h"
#include "tests/unit/model/load_files.h"

static const int64_t nchw[] = {1, 3, 32, 32}, nhwc[] = {1, 32, 32, 3};

static void add_constant(struct pb *g, const char *name, const float *data, size_t count)
{
    int64_t dims[] = {1, (int64_t)count, 1, 1};
    struct pb t = pb_tensor(name, 1, dims, 4);

    pb_bytes(&t, 9, data, count * sizeof(*data));
    pb_sub(g, 5, t);
}

/* Writes the graph, whose input is x and whose output is y, and inspects it.
 * @y: four sizes, or NULL: the file does not say. */
static void look_from_to(struct pb g, int type, const int64_t *x, const int64_t *y,
                         struct mdl_inspection *ret)
{
    struct mdl_load_options options = {0};
    const char *path;
    struct pb m;

    pb_sub(&g, 11, pb_value("x", type, x, 4));
    pb_sub(&g, 12, pb_value("y", 1, y, y ? 4 : 0));
    m = pb_model(g, 8, 13);
    path = load_put("look.onnx", m.data, m.bytes);
    pb_free(&m);
    T_EQ(mdl_inspect(path, &options, ret), 0);
    printf("  %s | %s\n", ret->why, ret->guess.why);
}

static void look_at(struct pb g, int type, const int64_t *x, struct mdl_inspection *ret)
{
    look_from_to(g, type, x, NULL, ret);
}

static struct pb one_step(const char *op, const float *data, size_t count)
{
    struct pb g = {0};

    pb_sub(&g, 1, pb_node(op, "step", "x", "c", "v"));
    pb_sub(&g, 1, pb_node("Relu", "relu", "v", NULL, "y"));
    add_constant(&g, "c", data, count);
    return g;
}

TEST(other_files_are_called_what_they_are)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *what;
    } files[] = {
        {"\xff\xd8\xff\xe0 JFIF", 9, "a JPEG picture"},
        {"PK\3\4....", 8, "a ZIP archive"},
        {"\n<!DOCTYPE html><html>", 22, "an HTML page"},
        {"version https://git-lfs.github.com/spec/v1\n", 43, "a pointer of git-lfs"},
        {"\x1c\0\0\0TFL3\0\0", 10, "a TensorFlow Lite model"},
        {"\0\0\0\0\0\0\0\0", 8, "a file of zeros"},
        {"<?xml version=\"1.0\"?><net>", 26, "an XML file"},
        {"\x89HDF\r\n", 6, "an HDF5 file"},
    };

    for (size_t i = 0; i < base_array_count(files); i++) {
        T_TRUE(strstr(mdl_looks_like(files[i].bytes, files[i].count), files[i].what) != NULL);
        T_EQ(load_try(load_put("f.onnx", files[i].bytes, files[i].count), false), -EBADMSG);
        T_CONTAINS(load_error, "this is a");
        T_CONTAINS(load_error, files[i].what);
        T_CONTAINS(load_error, "it is not an ONNX model");
        for (size_t n = 0; n < files[i].count; n++) { /* reads no more than there is */
            base_autofree char *cut = malloc(n + 1);

            memcpy(cut, files[i].bytes, n);
            (void)mdl_looks_like(cut, n);
        }
    }
    T_TRUE(mdl_looks_like("\x08\x07\x12\x04test", 8) == NULL);
    T_EQ(load_model(pb_small_model()), 0);
}

TEST(all_unsupported_operators_are_named)
{
    struct mdl_inspection in;
    struct pb g = {0}, own = pb_node("Strange", "n3", "b", NULL, "c");

    pb_text(&own, 7, "com.example");
    pb_sub(&g, 1, pb_node("Bogus", "n1", "x", NULL, "a"));
    pb_sub(&g, 1, pb_node("Relu", "n2", "a", NULL, "b"));
    pb_sub(&g, 1, own);
    pb_sub(&g, 1, pb_node("Bogus", NULL, "c", NULL, "y"));
    look_at(g, 1, nchw, &in);
    T_TRUE(in.read && !in.model);
    T_EQ(in.reasons.count, 3);
    T_STR(in.reasons.list[0].op_type, "Bogus");
    T_STR(in.reasons.list[0].node, "n1");
    T_STR(in.reasons.list[1].domain, "com.example");
    T_STR(in.reasons.list[2].node, "y"); /* without a name, its output's */
    T_CONTAINS(in.why, "Bogus");
    T_EQ(in.opset, 13);
    T_STR(in.producer, "test");
    mdl_inspection_deinit(&in);
}

static struct pb attribute(const char *name, int type, unsigned field, struct pb value)
{
    struct pb a = {0};

    pb_text(&a, 1, name);
    pb_sub(&a, field, value);
    pb_int(&a, 20, type);
    return a;
}

/* y = x if the constant c is true; the branch has an operator that nobody knows */
static struct pb choice(void)
{
    struct pb n = pb_node("If", "if", "c", NULL, "b"), g = {0};

    pb_sub(&g, 1, pb_node("Inner", "inside", "x", NULL, "z"));
    pb_sub(&g, 12, pb_value("z", 1, NULL, 0));
    pb_sub(&n, 5, attribute("then_branch", 5, 6, g));
    return n;
}

/* A function of another domain with an operator that nobody knows */
static struct pb strange_function(void)
{
    struct pb f = {0}, o = {0};

    pb_text(&f, 1, "Call");
    pb_text(&f, 4, "a");
    pb_text(&f, 5, "r");
    pb_sub(&f, 7, pb_node("Deep", "deep", "a", NULL, "r"));
    pb_text(&o, 1, "");
    pb_int(&o, 2, 18);
    pb_sub(&f, 9, o);
    pb_text(&f, 10, "own");
    return f;
}

static const struct mdl_reason *reason_of(const struct mdl_inspection *in, const char *op_type)
{
    for (size_t i = 0; i < in->reasons.count; i++) {
        if (strcmp(in->reasons.list[i].op_type, op_type) == 0) {
            return &in->reasons.list[i];
        }
    }
    return NULL;
}

/* Also those in functions and branches, and nodes whose operator is supported, although a size is
 * open. */
TEST(all_reasons_are_given)
{
    static const int64_t open[] = {1, 3, -1, -1}, none[1];
    struct pb g = {0}, call = pb_node("Call", "call", "x", NULL, "a"),
              c = pb_tensor("c", 9, none, 0);
    struct pb m, perm = {0}, move = pb_node("Transpose", "move", "x", NULL, "t");
    struct mdl_load_options options = {0};
    struct mdl_inspection in;

    pb_text(&call, 7, "own");
    pb_varint(&perm, 0);
    pb_sub(&move, 5, attribute("perm", 7, 8, perm));
    pb_bytes(&c, 9, &(const char){1}, 1);
    pb_sub(&g, 5, c);
    pb_sub(&g, 1, call);
    pb_sub(&g, 1, choice());
    pb_sub(&g, 1, move);
    pb_sub(&g, 1, pb_node("Add", "add", "a", "b", "s"));
    pb_sub(&g, 1, pb_node("Add", "add2", "s", "t", "y"));
    pb_sub(&g, 11, pb_value("x", 1, open, 4));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    m = pb_model(g, 10, 20);
    pb_sub(&m, 25, strange_function());
    T_EQ(mdl_inspect(load_put("look.onnx", m.data, m.bytes), &options, &in), 0);
    pb_free(&m);
    printf("  %s\n", in.why);
    T_TRUE(in.read && !in.model);
    T_EQ(in.reasons.count, 3);
    T_TRUE(reason_of(&in, "Deep") && reason_of(&in, "Inner") && reason_of(&in, "Transpose"));
    T_EQ(reason_of(&in, "Deep")->kind, MDL_REASON_OPERATOR);
    T_EQ(reason_of(&in, "Inner")->kind, MDL_REASON_OPERATOR);
    T_EQ(reason_of(&in, "Transpose")->kind, MDL_REASON_NODE);
    T_CONTAINS(reason_of(&in, "Transpose")->text, "node move (Transpose): ");
    mdl_inspection_deinit(&in);
}

TEST(open_sizes_get_an_example)
{
    static const int64_t open[] = {-1, 3, -2, -2};
    const float third = 1.0f / 3;
    struct mdl_inspection in;

    look_at(one_step("Mul", &third, 1), 1, open, &in);
    T_TRUE(in.model && in.read);
    T_STR(in.inputs[0].shape, "[N, 3, ?, ?]");
    T_STR(in.example, "x=1x3x224x224");
    T_TRUE(in.guess.open_size);
    T_EQ(in.model->tensors[in.model->inputs[0].tensor].dim[3], 224);
    mdl_inspection_deinit(&in);
}

TEST(what_the_graph_shows_is_guessed)
{
    static const float mean[] = {0.485f, 0.456f, 0.406f}, pixel_mean[] = {123.7f, 116.8f, 103.9f};
    const float scale = 1 / 255.0f, two = 2;
    struct mdl_inspection in;

    look_at(one_step("Sub", mean, 3), 1, nchw, &in); /* pixels from 0 to 1 */
    T_TRUE(in.guess.picture && in.guess.shown && !in.guess.doubtful && !in.guess.nhwc);
    T_NEAR(in.guess.scale, scale, 1e-9);
    T_NEAR(in.guess.mean[0], 0, 0);
    T_TRUE(in.model && !in.model->doubt);
    mdl_inspection_deinit(&in);
    look_at(one_step("Sub", pixel_mean, 3), 1, nchw, &in); /* from 0 to 255 */
    T_TRUE(in.guess.shown);
    T_NEAR(in.guess.scale, 1, 0);
    mdl_inspection_deinit(&in);
    look_at(one_step("Mul", &scale, 1), 1, nchw, &in);
    T_TRUE(in.guess.shown);
    T_NEAR(in.guess.scale, 1, 0);
    mdl_inspection_deinit(&in);
    look_at(one_step("Pow", &two, 1), 1, nchw, &in); /* says nothing */
    T_TRUE(in.guess.picture && !in.guess.shown && in.guess.doubtful);
    T_TRUE(in.model && in.model->doubt);
    T_CONTAINS(in.guess.why, "Not shown by the graph");
    mdl_inspection_deinit(&in);
}

/* Classes for each pixel: the whole picture counts, so nothing is cut off. */
TEST(networks_for_segmentation_see_the_whole_picture)
{
    static const int64_t classes[] = {1, 6, 320, 320}, picture[] = {1, 3, 320, 320};
    struct pb twice = pb_node("Concat", "twice", "x", "x", "y"), axis = {0}, g = {0};
    const float two = 2;
    struct mdl_inspection in;

    pb_text(&axis, 1, "axis");
    pb_int(&axis, 3, 1);
    pb_int(&axis, 20, 2);
    pb_sub(&twice, 5, axis);
    pb_sub(&g, 1, twice);
    look_from_to(g, 1, picture, classes, &in);
    T_TRUE(in.guess.picture && !in.guess.shown);
    T_EQ(in.guess.fit, PICTURE_STRETCH);
    T_STR(in.output, "{\"decode\":\"mask\",\"activation\":\"softmax\"}");
    T_NEAR(in.guess.mean[0], 0.485, 1e-6);
    mdl_inspection_deinit(&in);
    look_from_to(one_step("Pow", &two, 1), 1, picture, picture, &in); /* a picture again */
    T_EQ(in.guess.fit, PICTURE_LETTERBOX);
    T_TRUE(!in.output && in.needs);
    mdl_inspection_deinit(&in);
    look_from_to(one_step("Pow", &two, 1), 1, classes, classes, &in); /* takes no picture */
    T_TRUE(!in.guess.picture);
    mdl_inspection_deinit(&in);
}

TEST(channels_that_come_last_are_found)
{
    static const int64_t grey[] = {1, 28, 28, 1}, vector[] = {1, 8, 1, 1}, both[] = {1, 3, 32, 3};
    struct mdl_inspection in;
    struct pb g = {0}, cast = pb_node("Cast", "cast", "x", NULL, "v"), to = {0};
    const float two = 2;

    pb_text(&to, 1, "to");
    pb_int(&to, 3, 1);
    pb_int(&to, 20, 2);
    pb_sub(&cast, 5, to);
    pb_sub(&g, 1, cast);
    pb_sub(&g, 1, pb_node("Relu", "relu", "v", NULL, "y"));
    look_at(g, 2, nhwc, &in); /* u8 */
    T_TRUE(in.guess.picture && in.guess.nhwc && in.guess.shown);
    T_EQ(in.guess.height, 32);
    T_TRUE(in.model && in.model->preproc.nhwc && !in.model->doubt);
    mdl_inspection_deinit(&in);
    look_at(one_step("Pow", &two, 1), 1, grey, &in);
    T_TRUE(in.guess.picture && in.guess.nhwc && !in.guess.doubtful);
    mdl_inspection_deinit(&in);
    look_at(one_step("Pow", &two, 1), 1, vector, &in);
    T_TRUE(!in.guess.nhwc);
    mdl_inspection_deinit(&in);
    look_at(one_step("Pow", &two, 1), 1, both, &in); /* not beyond doubt */
    T_TRUE(!in.guess.nhwc && !in.model->preproc.nhwc);
    mdl_inspection_deinit(&in);
}

TEST(a_sidecar_with_preprocessing_ends_the_doubt)
{
    static const char side[] = "{\"preprocess\": {\"scale\": 0.5}}", labels[] = "{\"labels\": []}";
    struct mdl_load_options options = {0};
    struct mdl_inspection in;
    const float two = 2;

    look_at(one_step("Pow", &two, 1), 1, nchw, &in);
    mdl_inspection_deinit(&in);
    load_put("look.sidecar.json", labels, sizeof(labels) - 1);
    T_EQ(mdl_inspect(load_path("look.onnx"), &options, &in), 0);
    T_TRUE(in.model->doubt != NULL);
    mdl_inspection_deinit(&in);
    load_put("look.sidecar.json", side, sizeof(side) - 1);
    T_EQ(mdl_inspect(load_path("look.onnx"), &options, &in), 0);
    T_TRUE(in.model->doubt == NULL);
    mdl_inspection_deinit(&in);
    unlink(load_path("look.sidecar.json"));
}

/* Beside a link, else beside the file that it leads to. */
TEST(a_sidecar_is_found_through_a_link)
{
    static const char half[] = "{\"preprocess\": {\"mean\": 1}}",
                      third[] = "{\"preprocess\": {\"mean\": 2}}";
    struct pb small = pb_small_model();
    const char *path = load_put("target.onnx", small.data, small.bytes);
    struct mdl_model *m = NULL;

    pb_free(&small);
    load_put("target.sidecar.json", half, sizeof(half) - 1);
    T_EQ(symlink("target.onnx", load_path("link.onnx")), 0);
    T_EQ(mdl_load(load_path("link.onnx"), NULL, load_error, &m), 0);
    T_NEAR(m->preproc.mean[0], 1, 0);
    m = mdl_free(m);
    load_put("link.sidecar.json", third, sizeof(third) - 1);
    T_EQ(mdl_load(load_path("link.onnx"), NULL, load_error, &m), 0);
    T_NEAR(m->preproc.mean[0], 2, 0);
    m = mdl_free(m);
    T_EQ(mdl_load(path, NULL, load_error, &m), 0);
    T_NEAR(m->preproc.mean[0], 1, 0);
    mdl_free(m);
}

LOAD_MAIN()
