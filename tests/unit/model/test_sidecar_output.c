/* SPDX-License-Identifier: Apache-2.0 */
/* The sidecar's key `output`: what is refused names the file, the key and what it may be. */
#include <sys/stat.h>

#include "base/base.h"
#include "base/output_keys.h"
#include "model/sidecar.h"
#include "tests/harness.h"
#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/put_file.h"

static char error[MDL_ERROR_MAX];

static int parse(struct mdl_pool *pool, const char *output, struct mdl_sidecar *ret)
{
    char text[2048];

    snprintf(text, sizeof(text), "{\"output\": %s}", output);
    return mdl_sidecar_parse(text, strlen(text), "x.sidecar.json", -1, pool, error, ret);
}

TEST(what_real_networks_need_is_accepted)
{
    static const char *const good[] = {
        "{\"decode\": \"classes\", \"activation\": \"none\", \"most\": 3}",
        "{\"decode\": \"yolo\"}",
        "{\"decode\": \"yolo\", \"objectness\": \"product\", \"score\": 0.25, \"iou\": 0.45}",
        "{\"decode\": \"yolo\", \"keypoints\": 17}",
        ("{\"decode\": \"yolo\", \"head\": \"yolov5\", \"objectness\": \"product\", \"strides\": "
         "[8, 16, "
         "32], \"anchors\": [[[10, 13], [16, 30], [33, 23]], [[30, 61], [62, 45], [59, 119]], "
         "[[116, "
         "90], [156, 198], [373, 326]]]}"),
        "{\"decode\": \"ssd\", \"tensors\": {\"boxes\": \"boxes\", \"scores\": \"scores\"}, "
        "\"unit\": "
        "\"relative\", \"score\": 0.7, \"iou\": 0.3}",
        ("{\"decode\": \"ssd\", \"coding\": \"grid\", \"strides\": [8, 16, 32], \"objectness\": "
         "\"root\", "
         "\"background\": false, \"keypoints\": 5, \"tensors\": {\"scores\": [\"cls_8\", "
         "\"cls_16\", "
         "\"cls_32\"]}}"),
        "{\"decode\": \"boxes\", \"columns\": [\"skip\", \"x1\", \"y1\", \"x2\", \"y2\", "
        "\"class\", "
        "\"score\"]}",
        "{\"decode\": \"dbnet\", \"threshold\": 0.3, \"score\": 0.6, \"unclip\": 1.5}",
        "{\"decode\": \"ctc\", \"alphabet\": [\"a\", \"b\"], \"space\": true}",
        "{\"decode\": \"keypoints\", \"columns\": [\"y\", \"x\", \"score\"], \"unit\": "
        "\"relative\"}",
        "{\"decode\": \"mask\", \"background\": false}",
    };
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar s;

    T_EQ(mdl_pool_new(0, &pool), 0);
    for (size_t i = 0; i < base_array_count(good); i++) {
        T_EQ(parse(pool, good[i], &s), 0);
        T_CONTAINS(s.output, "\"decode\"");
    }
    T_EQ(mdl_sidecar_parse("{}", 2, "x.sidecar.json", -1, pool, error, &s), 0);
    T_TRUE(s.output == NULL);
}

