/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "model/netdesc/netdesc.h"
#include "tests/harness.h"

static char error[MDL_ERROR_MAX];

static int read_text(const char *text, struct mdl_graph **ret)
{
    struct mdl_graph *g = NULL;
    int r = mdl_netdesc_read(text, strlen(text), NULL, false, error, &g);

    if (r < 0) {
        printf("  %d: %s\n", r, error);
    } else if (ret) {
        *ret = g;
    } else {
        mdl_graph_free(g);
    }
    return r;
}

#define NET(layers) "{\"input\": {\"shape\": [3, 8, 8]}, \"layers\": [" layers "]}"

TEST(a_graph_with_branches)
{
    struct mdl_graph *g = NULL;

    T_EQ(read_text(
             "{\"name\": \"n\", \"seed\": 3, \"input\": {\"name\": \"in\", \"shape\": [3, 9, 8]},"
             "\"layers\": ["
             "{\"op\": \"conv\", \"name\": \"a\", \"out\": 4, \"kernel\": [3, 2], \"stride\": 2,"
             " \"pad\": \"same\", \"bn\": true, \"act\": \"relu\"},"
             "{\"op\": \"dwconv\", \"name\": \"b\", \"kernel\": 3, \"pad\": 1},"
             "{\"op\": \"add\", \"name\": \"c\", \"in\": [\"a\", \"b\"], \"act\": \"relu6\"},"
             "{\"op\": \"concat\", \"name\": \"d\", \"in\": [\"c\", \"a\"]},"
             "{\"op\": \"fc\", \"out\": 5}, {\"op\": \"softmax\"}],"
             "\"outputs\": [\"softmax5\", \"d\"]}",
             &g),
         0);
    T_STR(g->name, "n");
    T_EQ(g->opset, 13);
    T_EQ(g->input_count, 1);
    T_STR(g->inputs[0].name, "in");
    T_EQ(g->inputs[0].dim[2], 9);
    T_EQ(g->output_count, 2);
    T_STR(g->outputs[0].name, "softmax5");
    /* conv, bn, relu | conv | add, clip | concat | flatten, gemm | softmax */
    static const char *const ops[] = {
        "Conv",   "BatchNormalization", "Relu", "Conv", "Add", "Clip", "Concat", "Flatten", "Gemm",
        "Softmax"};
    T_EQ(g->node_count, 10);
    for (size_t i = 0; i < 10; i++) {
        T_STR(g->nodes[i].op_type, ops[i]);
    }
    T_STR(g->nodes[2].outputs[0], "a"); /* a layer's last value bears its name */
    T_STR(g->nodes[4].inputs[1], "b");
    T_STR(g->nodes[6].inputs[0], "c");
    T_STR(g->nodes[9].inputs[0], "fc4");
    T_EQ(g->nodes[0].attrs[0].type, MDL_ATTR_INT);
    T_STR(g->nodes[0].attrs[3].name, "pads");
    /* 9 rows, stride 2: 5 rows, one before and one after; 8 columns: none */
    T_EQ(g->nodes[0].attrs[3].ints[0], 1);
    T_EQ(g->nodes[0].attrs[3].ints[1], 0);
    T_EQ(g->nodes[0].attrs[3].ints[2], 1);
    T_EQ(g->nodes[0].attrs[3].ints[3], 0);
    /* the fully connected layer sees (4 + 4) x 5 x 4 */
    for (size_t i = 0; i < g->initializer_count; i++) {
        if (strcmp(g->initializers[i].name, "fc4.weight") == 0) {
            T_EQ(g->initializers[i].dim[0], 5);
            T_EQ(g->initializers[i].dim[1], 160);
        }
    }
    mdl_graph_free(g);
}

