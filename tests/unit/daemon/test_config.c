/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: comments, lines, every key's range, merging, hostile files. */
#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/config/merge.h"
#include "daemon/machine/machine.h"
#include "tests/harness.h"

static char folder[64];

static void write_file(const char *name, const void *bytes, size_t count)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "w");
    if (!f || fwrite(bytes, 1, count, f) != count || fclose(f) != 0) {
        fprintf(stderr, "cannot write %s\n", path);
        exit(1);
    }
}

static void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static char error_text[DMN_CONFIG_ERROR_MAX];

/* Loads @text as the main file. */
static int load_bytes(const void *bytes, size_t count, struct dmn_config **ret)
{
    char path[256];

    write_file("c.json", bytes, count);
    snprintf(path, sizeof(path), "%s/c.json", folder);
    return dmn_config_load(path, true, error_text, ret);
}

__attribute__((format(printf, 2, 3))) static int load(struct dmn_config **ret, const char *format,
                                                      ...)
{
    char text[8192];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return load_bytes(text, strlen(text), ret);
}

/* Are the row and the one before it in one object? */
static bool same_group(size_t row)
{
    const struct dmn_config_row *rows = dmn_config_rows;
    size_t n = strcspn(rows[row].key, ".");

    return rows[row].key[n] && strncmp(rows[row].key, rows[row - 1].key, n + 1) == 0;
}

TEST(defaults_are_within_their_ranges)
{
    const struct dmn_config_row *rows = dmn_config_rows;

    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        T_EQ(rows[i].id, i);
        T_TRUE(rows[i].help && rows[i].help[0] && rows[i].unit);
        /* advanced keys come last in their group */
        T_TRUE(i == 0 || !rows[i - 1].advanced || rows[i].advanced || !same_group(i));
        if (rows[i].type == DMN_CONFIG_INT) {
            T_LE(rows[i].min, rows[i].value);
            T_LE(rows[i].value, rows[i].max);
        }
        for (size_t k = 0; k < i; k++) {
            T_TRUE(strcmp(rows[i].key, rows[k].key) != 0);
        }
    }
}

/* {"a": {"b": VALUE}} for "a.b" */
static int load_key(const char *key, const char *value, struct dmn_config **ret)
{
    const char *dot = strchr(key, '.');

    if (dot) {
        return load(ret, "{\n\"%.*s\": {\n\"%s\": %s } }", (int)(dot - key), key, dot + 1, value);
    }
    return load(ret, "{\n\n\"%s\": %s }", key, value);
}

TEST(every_key_is_checked)
{
    struct dmn_config *c = NULL;
    char value[256], at[128];

    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        const struct dmn_config_row *r = &dmn_config_rows[i];

        snprintf(at, sizeof(at), "c.json:3: %s: ", r->key);
        if (r->type == DMN_CONFIG_INT) {
            const int64_t good[] = {r->min, r->max}, bad[] = {r->min - 1, r->max + 1};

            for (int k = 0; k < 2; k++) {
                snprintf(value, sizeof(value), "%lld", (long long)good[k]);
                T_EQ(load_key(r->key, value, &c), 0);
                T_EQ(dmn_config_int(c, r->id), good[k]);
                T_EQ(c->values[r->id].line, 3);
                c = dmn_config_free(c);
                snprintf(value, sizeof(value), "%lld", (long long)bad[k]);
                T_EQ(load_key(r->key, value, &c), -EINVAL);
                T_CONTAINS(error_text, at);
            }
            T_EQ(load_key(r->key, "1.5", &c), -EINVAL);
        } else if (r->type == DMN_CONFIG_BOOL) {
            T_EQ(load_key(r->key, "false", &c), 0);
            T_EQ(dmn_config_int(c, r->id), 0);
            c = dmn_config_free(c);
            T_EQ(load_key(r->key, "1", &c), -EINVAL);
        } else if (r->type == DMN_CONFIG_ENUM) {
            T_EQ(load_key(r->key, "\"no such choice\"", &c), -EINVAL);
            T_EQ(load_key(r->key, "1", &c), -EINVAL);
        } else {
            T_EQ(load_key(r->key, "7", &c), -EINVAL);
            snprintf(value, sizeof(value), "\"%0*d\"", (int)r->max + 1, 0);
            T_EQ(load_key(r->key, value, &c), -EINVAL);
        }
        T_CONTAINS(error_text, at);
        T_EQ(load_key(r->key, "null", &c), -EINVAL);
        T_EQ(load_key(r->key, "[]", &c), -EINVAL);
        T_EQ(load_key(r->key, "{}", &c), -EINVAL);
    }
}