TEST(errors_name_file_key_and_value)
{
    static const struct {
        const char *output, *part;
    } cases[] = {
        {"1", "x.sidecar.json: key 'output': must be an object"},
        {"{}", "key 'output': key 'decode': must be one of: \"classes\" \"yolo\" \"ssd\""},
        {"{\"decode\": \"yollo\"}", "not \"yollo\"; did you mean yolo?"},
        {"{\"decode\": \"yolo\", \"anchor\": 1}",
         "key 'anchor': unknown key; did you mean anchors?"},
        {"{\"decode\": \"yolo\", \"unclip\": 1}", "key 'unclip': is not for \"decode\": \"yolo\""},
        {"{\"decode\": \"yolo\", \"score\": 1.5}", "key 'score': must be a number from 0 to 1"},
        {"{\"decode\": \"yolo\", \"score\": \"0.5\"}", "key 'score': must be a number from 0 to 1"},
        {"{\"decode\": \"yolo\", \"most\": 0}",
         "key 'most': must be a whole number from 1 to 10000"},
        {"{\"decode\": \"yolo\", \"most\": 1.5}", "key 'most': must be a whole number"},
        {"{\"decode\": \"yolo\", \"across\": 1}", "key 'across': must be true or false"},
        {"{\"decode\": \"yolo\", \"layout\": \"row\"}", "not \"row\"; did you mean rows?"},
        {"{\"decode\": \"yolo\", \"head\": \"yolox\"}", "key 'strides': is missing"},
        {"{\"decode\": \"yolo\", \"strides\": [8]}", "key 'strides': this needs \"head\""},
        {"{\"decode\": \"ssd\", \"strides\": [8]}", "key 'strides': this needs \"coding\""},
        {"{\"decode\": \"yolo\", \"head\": \"yolox\", \"strides\": [0]}",
         "key 'strides': must be 1 to 16 whole numbers from 1 to 4096"},
        {"{\"decode\": \"yolo\", \"head\": \"yolov3\", \"strides\": [8]}",
         "key 'anchors': is missing"},
        {"{\"decode\": \"yolo\", \"head\": \"yolov3\", \"strides\": [8], \"anchors\": [[[1, 2]], "
         "[[1, "
         "2]]]}",
         "key 'anchors': must have a list for each of \"strides\""},
        {"{\"decode\": \"yolo\", \"head\": \"yolov3\", \"strides\": [8], \"anchors\": [[[1]]]}",
         "key 'anchors': must be a list for each stride (at most 16), of 1 to 32 pairs"},
        {"{\"decode\": \"ssd\", \"variances\": [0.1]}", "key 'variances': must be two numbers"},
        {"{\"decode\": \"boxes\", \"columns\": [\"x1\", \"y1\", \"x2\"]}",
         "key 'columns': must say a box"},
        {"{\"decode\": \"boxes\", \"columns\": [\"x1\", \"x1\"]}", "names \"x1\" twice"},
        {"{\"decode\": \"boxes\", \"columns\": [\"x1\", \"y3\"]}",
         "key 'columns': must be one of:"},
        {"{\"decode\": \"boxes\", \"tensors\": {\"box\": \"b\"}}", "not \"box\""},
        {"{\"decode\": \"boxes\", \"tensors\": {\"boxes\": 1}}", "\"boxes\" must be the name"},
        {"{\"decode\": \"classes\", \"tensors\": {\"scores\": \"s\"}}",
         "key 'tensors': \"decode\": \"classes\" with these keys does not read \"scores\"; it "
         "reads: \"boxes\""},
        {"{\"decode\": \"yolo\", \"tensors\": {\"boxes\": \"b\", \"scores\": \"s\"}}",
         "does not read \"scores\"; it reads: \"boxes\""},
        {"{\"decode\": \"mask\", \"tensors\": {\"classes\": \"s\"}}",
         "does not read \"classes\"; it reads: \"boxes\""},
        {"{\"decode\": \"ssd\", \"tensors\": {\"keypoints\": \"k\"}}",
         "does not read \"keypoints\"; it reads: \"boxes\" \"scores\""},
        {"{\"decode\": \"ssd\", \"keypoints\": 5, \"tensors\": {\"objectness\": \"o\"}}",
         "does not read \"objectness\"; it reads: \"boxes\" \"scores\" \"keypoints\""},
        {"{\"decode\": \"boxes\", \"tensors\": {\"keypoints\": \"k\"}}",
         "it reads: \"boxes\" \"scores\" \"classes\" \"count\" \"indices\""},
        {"{\"decode\": \"boxes\", \"tensors\": {\"indices\": \"i\", \"count\": \"c\"}}",
         "does not read \"count\"; it reads: \"boxes\" \"scores\" \"indices\""},
        {"{\"decode\": \"keypoints\", \"columns\": [\"x\"]}", "needs \"x\" and \"y\""},
        {"{\"decode\": \"ctc\"}", "key 'alphabet': give one of \"alphabet\" and \"alphabet_file\""},
        {"{\"decode\": \"ctc\", \"alphabet\": []}",
         "key 'alphabet': must be a list of 1 to 100000"},
        {"{\"decode\": \"ctc\", \"alphabet_file\": \"a.txt\"}", "key 'alphabet_file': there is no"},
    };
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar s;

    T_EQ(mdl_pool_new(0, &pool), 0);
    for (size_t i = 0; i < base_array_count(cases); i++) {
        T_EQ(parse(pool, cases[i].output, &s), -EBADMSG);
        T_CONTAINS(error, "x.sidecar.json: key 'output': ");
        T_CONTAINS(error, cases[i].part);
    }
}