TEST(weights_are_seeded_and_scaled)
{
    static const char *const text =
        "{\"seed\": %d, \"input\": {\"shape\": [64, 4, 4]}, \"layers\": [{\"op\": \"conv\", "
        "\"out\": 256, \"kernel\": 3, \"bn\": true}]}";
    struct mdl_graph *g[3] = {0};
    double sum = 0, squares = 0, high = 0;
    char buffer[256];
    size_t n;

    for (int i = 0; i < 3; i++) {
        snprintf(buffer, sizeof(buffer), text, i / 2);
        T_EQ(read_text(buffer, &g[i]), 0);
    }
    T_EQ(g[0]->file_bytes, g[1]->file_bytes);
    T_TRUE(memcmp(g[0]->file_map, g[1]->file_map, g[0]->file_bytes) == 0);
    T_TRUE(memcmp(g[0]->file_map, g[2]->file_map, g[0]->file_bytes) != 0);
    n = g[0]->initializers[0].bytes / 4;
    for (size_t i = 0; i < n; i++) {
        double v = ((const float *)g[0]->initializers[0].data)[i];

        sum += v;
        squares += v * v;
        high = base_max(high, fabs(v));
    }
    T_EQ(n, 256 * 64 * 9);
    /* uniform in +-b, b = sqrt(6 / 576): variance b^2 / 3; bounds of five standard errors */
    T_NEAR(sum / (double)n, 0, 5 * sqrt(2.0 / 576 / (double)n));
    T_NEAR(squares / (double)n, 2.0 / 576, 5 * 2.0 / 576 / sqrt((double)n));
    T_TRUE(high <= sqrt(6.0 / 576) && high > 0.99 * sqrt(6.0 / 576));
    for (size_t i = 1; i < 5; i++) {
        double middle = i == 1 || i == 4 ? 1 : 0; /* scale, bias, mean, variance */

        for (size_t k = 0; k < 256; k++) {
            T_NEAR(((const float *)g[0]->initializers[i].data)[k], middle, 0.1000001);
        }
    }
    for (int i = 0; i < 3; i++) {
        mdl_graph_free(g[i]);
    }
}

static size_t files_named(const char *dir, const char *start)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    size_t count = 0;

    while (d && (e = readdir(d)) != NULL) {
        count += strncmp(e->d_name, start, strlen(start)) == 0;
    }
    if (d) {
        closedir(d);
    }
    return d ? count : SIZE_MAX;
}

/* Weights in a file without a name are the same, and come back where their pages are dropped. */
TEST(weights_come_back_from_a_file)
{
    static const char *const text = NET("{\"op\": \"conv\", \"out\": 512, \"kernel\": 3},"
                                        "{\"op\": \"fc\", \"out\": 40, \"bias\": false}");
    static const char *const dirs[] = {NULL, ".", "/no/such/folder"};
    struct mdl_graph *g[3] = {0};

    for (size_t i = 0; i < 3; i++) {
        T_EQ(mdl_netdesc_read(text, strlen(text), dirs[i], false, error, &g[i]), 0);
    }
    T_TRUE(!g[0]->map_is_file && !g[2]->map_is_file);
    T_EQ(files_named(".", "weights-"), 0);
    if (!g[1]->map_is_file) {
        printf("  the folder of the tests is in memory, or full: no file\n");
    } else {
        T_EQ(madvise((void *)(uintptr_t)g[1]->file_map, g[1]->file_bytes, MADV_DONTNEED), 0);
    }
    T_EQ(g[1]->file_bytes, g[0]->file_bytes);
    T_TRUE(memcmp(g[1]->file_map, g[0]->file_map, g[0]->file_bytes) == 0);
    for (size_t i = 0; i < 3; i++) {
        mdl_graph_free(g[i]);
    }
}

TEST(weights_that_nobody_wants_are_zero)
{
    static const char *const text = NET("{\"op\": \"conv\", \"out\": 8, \"kernel\": 3}");
    struct mdl_graph *g[2] = {0};

    for (size_t i = 0; i < 2; i++) {
        T_EQ(mdl_netdesc_read(text, strlen(text), ".", i == 1, error, &g[i]), 0);
    }
    T_EQ(g[1]->file_bytes, g[0]->file_bytes);
    T_TRUE(!g[1]->map_is_file);
    for (size_t i = 0; i < g[0]->file_bytes; i++) {
        T_EQ(((const char *)g[1]->file_map)[i], 0);
    }
    T_TRUE(memcmp(g[1]->file_map, g[0]->file_map, g[0]->file_bytes) != 0);
    for (size_t i = 0; i < 2; i++) {
        mdl_graph_free(g[i]);
    }
}