TEST(weights_of_users)
{
    static const char *const bad[] = {
        "x",    "1",       "1=",   "=1",   "1=0",  "1=1001",       "1=2,",
        ",1=2", "1=2;3=4", "-1=2", "1=-2", "1 =2", "4294967295=1", "99999999999999999999=1"};
    struct dmn_config *c = NULL;

    for (size_t i = 0; i < base_array_count(bad); i++) {
        char value[64];

        snprintf(value, sizeof(value), "\"%s\"", bad[i]);
        T_EQ(load_key("limits.user_weights", value, &c), -EINVAL);
        T_CONTAINS(error_text, "limits.user_weights");
        T_TRUE(!dmn_config_weights_ok(bad[i]));
    }
    T_EQ(load_key("limits.user_weights", "\"0=1000,4294967294=1,33=7\"", &c), 0);
    T_EQ(dmn_config_user_weight(c, 33), 7);
    T_EQ(dmn_config_user_weight(c, 0), 1000);
    T_EQ(dmn_config_user_weight(c, 3), 1);
    c = dmn_config_free(c);
}

TEST(choices)
{
    struct dmn_config *c = NULL;
    const char *names[] = {"error", "warning", "notice", "info", "debug"};

    for (int i = 0; i < 5; i++) {
        T_EQ(load(&c, "{\"log_level\": \"%s\"}", names[i]), 0);
        T_EQ(dmn_config_int(c, DMN_KEY_LOG_LEVEL), i);
        c = dmn_config_free(c);
    }
    T_EQ(load(&c, "{\"socket_mode\": \"0999\"}"), -EINVAL);
    T_EQ(load(&c, "{\"socket_mode\": \"-1\"}"), -EINVAL);
    T_EQ(load(&c, "{\"socket_mode\": \"\"}"), -EINVAL);
    T_EQ(load(&c, "{\"socket_mode\": \"0600\"}"), 0);
    T_STR(dmn_config_string(c, DMN_KEY_SOCKET_MODE), "0600");
    dmn_config_free(c);
}

TEST(comments_end_with_their_line_and_spare_strings)
{
    char text[] = "{ // one\n \"a//b#\": \"x\\\" // # y\", # two // \n\"c\": 1 } // end";
    const char *wanted = "{       \n \"a//b#\": \"x\\\" // # y\",          \n\"c\": 1 }       ";

    dmn_config_strip(text, strlen(text));
    T_STR(text, wanted);
}

TEST(lines_of_values)
{
    const char *text =
        "{\n \"a\": 1,\n \"b\": { \"c\": [ 1,\n 2,\n {\"d\": \"}]\\\"\",\n \"e\": 5 } ] },\n"
        " \"f\": null\n}";

    T_EQ(dmn_config_line(text, "a"), 2);
    T_EQ(dmn_config_line(text, "b.c"), 3);
    T_EQ(dmn_config_line(text, "b.c[1]"), 4);
    T_EQ(dmn_config_line(text, "b.c[2].d"), 5);
    T_EQ(dmn_config_line(text, "b.c[2].e"), 6);
    T_EQ(dmn_config_line(text, "f"), 7);
    T_EQ(dmn_config_line(text, "nothing"), 1); /* the deepest part found: the object */
    T_EQ(dmn_config_line(text, "b.c[9]"), 3);
    T_EQ(dmn_config_line("", "a.b[1]"), 1);
}

