/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of image geometry, one node each: the shapes that they give, and what does not fit. */
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

/* "1,3,8,8" */
static size_t numbers(const char *text, int64_t *ret)
{
    size_t n = 0;
    char *end;

    for (; *text; text = *end ? end + 1 : end) {
        ret[n++] = strtoll(text, &end, 10);
    }
    return n;
}

static void float_values(struct gb *g, const char *name, const char *text)
{
    float value[2 * MDL_RANK_MAX];
    size_t n = 0;
    char *end;

    for (; *text; text = *end ? end + 1 : end) {
        value[n++] = strtof(text, &end);
    }
    gb_const(g, name, MDL_F32, 1, &n, value);
}

/* An input: "1,3,8,8" computed f32, "n1,2" computed i64, "b1,2" computed u8, "c1,2" constant f32
 * (all of dims), "i1,2" constant i64, "v1,0.5" constant f32 (of values); "-" absent */
static void add_input(struct gb *g, const char *text, const char *name)
{
    int64_t value[2 * MDL_RANK_MAX];
    size_t n = *text == 'v' ? 0 : numbers(text + strspn(text, "nbci"), value);

    if (*text == 'n' || *text == 'b') {
        gb_typed_input(g, name, *text == 'n' ? MDL_I64 : MDL_U8, n, value);
    } else if (*text == 'c') {
        size_t dim[MDL_RANK_MAX];

        for (size_t i = 0; i < n; i++) {
            dim[i] = (size_t)value[i];
        }
        gb_weights(g, name, n, dim);
    } else if (*text == 'i') {
        gb_i64(g, name, n, value);
    } else if (*text == 'v') {
        float_values(g, name, text + 1);
    } else {
        gb_input(g, name, n, value);
    }
}

/* "name=1,2" ints, "name:3" int, "name'text" string, "name~1.5" float */
static void add_attribute(struct gb *g, char *s)
{
    char *value = s + strcspn(s, "=:'~"), kind = *value;
    int64_t list[2 * MDL_RANK_MAX];

    *value++ = '\0';
    if (kind == '=') {
        gb_ints(g, s, numbers(value, list), list);
    } else if (kind == ':') {
        gb_int(g, s, strtoll(value, NULL, 10));
    } else if (kind == '~') {
        gb_float(g, s, strtof(value, NULL));
    } else {
        gb_string(g, s, value);
    }
}

/* Compiles "<inputs> [| <attributes>]" as one node. @ret: the dims of its output, or the message */
static void compile(int opset, const char *op, const char *text, char *ret, size_t size)
{
    char *copy, *save = NULL, names[64] = "";
    const char *name = "a";
    struct gb g;
    struct mdl_model *m;
    bool attributes = false;

    gb_init(&g, opset);
    copy = mdl_pool_strdup(g.pool, text);
    for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        char one[2] = {(char)('a' + (char)strlen(names) / 2), '\0'};

        if (strcmp(s, "|") == 0) {
            gb_node(&g, op, "it", names, "y");
            attributes = true;
        } else if (attributes) {
            add_attribute(&g, s);
        } else {
            name = mdl_pool_strdup(g.pool, one);
            if (*s != '-' || s[1]) {
                add_input(&g, s, name);
            }
            strcat(names, *s == '-' && !s[1] ? "-" : name);
            strcat(names, " ");
        }
    }
    if (!attributes) {
        gb_node(&g, op, "it", names, "y");
    }
    gb_output(&g, "y");
    m = gb_compile(&g, NULL);
    snprintf(ret, size, "%s", g.error);
    for (size_t i = 0, at = 0; m && i < gb_out(m, 0)->rank; i++) {
        at += (size_t)snprintf(ret + at, size - at, "%s%zu", i ? "," : "", gb_out(m, 0)->dim[i]);
    }
    mdl_free(m);
    gb_free(&g);
}