TEST(errors_name_layer_and_key)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "line 1"},
        {"[]", "not a JSON object"},
        {"{\n\"input\": 1,\n\"input\": 2}", "line 3"},
        {"{\"input\": {\"shape\": [3, 8, 8]}, \"layers\": [{\"op\": \"softmax\"}], \"x\": 1}",
         "key 'x': unknown key"},
        {"{\"layers\": [{\"op\": \"softmax\"}]}", "key 'input'"},
        {"{\"input\": {\"shape\": [3, 8, 0]}, \"layers\": [{\"op\": \"softmax\"}]}", "key 'input'"},
        {"{\"input\": {\"shape\": [3, 8, 8]}, \"layers\": []}", "key 'layers'"},
        {"{\"input\": {\"shape\": [3, 8, 8]}, \"layers\": [{\"op\": \"softmax\"}], \"outputs\": "
         "[\"y\"]}",
         "key 'outputs': names no layer"},
        {NET("1"), "layer 0"},
        {NET("{\"op\": \"Conv\"}"), "layer 0 '' (?): key 'op': is missing or unknown"},
        {NET("{\"op\": \"conv\", \"kernel\": 3}"), "layer 0 'conv0' (conv): key 'out'"},
        {NET("{\"op\": \"conv\", \"out\": 4}"), "key 'kernel': is missing"},
        {NET("{\"op\": \"conv\", \"out\": 4, \"kernel\": 3, \"strides\": 2}"),
         "key 'strides': unknown key"},
        {NET("{\"op\": \"conv\", \"out\": 4, \"kernel\": 3, \"e g\": 2}"),
         "key 'e g': unknown key"},
        {NET("{\"op\": \"conv\", \"out\": 4, \"kernel\": 9}"), "larger than the padded input"},
        {NET("{\"op\": \"conv\", \"out\": 4, \"kernel\": 3, \"stride\": 0}"), "key 'stride'"},
        {NET("{\"op\": \"conv\", \"out\": 4, \"kernel\": 3, \"pad\": -1}"), "key 'pad'"},
        {NET("{\"op\": \"conv\", \"out\": 4, \"kernel\": [1, 2, 3]}"), "must be N or [h, w]"},
        {NET("{\"op\": \"conv\", \"out\": 4, \"kernel\": 3, \"groups\": 2}"), "key 'groups'"},
        {NET("{\"op\": \"conv\", \"out\": 4, \"kernel\": 3, \"act\": \"relux\"}"), "key 'act'"},
        {NET("{\"op\": \"conv\", \"out\": 1e3, \"kernel\": 3}"), "key 'out'"},
        {NET("{\"op\": \"fc\", \"out\": 70000}"), "whole number from 1 to 65536"},
        {NET("{\"op\": \"fc\", \"out\": 4}, {\"op\": \"maxpool\", \"kernel\": 2}"),
         "layer 1 'maxpool1' (maxpool): key 'in': is not an image"},
        {NET("{\"op\": \"maxpool\", \"kernel\": 2, \"pad\": 2}"), "smaller than the kernel"},
        {NET("{\"op\": \"softmax\", \"in\": \"later\"}, {\"op\": \"softmax\", \"name\": "
             "\"later\"}"),
         "layer 0 'softmax0' (softmax): key 'in': names no layer before this one"},
        {NET("{\"op\": \"softmax\", \"name\": \"s\"}, {\"op\": \"softmax\", \"name\": \"s\"}"),
         "layer 1 's' (softmax): key 'name': is already taken"},
        {NET("{\"op\": \"softmax\", \"name\": \"input\"}"), "is already taken"},
        {NET("{\"op\": \"softmax\", \"name\": \"\"}"), "key 'name'"},
        {NET("{\"op\": \"softmax\", \"name\": \"a\\u001b\"}"), "key 'name'"},
        {NET("{\"op\": \"add\"}"), "must have at least two names"},
        {NET("{\"op\": \"conv\", \"name\": \"a\", \"out\": 4, \"kernel\": 1}, {\"op\": \"add\", "
             "\"in\": [\"a\", \"input\"]}"),
         "the inputs have different shapes"},
        {NET("{\"op\": \"concat\", \"in\": []}"), "too few or too many"},
        {"{\"input\": {\"shape\": [16384, 16384, 16384]}, \"layers\": [{\"op\": \"fc\", \"out\": "
         "65536}]}",
         "layer 0"},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        T_LT(read_text(cases[i].text, NULL), 0);
        T_CONTAINS(error, cases[i].part);
    }
}