TEST(models_merge_by_name_over_files)
{
    struct dmn_config *c = NULL;
    char path[128], wanted[256];

    snprintf(path, sizeof(path), "%s/c.json.d", folder);
    T_EQ(mkdir(path, 0700), 0);
    write_text("c.json.d/2.json", "{\"models\":[{\"name\":\"b\",\"path\":\"/new\"}]}");
    write_text("c.json.d/1.json",
               "{\"models\":[{\"name\":\"b\",\"path\":\"/old\"}],\"pin\":false}");
    write_text("c.json.d/ignored.txt", "{");
    T_EQ(load(&c, "{\"models\":[{\"name\":\"a\",\"path\":\"rel.onnx\",\"latest\":true,"
                  "\"plan\":\"0-9@big\"}]}"),
         0);
    T_EQ(c->model_count, 2);
    T_STR(c->models[0].name, "a");
    snprintf(wanted, sizeof(wanted), "%s/rel.onnx", folder);
    T_STR(c->models[0].path, wanted);
    T_TRUE(c->models[0].latest);
    T_STR(c->models[1].path, "/new");
    T_EQ(dmn_config_int(c, DMN_KEY_PIN), 0);
    T_EQ(dmn_config_add_model(c, "a", "/arg", "", error_text), 0);
    T_STR(c->models[0].path, "/arg");
    T_TRUE(!c->models[0].latest && !c->models[0].plan[0]); /* those of the other file */
    T_EQ(dmn_config_add_model(c, "a", "/other", "", error_text), -EINVAL);
    T_STR(error_text, "--model: \"a\" is given twice; name each by NAME=FILE");
    T_STR(c->models[0].path, "/arg");
    T_EQ(dmn_config_add_model(c, "no/name", "/arg", "", error_text), -EINVAL);
    T_EQ(c->model_count, 2);
    dmn_config_free(c);
    write_text("c.json.d/2.json", "{\n\"x\": 1}");
    T_EQ(load(&c, "{}"), -EINVAL);
    T_CONTAINS(error_text, "c.json.d/2.json:2: x: unknown key");
    snprintf(path, sizeof(path), "%s/c.json.d/2.json", folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/c.json.d/1.json", folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/c.json.d/ignored.txt", folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/c.json.d", folder);
    rmdir(path);
}

TEST(routes_of_models)
{
    char why[DMN_ROUTE_ERROR_MAX];
    struct dmn_route_text r;
    static const char *const bad[] = {
        "",
        "on",
        "0-1",
        "0-1@",
        "0-1@b2|",
        "0-1@b2+",
        "0-1@b2|3-4@b3",
        "0-1@b2|1-4@b3",
        "1-4@b2",
        "2-1@b2",
        "0-1@b2+b2",
        "0-1@b2*0",
        "0-1@b2*1001",
        "0-1@b2*",
        "0-1@-b",
        "0-1@b2 ",
        "0-99999999@b2",
        "0-0@a+b+c+d+e+f+g+h+i",
        "0-0@a2345678901234567890123456789012",
    };

    T_EQ(dmn_route_text_parse("0-16@here|17-44@b2+b_3*20", why, &r), 0);
    T_EQ(r.hop_count, 2);
    T_EQ(r.hop[1].first_unit, 17);
    T_EQ(r.hop[1].last_unit, 44);
    T_EQ(r.hop[1].board_count, 2);
    T_STR(r.hop[0].board[0].name, DMN_BOARD_HERE);
    T_STR(r.hop[1].board[1].name, "b_3");
    T_EQ(r.hop[1].board[0].share, 1);
    T_EQ(r.hop[1].board[1].share, 20);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (dmn_route_text_parse(bad[i], why, &r) != -EINVAL || !why[0]) {
            T_FAIL("taken: %s", bad[i]);
        }
    }
}

