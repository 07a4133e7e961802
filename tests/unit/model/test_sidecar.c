/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base.h"
#include "model/sidecar.h"
#include "tests/harness.h"
#include "tests/unit/model/put_file.h"

static char error[MDL_ERROR_MAX];

static int parse(struct mdl_pool *pool, const char *text, struct mdl_sidecar *ret)
{
    int r = mdl_sidecar_parse(text, strlen(text), "x.sidecar.json", -1, pool, error, ret);

    if (r < 0) {
        printf("  %d: %s\n", r, error);
    }
    return r;
}

TEST(every_key)
{
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar s;

    T_EQ(mdl_pool_new(0, &pool), 0);
    T_EQ(parse(
             pool,
             "{\"comment\": \"hello\", \"preprocess\": {\"size\": [227, 128], \"mean\": [104, 117, "
             "123], \"std\": 2, \"colour\": \"bgr\", \"layout\": \"nhwc\", \"fit\": \"letterbox\", "
             "\"pad\": [10, 20.5]}, "
             "\"labels\": [\"cat\", \"a\\ndog\"]}",
             &s),
         0);
    T_TRUE(s.preproc.known);
    T_EQ(s.height, 227);
    T_EQ(s.width, 128);
    T_NEAR(s.preproc.mean[0], 104, 0);
    T_NEAR(s.preproc.mean[2], 123, 0);
    T_NEAR(s.preproc.std[0], 2, 0);
    T_NEAR(s.preproc.std[2], 2, 0);
    T_TRUE(s.preproc.bgr && s.preproc.nhwc);
    T_EQ(s.preproc.fit, MDL_FIT_LETTERBOX);
    T_TRUE(s.preproc.pad[0] == 10 && s.preproc.pad[1] == 20.5f && s.preproc.pad[3] == 20.5f);
    T_EQ(s.label_count, 2);
    T_STR(s.labels[0], "cat");
    T_STR(s.labels[1], "a dog");
}

TEST(scale_comes_before_mean_and_std)
{
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar s;

    T_EQ(mdl_pool_new(0, &pool), 0);
    /* torchvision: (pixel / 255 - mean) / std */
    T_EQ(parse(pool,
               "{\"preprocess\": {\"scale\": 0.00392156862745098, \"mean\": [0.485, 0.456, 0.406], "
               "\"std\": [0.229, 0.224, 0.225]}}",
               &s),
         0);
    for (int pixel = 0; pixel < 256; pixel += 51) {
        T_NEAR((pixel - s.preproc.mean[0]) / s.preproc.std[0], (pixel / 255.0 - 0.485) / 0.229,
               1e-5);
    }
    T_EQ(s.label_count, 0);
    T_EQ(parse(pool, "{}", &s), 0);
    T_NEAR(s.preproc.std[3], 1, 0);
    T_TRUE(!s.preproc.bgr && s.labels == NULL && s.height == 0);
}

TEST(bars_of_a_letterbox)
{
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar s;

    T_EQ(mdl_pool_new(0, &pool), 0);
    T_EQ(parse(pool, "{}", &s), 0);
    T_TRUE(s.preproc.pad[0] == 114 && s.preproc.pad[3] == 114);
    T_EQ(parse(pool, "{\"preprocess\": {\"pad\": 0}}", &s), 0);
    T_TRUE(s.preproc.pad[0] == 0 && s.preproc.pad[3] == 0);
    /* what becomes 0, whichever key comes first */
    T_EQ(parse(pool,
               "{\"preprocess\": {\"pad\": \"mean\", \"mean\": [0.4, 0.2], \"scale\": 0.004}}", &s),
         0);
    T_NEAR(s.preproc.pad[0], 100, 1e-3);
    T_NEAR(s.preproc.pad[2], 50, 1e-3);
    T_TRUE(s.preproc.pad[0] == s.preproc.mean[0]);
}