TEST(sizes_that_explode_are_refused)
{
    static char text[64 * 1024];
    size_t n = 0;

    n += (size_t)snprintf(text + n, sizeof(text) - n,
                          "{\"input\": {\"shape\": [16384, 1, 1]}, \"layers\": [");
    for (int i = 0; i < 20; i++) { /* 64^20 channels */
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "%s{\"op\": \"concat\", \"name\": \"c%d\", \"in\": [", i ? "," : "",
                              i);
        for (int k = 0; k < 64; k++) {
            n += (size_t)(i ? snprintf(text + n, sizeof(text) - n, "%s\"c%d\"", k ? "," : "", i - 1)
                            : snprintf(text + n, sizeof(text) - n, "%s\"input\"", k ? "," : ""));
        }
        n += (size_t)snprintf(text + n, sizeof(text) - n, "]}");
    }
    snprintf(text + n, sizeof(text) - n, "]}");
    T_EQ(read_text(text, NULL), -EBADMSG);
    T_CONTAINS(error, "too many channels");
    T_EQ(read_text("{\"input\": {\"shape\": [3, 16384, 16384]}, \"layers\": [{\"op\": \"fc\", "
                   "\"out\": 4096}]}",
                   NULL),
         -E2BIG);
    T_CONTAINS(error, "the weights are larger than 4 GiB");
    T_EQ(read_text("{\"input\": {\"shape\": [3, 16384, 16384]}, \"layers\": [{\"op\": "
                   "\"upsample\"}]}",
                   NULL),
         -EBADMSG);
}

/* Every text cut anywhere, and with bytes changed, is read or refused: no crash (see sanitizers).
 */
TEST(broken_texts)
{
    static const char good[] = NET(
        "{\"op\": \"conv\", \"name\": \"a\", \"out\": 4, \"kernel\": 3, \"pad\": \"same\", \"bn\": "
        "true, \"act\": \"elu\"}, {\"op\": \"upsample\"}, {\"op\": \"lrn\", \"size\": 3}, {\"op\": "
        "\"avgpool\", \"kernel\": 2, \"stride\": 2, \"ceil\": true}, {\"op\": \"fc\", \"out\": 2}");
    struct mdl_graph *g = NULL;
    size_t fine = 0;

    T_EQ(read_text(good, NULL), 0);
    for (size_t n = 0; n + 1 < sizeof(good); n++) {
        T_LT(mdl_netdesc_read(good, n, NULL, false, error, &g), 0);
        T_TRUE(error[0] != '\0');
    }
    for (int i = 0; i < 3000; i++) {
        char text[sizeof(good)];

        memcpy(text, good, sizeof(good));
        for (int k = 0; k <= i % 3; k++) {
            text[t_range(0, (int64_t)sizeof(good) - 2)] = (char)t_range(0, 127);
        }
        if (mdl_netdesc_read(text, sizeof(good) - 1, NULL, false, error, &g) == 0) {
            mdl_graph_free(g);
            fine++;
        }
    }
    T_LT(fine, 2999);
}

TEST(the_networks_of_the_papers)
{
    static const struct {
        const char *name;
        size_t heavy;
        double parameters; /* as published, batch norms' four vectors included */
    } nets[] = {
        {"alexnet", 8, 61.1e6},         {"vgg16", 16, 138.36e6},        {"resnet50", 54, 25.61e6},
        {"mobilenet_v1", 28, 4.25e6},   {"squeezenet1_1", 26, 1.235e6}, {"googlenet", 58, 7.02e6},
        {"yolov3", 75, 62.0e6},         {"synthnet", 18, 13.16e6},      {"synth1", 7, 0.152e6},
        {"synth2", 15, 0.361e6},        {"synth3", 13, 0.451e6},        {"resnet101", 105, 44.65e6},
        {"squeezenet1_0", 26, 1.248e6}, {"lenet", 4, 0.431e6},
    };
    const char *folder = getenv("PIPED_NETWORKS");

    if (!folder) {
        T_SKIP("PIPED_NETWORKS is not set");
    }
    for (size_t i = 0; i < base_array_count(nets); i++) {
        char path[4096], text[32768];
        struct mdl_graph *g = NULL;
        size_t heavy = 0, n;
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s.json", folder, nets[i].name);
        f = fopen(path, "r");
        T_TRUE(f != NULL);
        n = fread(text, 1, sizeof(text) - 1, f);
        fclose(f);
        text[n] = '\0';
        T_EQ(read_text(text, &g), 0);
        for (size_t k = 0; k < g->node_count; k++) {
            heavy += strcmp(g->nodes[k].op_type, "Conv") == 0 ||
                     strcmp(g->nodes[k].op_type, "Gemm") == 0;
        }
        T_EQ(heavy, nets[i].heavy);
        T_NEAR((double)g->file_bytes / 4, nets[i].parameters, 0.01 * nets[i].parameters);
        mdl_graph_free(g);
    }
}