TEST(bad_models_and_places)
{
    struct dmn_config *c = NULL;
    const char *bad[] = {
        "{\"models\": 1}",
        "{\"models\": [1]}",
        "{\"models\": [{}]}",
        "{\"models\": [{\"name\":\"a\"}]}",
        "{\"models\": [{\"name\":\"a\",\"path\":\"\"}]}",
        "{\"models\": [{\"name\":\"a\",\"path\":3}]}",
        "{\"models\": [{\"name\":\"a\",\"path\":\"x\",\"latest\":1}]}",
        "{\"models\": [{\"name\":\"a\",\"path\":\"x\",\"more\":1}]}",
        "{\"models\": [{\"name\":\"a\",\"path\":\"x\",\"boards\":\"1-2@b\"}]}",
        "{\"models\": [{\"name\":\"a\",\"path\":\"x\",\"boards\":true}]}",
        "{\"models\": [{\"name\":\"a\",\"path\":\"x\"},{\"name\":\"a\",\"path\":\"y\"}]}",
        "{\"models\": [{\"name\":\"\",\"path\":\"x\"}]}",
        "{\"models\": [{\"name\":\"-a\",\"path\":\"x\"}]}",
        "{\"models\": [{\"name\":\"a\",\"path\":\"x\\u0000y\"}]}",
        "{\"eps\": {}}",
        "{\"eps\": [{\"name\":\"a\"}]}",
        "{\"eps\": [{\"name\":\"1a\",\"cpus\":\"0\"}]}",
        "{\"eps\": [{\"name\":\"a\",\"cpus\":[]}]}",
        "{\"eps\": [{\"name\":\"a\",\"cpus\":[0,-1]}]}",
        "{\"eps\": [{\"name\":\"a\",\"cpus\":[0,65536]}]}",
        "{\"eps\": [{\"name\":\"a\",\"cpus\":[0,\"1\"]}]}",
        "{\"eps\": [{\"name\":\"a\",\"cpus\":{}}]}",
        "{\"eps\": [{\"name\":\"a\",\"cpus\":\"0\",\"speed\":0}]}",
        "{\"eps\": [{\"name\":\"a\",\"cpus\":\"0\",\"speed\":1.1}]}",
        "{\"eps\": [{\"name\":\"a\",\"cpus\":\"0\"},{\"name\":\"a\",\"cpus\":\"1\"}]}",
        "{\"limits\": 1}",
        "{\"limits\": {\"streams\": {}}}",
        "{\"limits.streams\": {}}",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (load(&c, "%s", bad[i]) != -EINVAL) {
            T_FAIL("taken: %s", bad[i]);
        }
        T_CONTAINS(error_text, "c.json:1: ");
    }
    T_EQ(load(&c, "{\"eps\": [{\"name\":\"a\",\"cpus\":[4, 0, 65535]}]}"), 0);
    T_STR(c->eps[0].cpus, "4,0,65535");
    dmn_config_free(c);
    T_EQ(load(&c, "{\"eps\": [{\"name\":\"a\",\"cpus\":\"0-3\",\"speed\":0.5}]}"), 0);
    T_EQ(c->ep_count, 1);
    T_NEAR(c->eps[0].speed, 0.5, 1e-12);
    dmn_config_free(c);
}