static const struct {
    int opset;
    const char *op, *text, *want; /* dims of the output, or part of the message */
} cases[] = {
    {13, "Resize", "1,2,4,6 - v1,1,2,1.5 | mode'cubic", "1,2,8,9"},
    {13, "Resize", "1,2,4,6 - v2,3,1,1 | mode'cubic", "2,6,4,6"},
    /* as torch's Upsample, by whose sizes the rest of its graph goes: the products are in floats */
    {13, "Resize", "10,20,320,3 - v0.7,0.9,1.4,1.6666666", "7,18,448,5"},
    {13, "Resize", "20,40,80,10 - v0.35,0.7,1.4,2.3 | mode'linear", "7,28,112,23"},
    {18, "Resize", "1,1,160,640 - v1.4,1.9 | axes=2,3", "1,1,224,1216"},
    {10, "Resize", "1,1,10,20 v1,1,0.7,0.9", "1,1,7,18"},
    {9, "Upsample", "1,1,10,640 v1,1,2.3,1.9", "1,1,23,1216"},
    {10, "Resize", "1,2,4,6 v1,1,2,2 | mode'cubic", "mode cubic needs opset 11"},
    {13, "Resize", "1,2,4,6 - - i1,2,3,3 | mode'lanczos", "mode lanczos is not supported"},
    {13, "Resize", "1,2,4,6 - v1,1,nan,2", "no valid size"},
    {13, "Resize", "1,2,4,6 - v1,1,1e30,2", "no valid size"},
    {13, "Resize", "1,2,4,6 - - i1,2,-3,3", "size -3 is out of range"},
    {13, "Resize", "1,2,4,6 - - i1,2,3", "3 scales or sizes for 4 dimensions"},
    {13, "Resize", "1,2,4,6 - 4", "scales must be constant floats"},
    {13, "Resize", "b1,2,4,6 - v1,1,2,2 | mode'linear", "1,2,8,12"},
    {13, "Resize", "n1,2,4,6 - v1,1,2,2", "1,2,8,12"},
    {13, "Resize", "n1,2,4,6 - v1,1,2,2 | mode'linear", "only resized by nearest"},
    {13, "Resize", "1,2,4,6 - v1,1,2,2 | mode'cubic cubic_coeff_a~nan", "not a finite number"},
    {13, "Resize", "1,2,4,6 - v1,1,2,2 | coordinate_transformation_mode'tf_crop_and_resize",
     "needs input 1, the roi"},
    {13, "Resize",
     "1,2,4,6 v0,0,0,0,1,1,1,1 v1,1,2,2 | coordinate_transformation_mode'tf_crop_and_"
     "resize",
     "1,2,8,12"},
    {13, "Resize",
     "1,2,4,6 v0,0,0,0,1,1,1 v1,1,2,2 | coordinate_transformation_mode'tf_crop_and_"
     "resize",
     "7 values of the roi for 8 dimensions"},
    {13, "Resize",
     "1,2,4,6 v0,0,0,0,1,1,1,inf v1,1,2,2 | coordinate_transformation_mode'tf_crop_"
     "and_resize",
     "out of range"},
    {18, "Resize", "1,2,4,6 - - i8,8 | axes=2,3 keep_aspect_ratio_policy'not_larger", "1,2,5,8"},
    {18, "Resize", "1,2,4,6 - - i8,8 | axes=-1,2 keep_aspect_ratio_policy'not_smaller", "1,2,8,12"},
    {18, "Resize", "1,2,4,6 - - i8,8 | axes=2,-2", "axis 2 is given twice"},
    {18, "Resize", "1,2,4,6 - - i8,8 | axes=2,4", "axis 4 is outside rank 4"},
    {18, "Resize", "1,2,4,600 - - i1,1 | axes=2,3 keep_aspect_ratio_policy'not_larger",
     "gives dimension 2 a size of 0"},
    {18, "Resize", "1,2,4,6 - v1,1,0.5,0.5 | mode'linear antialias:1", "1,2,2,3"},
    {19, "Pad", "2,3 i0,5,0,1 | mode'wrap", "2,9"},
    {18, "Pad", "2,3 i0,5,0,1 | mode'wrap", "2,9"}, /* as torch writes it */
    {19, "Pad", "2,3 i2,-1 - i-1", "2,4"},
    {19, "Pad", "0,3 i1,0,0,0 | mode'wrap", "too large"},
    {19, "Pad", "2,3 i0,-2,0,1 | mode'reflect", "too large"},
    {13, "Pad", "2,3 i0,-2,0,-2 | mode'edge", "crop more than"},
    {18, "CenterCropPad", "5,8 i2,11", "2,11"},
    {18, "CenterCropPad", "5,8 i2 | axes=-1", "5,2"},
    {18, "CenterCropPad", "5,8 i2", "1 sizes for 2 dimensions"},
    {18, "CenterCropPad", "5,8 i2,-1", "size -1 is out of range"},
    {18, "CenterCropPad", "5,8 n2", "must be a constant"},
    {16, "GridSample", "1,3,8,8 1,4,5,2", "1,3,4,5"},
    {20, "GridSample", "1,3,8,8,8 1,4,5,6,3 | mode'cubic", "1,3,4,5,6"},
    {16, "GridSample", "1,3,8,8,8 1,4,5,6,3", "rank 5 is not supported"},
    {16, "GridSample", "1,3,8,8 1,4,5,3", "does not fit"},
    {16, "GridSample", "1,3,8,8 2,4,5,2", "does not fit"},
    {16, "GridSample", "1,3,8,8", "input 1 is missing"},
    {16, "GridSample", "1,3,0,8 1,4,5,2", "a spatial dimension of the input is 0"},
    {16, "GridSample", "1,3,8,8 1,4,5,2 | mode'lanczos", "mode lanczos is not supported"},
    {16, "GridSample", "1,3,8,8 1,4,5,2 | padding_mode'wrap", "padding_mode wrap is not"},
    {20, "AffineGrid", "2,2,3 i2,3,4,5", "2,4,5,2"},
    {20, "AffineGrid", "2,3,4 i2,3,4,5,6 | align_corners:1", "2,4,5,6,3"},
    {20, "AffineGrid", "2,2,3 i3,3,4,5", "theta does not fit"},
    {20, "AffineGrid", "2,2,3 i2", "theta does not fit"},
    {20, "AffineGrid", "2,2,3 i2,3,0,5", "size 0 is out of range"},
    {20, "AffineGrid", "2,2,3 i2,3,2147483647,2147483647", "(AffineGrid)"},
    {16, "RoiAlign", "1,3,8,8 5,4 n5 | output_height:7 output_width:6", "5,3,7,6"},
    {16, "RoiAlign", "1,3,8,8 5,4 n4", "one integer for each region"},
    {16, "RoiAlign", "1,3,8,8 5,5 n5", "the regions must be [number][4]"},
    {16, "RoiAlign", "1,3,8,8 5,4 n5 | sampling_ratio:1000000", "sampling_ratio 1000000 is not"},
    {16, "RoiAlign", "1,3,8,8 5,4 n5 | spatial_scale~nan", "not a finite number"},
    {16, "RoiAlign", "1,3,8,8 5,4 n5 | output_height:-1", "output_height -1 is out of range"},
    {16, "RoiAlign", "1,3,8,8 5,4 n5 | output_height:2147483647", "(RoiAlign)"},
    {16, "RoiAlign", "1,3,8,8 5,4", "input 2 is missing"},
    {13, "MaxRoiPool", "1,3,8,8 5,5 | pooled_shape=7,6", "5,3,7,6"},
    {13, "MaxRoiPool", "1,3,8,8 5,5", "pooled_shape must be"},
    {19, "DeformConv", "1,4,8,8 c6,4,3,3 1,18,6,6", "1,6,6,6"},
    {19, "DeformConv", "1,4,8,8 6,4,3,3 1,18,6,6", "1,6,6,6"},
    {19, "DeformConv",
     "1,4,8,8 c6,2,3,3 1,36,4,8 c6 1,18,4,8 | group:2 offset_group:2 "
     "pads=1,1,1,1 strides=2,1",
     "1,6,4,8"},
    {19, "DeformConv", "1,4,8,8 c6,4,3,3 1,18,6,5", "input 2 must be [1][18][6][6]"},
    {19, "DeformConv", "1,4,8,8 c6,4,3,3 1,18,6,6 - 1,8,6,6", "input 4 must be [1][9][6][6]"},
    {19, "DeformConv", "1,4,8,8 c6,4,3,3 1,18,6,6 | offset_group:3", "offset_group 3 does not"},
    {19, "DeformConv", "1,4,8,8 c6,4,3,3 1,18,6,6 | group:0", "group 0 does not divide"},
    {19, "DeformConv", "1,4,8,8 c6,3,3,3 1,18,6,6", "weights do not fit"},
    {19, "DeformConv", "1,4,8,8 c6,4,3,3 1,18,6,6 c5", "bias has 5 values for 6 channels"},
    {18, "Col2Im", "1,10,12 i5,5 i1,5 | pads=0,1,0,1", "(Col2Im)"},
    {18, "Col2Im", "1,5,5 i5,5 i1,5", "1,1,5,5"},
    {18, "Col2Im", "1,5,6 i5,5 i1,5", "for these blocks"},
    {18, "Col2Im", "1,5,5 i5,5 i1,5,1", "image_shape and block_shape do not fit"},
    {18, "Col2Im", "1,5,5 i2147483647,2147483647 i2147483647,2147483647", "(Col2Im)"},
    {11, "MaxUnpool", "1,2,3,3 n1,2,3,3 | kernel_shape=2,2 strides=2,2", "1,2,6,6"},
    {11, "MaxUnpool", "1,2,3,3 n1,2,3,3 i1,2,7,8 | kernel_shape=2,2 strides=2,2", "1,2,7,8"},
    {11, "MaxUnpool", "1,2,3,3 n1,2,3,3 i1,3,7,8 | kernel_shape=2,2", "dimension 1 of the output"},
    {11, "MaxUnpool", "1,2,3,3 n1,2,3,3 i7,8 | kernel_shape=2,2", "dimension 0 of the output"},
    {11, "MaxUnpool", "1,2,3,3 n1,2,3,3 | kernel_shape=2,2 pads=9,0,0,0", "dimension 2 of the"},
    {11, "MaxUnpool", "1,2,3,3 1,2,3,3 | kernel_shape=2,2", "an i64 index for each"},
};

