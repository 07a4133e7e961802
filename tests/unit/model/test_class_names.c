/* SPDX-License-Identifier: Apache-2.0 */
/* What exporters write into a file's metadata: the classes' names, and who made the network. */

#include "base/base.h"
#include "model/inspection.h"
#include "model/sidecar.h"
#include "model/signs.h"
#include "tests/unit/model/load_files.h"

static struct mdl_pool *pool;

/* Return: how many; the names joined are @joined. */
static size_t read_joined(const char *text, char *joined, size_t room)
{
    size_t count, used = 0;
    char **names;

    mdl_pool_free(pool);
    joined[0] = '\0';
    if (mdl_pool_new(1 << 20, &pool) < 0) {
        return SIZE_MAX;
    }
    names = mdl_class_names(text, pool, &count);
    for (size_t i = 0; i < count && used < room; i++) {
        used += (size_t)snprintf(joined + used, room - used, "%s%s", i ? "|" : "", names[i]);
    }
    return count;
}

TEST(names_of_python_and_of_json)
{
    char all[200];

    T_EQ(read_joined("{0: 'person', 1: 'traffic light', 2: \"bird's nest\"}", all, sizeof(all)), 3);
    T_STR(all, "person|traffic light|bird's nest");
    T_EQ(read_joined("{\"0\": \"a\", \"1\": \"b \\\"c\\\"\"}", all, sizeof(all)), 2);
    T_STR(all, "a|b \"c\"");
    T_EQ(read_joined(" [ 'tench','\\\\' , \"\"] ", all, sizeof(all)), 3);
    T_STR(all, "tench|\\|");
}

TEST(other_texts_have_no_names)
{
    static const char *const texts[] = {"",          "person",    "{",
                                        "[]",        "{}",        "{0: 'a'",
                                        "{0: 'a'}}", "{1: 'a'}",  "{0: 'a', 2: 'b'}",
                                        "{0: a}",    "{0 'a'}",   "{'0: 'a'}",
                                        "{-1: 'a'}", "['a'",      "['a",
                                        "['a\\",     "['\\x41']", "['a',]",
                                        "['a' 'b']", "[['a']]",   "{99999999999999999999999: 'a'}"};
    char all[100], deep[MDL_LABEL_BYTES_MAX + 10];

    for (size_t i = 0; i < base_array_count(texts); i++) {
        T_EQ(read_joined(texts[i], all, sizeof(all)), 0);
    }
    memset(deep, 'n', sizeof(deep));
    memcpy(deep, "['", 2);
    memcpy(deep + sizeof(deep) - 3, "']", 3);
    T_EQ(read_joined(deep, all, sizeof(all)), 0); /* too long a name */
}

static void note(struct pb *model, const char *key, const char *value)
{
    struct pb entry = {0};

    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_sub(model, 14, entry);
}

/* Inspects a network for pictures whose metadata has these, besides some that matter to nobody. */
static void look(const char *task, const char *names, struct mdl_inspection *ret)
{
    static const int64_t picture[] = {1, 3, 64, 64};
    struct mdl_load_options options = {0};
    struct pb g = {0}, m;

    pb_sub(&g, 1, pb_node("Relu", "relu", "x", NULL, "y"));
    pb_sub(&g, 11, pb_value("x", 1, picture, 4));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    m = pb_model(g, 8, 13);
    note(&m, "licence", "two\nlines, \xff and \x01");
    note(&m, "author", "Ultralytics");
    note(&m, "task", task);
    note(&m, "names", names);
    T_EQ(mdl_inspect(load_put("look.onnx", m.data, m.bytes), &options, ret), 0);
    pb_free(&m);
}

TEST(the_file_tells_its_classes_and_its_maker)
{
    struct mdl_inspection in;

    look("detect", "{0: 'person', 1: 'bicycle'}", &in);
    T_TRUE(in.model != NULL);
    T_EQ(in.label_count, 2);
    T_STR(in.labels[1], "bicycle");
    T_EQ(in.guess.fit, PICTURE_LETTERBOX);
    T_NEAR(in.guess.scale, 1. / 255, 1e-9);
    T_CONTAINS(in.guess.why, "Ultralytics");
    mdl_inspection_deinit(&in);
    look("classify", "tench", &in);
    T_TRUE(in.model != NULL && in.labels == NULL);
    T_EQ(in.label_count, 0);
    T_EQ(in.guess.fit, PICTURE_CROP);
    mdl_inspection_deinit(&in);
    pool = mdl_pool_free(pool);
}

LOAD_MAIN()