TEST(hostile_files)
{
    struct dmn_config *c = NULL;
    static char deep[200000], big[DMN_CONFIG_FILE_MAX + 1];
    const char *names = "{\"spin_us\": 1}";

    memset(deep, '[', sizeof(deep));
    T_EQ(load_bytes(deep, sizeof(deep), &c), -EINVAL);
    memset(big, ' ', sizeof(big));
    T_EQ(load_bytes(big, sizeof(big), &c), -EINVAL);
    T_CONTAINS(error_text, "c.json: File too large");
    T_EQ(load_bytes("", 0, &c), 0); /* nothing said: defaults */
    c = dmn_config_free(c);
    T_EQ(load_bytes("// nothing\n# at all", 19, &c), 0);
    c = dmn_config_free(c);
    T_EQ(load_bytes("{\"a\0b\": 1}", 10, &c), -EINVAL);
    T_EQ(load_bytes("\xff\xfe{}", 4, &c), -EINVAL);
    T_EQ(load(&c, "%s%s", names, names), -EINVAL); /* something after the object */
    T_EQ(load(&c, "{\"spin_us\": 99999999999999999999}"), -EINVAL);
    T_EQ(dmn_config_load("/nonexistent/piped.json", true, error_text, &c), -ENOENT);
    T_EQ(dmn_config_load("/nonexistent/piped.json", false, error_text, &c), 0);
    c = dmn_config_free(c);
    T_EQ(dmn_config_load(folder, true, error_text, &c), -EINVAL);
}

/* Random damage to a good file: never a crash, and whatever is taken is within the table's ranges.
 */
TEST(random_damage)
{
    static const char good[] =
        "{ // c\n \"spin_us\": 10, \"limits\": {\"credits\": 5, \"streams\": 2},\n"
        "\"models\": [{\"name\": \"a\", \"path\": \"/x\"}], # d\n"
        "\"eps\": [{\"name\": \"e\", \"cpus\": \"0\"}], \"log_level\": \"info\" }";
    const struct dmn_config_row *rows = dmn_config_rows;
    int taken = 0;

    for (int round = 0; round < 1000; round++) {
        char text[sizeof(good)];
        struct dmn_config *c = NULL;
        int64_t damage = t_range(1, 3);

        memcpy(text, good, sizeof(good));
        for (int64_t k = 0; k < damage; k++) {
            text[t_range(0, (int64_t)sizeof(good) - 2)] =
                "{}[]\",:0123456789abcx\\/#\n "[t_range(0, 26)];
        }
        if (load_bytes(text, sizeof(good) - 1, &c) != 0) {
            T_TRUE(error_text[0] != '\0');
            continue;
        }
        taken++;
        for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
            if (rows[i].type == DMN_CONFIG_INT) {
                T_LE(rows[i].min, dmn_config_int(c, rows[i].id));
                T_LE(dmn_config_int(c, rows[i].id), rows[i].max);
            }
        }
        dmn_config_free(c);
    }
    T_LT(0, taken);
}

TEST(cpu_lists)
{
    uint16_t cpus[PL_CPU_MAX];
    char text[256];
    const char *bad[] = {"",   ",", "0,",  "0,,1", "-1",    "1-",  "3-1",
                         "0-", "x", "0 1", "0,0",  "0-3,2", "256", "99999999999"};

    T_EQ(dmn_cpu_list_parse("0-3,6,8-9", cpus, PL_CPU_MAX), 7);
    gov_cpulist_format(cpus, 7, text, sizeof(text));
    T_STR(text, "0-3,6,8-9");
    T_EQ(dmn_cpu_list_parse("5", cpus, PL_CPU_MAX), 1);
    gov_cpulist_format(cpus, 1, text, sizeof(text));
    T_STR(text, "5");
    T_EQ(dmn_cpu_list_parse("0-5", cpus, 5), -EINVAL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (dmn_cpu_list_parse(bad[i], cpus, PL_CPU_MAX) != -EINVAL) {
            T_FAIL("taken: \"%s\"", bad[i]);
        }
    }
}

int main(int argc, char **argv)
{
    char path[128];
    int ret;

    snprintf(folder, sizeof(folder), "/tmp/piped-test-XXXXXX");
    if (!mkdtemp(folder)) {
        perror("mkdtemp");
        return 1;
    }
    ret = t_main(argc, argv);
    snprintf(path, sizeof(path), "%s/c.json", folder);
    unlink(path);
    rmdir(folder);
    return ret;
}