TEST(one_node_each)
{
    for (size_t i = 0; i < base_array_count(cases); i++) {
        char got[MDL_ERROR_MAX + 64];
        bool dims =
            cases[i].want[0] >= '0' && cases[i].want[0] <= '9' && !strchr(cases[i].want, ' ');

        compile(cases[i].opset, cases[i].op, cases[i].text, got, sizeof(got));
        if (dims ? strcmp(got, cases[i].want) != 0 : !strstr(got, cases[i].want)) {
            T_FAIL("%s %s: \"%s\", expected \"%s\"", cases[i].op, cases[i].text, got,
                   cases[i].want);
        }
    }
}

/* The element of @x, of @dim, that element @at of its repetition is. */
static size_t tiled_from(const size_t *dim, const int64_t *times, size_t rank, size_t at)
{
    size_t from = 0, step = 1;

    for (size_t i = rank; i-- > 0;) {
        from += step * (at % (dim[i] * (size_t)times[i]) % dim[i]);
        at /= dim[i] * (size_t)times[i];
        step *= dim[i];
    }
    return from;
}

TEST(tile_repeats_any_dimensions)
{
    for (size_t n = 0; n < 200; n++) {
        size_t rank = 1 + t_range(0, MDL_RANK_MAX - 1), dim[MDL_RANK_MAX];
        int64_t given[MDL_RANK_MAX], times[MDL_RANK_MAX];
        struct run_model r;
        struct mdl_model *m;
        struct gb g;

        for (size_t i = 0; i < rank; i++) {
            dim[i] = 1 + t_range(0, 1);
            given[i] = (int64_t)dim[i];
            times[i] = 1 + (int64_t)t_range(0, 1);
        }
        gb_init(&g, 13);
        gb_input(&g, "x", rank, given);
        gb_i64(&g, "times", rank, times);
        gb_node(&g, "Tile", "", "x times", "t");
        gb_node(&g, "Neg", "", "t", "y");
        gb_output(&g, "y");
        m = gb_compile(&g, NULL);
        if (!m) {
            T_FAIL("%s", g.error);
        }
        run_model_init(&r, m);
        T_TRUE(run_model_go(&r, n));
        for (size_t i = 0; i < mdl_elements(gb_out(m, 0)); i++) {
            T_EQ(((const float *)r.outputs[0])[i],
                 -((const float *)r.inputs[0])[tiled_from(dim, times, rank, i)]);
        }
        run_model_deinit(&r);
        mdl_free(m);
        gb_free(&g);
    }
}

/* A model that gives nothing gives that, in any form. */
TEST(an_empty_result_is_seen_through_views)
{
    static const char *const ways[] = {"Reshape", "Transpose", "Flatten", "MatMul", "Relu"};

    for (size_t i = 0; i < base_array_count(ways); i++) {
        struct mdl_model *m;
        struct gb g;

        gb_init(&g, 11);
        gb_input(&g, "x", 3, (int64_t[]){2, 3, 4});
        gb_i64(&g, "none", 1, (int64_t[]){0});
        gb_i64(&g, "to", 2, (int64_t[]){0, 12});
        gb_weights(&g, "w", 2, (size_t[]){4, 2});
        gb_node(&g, "Slice", "", "x none none", "s");
        gb_node(&g, "Relu", "", "s", "t");
        gb_node(&g, ways[i], "", i == 0 ? "t to" : i == 3 ? "t w" : "t", "y");
        gb_output(&g, "y");
        m = gb_compile(&g, NULL);
        if (!m) {
            T_FAIL("%s: %s", ways[i], g.error);
        }
        T_EQ(mdl_elements(gb_out(m, 0)), 0);
        T_TRUE(m->unit_count > 0);
        mdl_free(m);
        gb_free(&g);
    }
}

TEST_MAIN()