TEST(the_alphabet_file_is_read_and_stays_in_the_folder)
{
    char folder[] = "/tmp/piped-alphabet-XXXXXX", path[512];
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar s;

    T_EQ(mdl_pool_new(0, &pool), 0);
    T_TRUE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/m.onnx", folder);
    put_file(folder, "m.sidecar.json",
             "{\"output\": {\"decode\": \"ctc\", \"alphabet_file\": \"a.txt\"}}");
    put_file(folder, "a.txt", "a\r\n\xc3\xa4\n \n\"");
    T_EQ(mdl_sidecar_read(path, pool, error, &s), 0);
    T_STR(s.output, "{\"decode\":\"ctc\",\"alphabet\":[\"a\",\"\xc3\xa4\",\" \",\"\\\"\"]}");
    put_file(folder, "a.txt",
             "\xef\xbb\xbf"
             "a\nb\n"); /* a byte order mark */
    T_EQ(mdl_sidecar_read(path, pool, error, &s), 0);
    T_STR(s.output, "{\"decode\":\"ctc\",\"alphabet\":[\"a\",\"b\"]}");
    put_file(folder, "a.txt", "a\n\xff\n");
    T_EQ(mdl_sidecar_read(path, pool, error, &s), -EBADMSG);
    T_CONTAINS(error, "m.sidecar.json: key 'output': key 'alphabet_file': a.txt must be 1 to "
                      "100000 lines of UTF-8");
    put_file(folder, "a.txt", "");
    T_EQ(mdl_sidecar_read(path, pool, error, &s), -EBADMSG);
    put_file(folder, "m.sidecar.json",
             "{\"output\": {\"decode\": \"ctc\", \"alphabet_file\": \"../a.txt\"}}");
    T_EQ(mdl_sidecar_read(path, pool, error, &s), -EXDEV);
    T_CONTAINS(error, "key 'alphabet_file'");
    snprintf(path, sizeof(path), "rm -r '%s'", folder);
    T_EQ(system(path), 0);
}

/* a: what Softmax made; b: what Sigmoid made; r: what Relu made */
static bool ends_so(const char *op, const char *inputs, const char *outputs, const char *output)
{
    struct gb g;
    bool ends;

    gb_init(&g, 13);
    gb_input(&g, "x", 2, (int64_t[]){1, 6});
    gb_node(&g, "Softmax", "", "x", "a");
    gb_node(&g, "Sigmoid", "", "x", "b");
    gb_node(&g, "Relu", "", "x", "r");
    gb_node(&g, "Identity", "", "b", "c");
    gb_node(&g, op, "", inputs, outputs);
    ends = mdl_ends_in_probabilities(&g.graph, output);
    gb_free(&g);
    return ends;
}

TEST(what_ends_in_probabilities)
{
    T_TRUE(ends_so("Relu", "x", "y", "a"));
    T_TRUE(!ends_so("Relu", "a", "y", "y"));
    T_TRUE(ends_so("Slice", "a x x", "y", "y"));
    T_TRUE(!ends_so("Slice", "r a a", "y", "y"));
    T_TRUE(ends_so("Gather", "a x", "y", "y"));
    T_TRUE(ends_so("Clip", "b", "y", "y"));
    T_TRUE(ends_so("Split", "b", "y z", "y"));
    T_TRUE(ends_so("Split", "b", "y z", "z"));
    T_TRUE(ends_so("Concat", "b c", "y", "y"));
    T_TRUE(!ends_so("Concat", "b r", "y", "y"));
    T_TRUE(!ends_so("Concat", "r b", "y", "y"));
}

/* A join of joins has more paths than anyone follows. */
TEST(what_ends_in_very_many_joins)
{
    char in[40], out[8];
    struct gb g;

    gb_init(&g, 13);
    gb_node(&g, "Sigmoid", "", "x", "v0");
    for (int i = 0; i < 30; i++) {
        snprintf(in, sizeof(in), "v%d v%d", i, i);
        snprintf(out, sizeof(out), "v%d", i + 1);
        gb_node(&g, "Concat", "", in, out);
    }
    T_TRUE(mdl_ends_in_probabilities(&g.graph, "v2"));
    T_TRUE(!mdl_ends_in_probabilities(&g.graph, "v30"));
    gb_free(&g);
}

TEST_MAIN()