TEST(errors_name_file_and_key)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "x.sidecar.json: line 1"},
        {"[1]", "x.sidecar.json: not a JSON object"},
        {"{\n\n\"a\" 1}", "line 3"},
        {"{\"means\": 1}", "key 'means': unknown key"},
        {"{\"preprocess\": {\"Mean\": 1}}", "key 'Mean': unknown key"},
        {"{\"preprocess\": 1}", "key 'preprocess': must be an object"},
        {"{\"preprocess\": {\"mean\": \"1\"}}", "key 'mean'"},
        {"{\"preprocess\": {\"mean\": []}}", "key 'mean'"},
        {"{\"preprocess\": {\"mean\": [1, 2, 3, 4, 5]}}", "key 'mean'"},
        {"{\"preprocess\": {\"mean\": 1e300}}", "key 'mean'"},
        {"{\"preprocess\": {\"std\": [1, 0, 1]}}", "key 'std': must be above 1e-12"},
        {"{\"preprocess\": {\"std\": -1}}", "key 'std'"},
        {"{\"preprocess\": {\"scale\": 0}}", "key 'scale': must be a number above 1e-12"},
        {"{\"preprocess\": {\"scale\": 1e38}}",
         "key 'scale': must be a number above 1e-12 and below 1e12"},
        {"{\"preprocess\": {\"colour\": \"rgb\", \"color\": \"bgr\"}}",
         "key 'color': is given twice: as colour and as color"},
        {"{\"preprocess\": {\"colour\": \"RGB\"}}",
         "key 'colour': must be one of: \"rgb\" \"bgr\""},
        {"{\"preprocess\": {\"layout\": 3}}", "key 'layout'"},
        {"{\"preprocess\": {\"fit\": \"pad\"}}", "key 'fit'"},
        {"{\"preprocess\": {\"pad\": \"grey\"}}",
         "key 'pad': must be \"mean\", or 1 to 4 pixel values"},
        {"{\"preprocess\": {\"pad\": true}}", "key 'pad': must be"},
        {"{\"preprocess\": {\"pad\": [114, 256]}}", "key 'pad': must be"},
        {"{\"preprocess\": {\"pad\": -1}}", "key 'pad': must be"},
        {"{\"preprocess\": {\"pad\": []}}", "key 'pad': must be"},
        {"{\"preprocess\": {\"pad\": [1, \"2\"]}}", "key 'pad': must be"},
        {"{\"preprocess\": {\"size\": 224}}", "key 'size': must be [height, width]"},
        {"{\"preprocess\": {\"size\": [224, 0]}}", "key 'size'"},
        {"{\"preprocess\": {\"size\": [224, 99999]}}", "key 'size'"},
        {"{\"labels\": \"names.txt\"}", "is labels_file"},
        {"{\"labels\": [\"a\", 1]}", "key 'labels'"},
        {"{\"labels_file\": \"l.txt\"}", "key 'labels_file'"},
    };
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar s;

    T_EQ(mdl_pool_new(0, &pool), 0);
    for (size_t i = 0; i < base_array_count(cases); i++) {
        T_EQ(parse(pool, cases[i].text, &s), -EBADMSG);
        T_CONTAINS(error, cases[i].part);
    }
}

TEST(labels_file_stays_in_the_folder)
{
    char folder[] = "/tmp/piped-sidecar-XXXXXX", path[512], link[512];
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar s;

    T_EQ(mdl_pool_new(0, &pool), 0);
    T_TRUE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/in/m.onnx", folder);
    snprintf(link, sizeof(link), "%s/in", folder);
    T_EQ(mkdir(link, 0700), 0);
    T_EQ(mdl_sidecar_read(path, pool, error, &s), 0); /* none at all */
    T_TRUE(!s.preproc.known);
    T_NEAR(s.preproc.std[1], 1, 0);

    snprintf(link, sizeof(link), "%s/in/m.sidecar.json", folder);
    T_EQ(symlink("nowhere", link), 0);
    T_EQ(mdl_sidecar_read(path, pool, error, &s), -ENOENT);
    T_CONTAINS(error, "m.sidecar.json");
    T_EQ(unlink(link), 0);
    put_file(folder, "secret.txt", "secret\n");
    put_file(folder, "in/labels.txt", "one\r\ntwo\n\nfour");
    put_file(folder, "in/m.sidecar.json", "\xef\xbb\xbf{\"labels_file\": \"labels.txt\"}");
    T_EQ(mdl_sidecar_read(path, pool, error, &s), 0);
    T_EQ(s.label_count, 4);
    T_STR(s.labels[0], "one");
    T_STR(s.labels[2], "");
    T_STR(s.labels[3], "four");

    static const char *const bad[] = {"../secret.txt", "/etc/passwd", "x/../../secret.txt", "link",
                                      ""};
    snprintf(link, sizeof(link), "%s/in/link", folder);
    T_EQ(symlink("../secret.txt", link), 0);
    for (size_t i = 0; i < base_array_count(bad); i++) {
        char text[128];
        int r;

        snprintf(text, sizeof(text), "{\"labels_file\": \"%s\"}", bad[i]);
        put_file(folder, "in/m.sidecar.json", text);
        r = mdl_sidecar_read(path, pool, error, &s);
        printf("  %d: %s\n", r, error);
        T_TRUE(r == -EXDEV || r == -ELOOP);
        T_CONTAINS(error, "m.sidecar.json: key 'labels_file'");
    }
    put_file(folder, "in/m.sidecar.json", "{\"labels_file\": \"gone.txt\"}");
    T_EQ(mdl_sidecar_read(path, pool, error, &s), -ENOENT);
    T_CONTAINS(error, "gone.txt");
    put_file(folder, "in/labels.txt", "\xff\xfe\n");
    put_file(folder, "in/m.sidecar.json", "{\"labels_file\": \"labels.txt\"}");
    T_EQ(mdl_sidecar_read(path, pool, error, &s), -EBADMSG);
    T_CONTAINS(error, "not UTF-8");
    /* a sidecar that is no file */
    snprintf(link, sizeof(link), "%s/in/f.sidecar.json", folder);
    T_EQ(mkfifo(link, 0600), 0);
    snprintf(path, sizeof(path), "%s/in/f.onnx", folder);
    T_EQ(mdl_sidecar_read(path, pool, error, &s), -EINVAL);
    T_CONTAINS(error, "f.sidecar.json: not a regular file");

    snprintf(path, sizeof(path), "rm -r '%s'", folder);
    T_EQ(system(path), 0);
}

TEST_MAIN()