/* Sandler et al. 2018, table 2. */
static void write_mobilenet_v2(FILE *f)
{
    static const struct {
        unsigned expand, out, count, stride;
    } rows[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    unsigned in = 32, block = 0;
    char from[16] = "first";

    fprintf(f, "{\"input\": {\"shape\": [3, 224, 224]}, \"layers\": [{\"op\": \"conv\", \"name\": "
               "\"first\", \"out\": 32, \"kernel\": 3, \"stride\": 2, \"pad\": 1, \"bn\": true, "
               "\"act\": \"relu6\"}");
    for (size_t r = 0; r < base_array_count(rows); r++) {
        for (unsigned i = 0; i < rows[r].count; i++, block++) {
            unsigned stride = i == 0 ? rows[r].stride : 1;
            bool add = stride == 1 && in == rows[r].out;

            if (rows[r].expand > 1) {
                fprintf(f,
                        ", {\"op\": \"conv\", \"out\": %u, \"kernel\": 1, \"bn\": true, \"act\": "
                        "\"relu6\"}",
                        in * rows[r].expand);
            }
            fprintf(
                f,
                ", {\"op\": \"dwconv\", \"kernel\": 3, \"stride\": %u, \"pad\": 1, \"bn\": true, "
                "\"act\": \"relu6\"}, {\"op\": \"conv\", \"name\": \"%c%u\", \"out\": %u, "
                "\"kernel\": 1, \"bn\": true}",
                stride, add ? 'p' : 'b', block, rows[r].out);
            if (add) {
                fprintf(f, ", {\"op\": \"add\", \"name\": \"b%u\", \"in\": [\"p%u\", \"%s\"]}",
                        block, block, from);
            }
            snprintf(from, sizeof(from), "b%u", block);
            in = rows[r].out;
        }
    }
    fprintf(f,
            ", {\"op\": \"conv\", \"out\": 1280, \"kernel\": 1, \"bn\": true, \"act\": \"relu6\"}, "
            "{\"op\": \"globalavgpool\"}, {\"op\": \"fc\", \"out\": 1000}]}");
}

static double share_of_all_tensors(const char *path)
{
    struct mdl_model *m = NULL;
    double share = -1;

    if (mdl_load(path, NULL, error, &m) == 0) {
        share = (double)m->arena_bytes / (double)m->tensor_bytes;
    } else {
        printf("  %s\n", error);
    }
    mdl_free(m);
    return share;
}

/* Activations of one frame against the sum of all tensors, as QS-DNN's table II has it. */
TEST(activations_share_their_memory)
{
    const char *folder = getenv("PIPED_NETWORKS");
    char path[4096], own[] = "/tmp/piped-netdesc-XXXXXX.json";
    double share;
    FILE *f;

    if (!folder) {
        T_SKIP("PIPED_NETWORKS is not set");
    }
    snprintf(path, sizeof(path), "%s/squeezenet1_1.json", folder);
    share = share_of_all_tensors(path);
    T_TRUE(share > 0 && share <= 0.15);
    snprintf(path, sizeof(path), "%s/resnet50.json", folder);
    share = share_of_all_tensors(path);
    T_TRUE(share > 0 && share <= 0.13);
    f = fdopen(mkstemps(own, 5), "w");
    T_TRUE(f != NULL);
    write_mobilenet_v2(f);
    fclose(f);
    share = share_of_all_tensors(own);
    unlink(own);
    printf("  MobileNetV2: %.3f\n", share);
    T_TRUE(share > 0 && share <= 0.12);
}

TEST_MAIN()
