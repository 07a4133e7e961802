/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the state directory: written whole, read when they are of the right sort and version. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base.h"
#include "daemon/config/state_file.h"
#include "tests/harness.h"

static char folder[] = "/tmp/piped-state-XXXXXX";

static void begin(void)
{
    snprintf(folder, sizeof(folder), "/tmp/piped-state-XXXXXX");
    T_TRUE(mkdtemp(folder));
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    T_TRUE(f);
    fputs(text, f);
    fclose(f);
}

static void get(const char *path, char *ret, size_t bytes)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(ret, 1, bytes - 1, f) : 0;

    ret[n] = '\0';
    if (f) {
        fclose(f);
    }
}

static int reading(enum dmn_state_file file, const char *path)
{
    json_t *root = NULL;
    int r = dmn_state_file_read(file, path, &root);

    json_decref(root);
    return r;
}

TEST(names)
{
    char path[DMN_STATE_PATH_MAX], hash[80], name[5000];

    T_TRUE(dmn_state_file_path(DMN_STATE_PROFILE, "/state", "", "", path));
    T_STR(path, "/state/calibration.json");
    T_TRUE(dmn_state_file_path(DMN_STATE_RANGES, "/state", "", "net", path));
    T_STR(path, "/state/calibration-net.v1.json");
    memset(hash, 'a', sizeof(hash));
    hash[64] = '\0';
    T_TRUE(dmn_state_file_path(DMN_STATE_MODEL, "/s", hash, "NAME", path));
    T_EQ(strlen(path), strlen("/s/model-") + 64 + strlen("-NAME.v2.json"));
    T_TRUE(!dmn_state_file_path(DMN_STATE_PROFILE, NULL, "", "", path));
    T_TRUE(dmn_state_file_path(DMN_STATE_CHOICE, "/s", "ab#17-44", "net#17-44", path));
    T_STR(path, "/s/choice-ab#17-44-net#17-44.v1.json");
    memset(name, 'n', sizeof(name));
    name[4999] = '\0';
    T_TRUE(!dmn_state_file_path(DMN_STATE_RANGES, "/s", "", name, path));
}

TEST(every_file_has_a_row)
{
    for (size_t i = 0; i < DMN_STATE_FILE_COUNT; i++) {
        const struct dmn_state_row *row = &dmn_state_rows[i];

        T_TRUE(row->form && row->version > 0 && row->bytes_max > 0);
        T_TRUE(row->version_key || strstr(row->form, ".v"));
    }
}

TEST(what_is_written_is_read)
{
    char path[DMN_STATE_PATH_MAX], text[256];
    json_t *root = NULL;

    begin();
    T_TRUE(dmn_state_file_path(DMN_STATE_CHOICE, folder, "h", "net", path));
    T_EQ(reading(DMN_STATE_CHOICE, path), -ENOENT);
    T_EQ(dmn_state_file_write(DMN_STATE_CHOICE, path, json_pack("{s:f}", "x", 0.5)), 0);
    get(path, text, sizeof(text));
    T_STR(text, "{\"version\":1,\"x\":0.5}");
    T_EQ(dmn_state_file_write(DMN_STATE_CHOICE, path, json_pack("{s:i}", "y", 2)), 0);
    T_EQ(dmn_state_file_read(DMN_STATE_CHOICE, path, &root), 0);
    T_EQ(json_integer_value(json_object_get(root, "y")), 2);
    json_decref(root);
    T_EQ(unlink(path), 0);
    T_EQ(rmdir(folder), 0); /* nothing else was left there */
}

TEST(other_files_are_refused)
{
    static const struct {
        const char *text;
        int wanted;
    } cases[] = {{"{\"version\": 1}", 0},
                 {"{\"version\": 3}", DMN_STATE_E_OTHER},
                 {"{\"version\": \"1\"}", DMN_STATE_E_OTHER},
                 {"{}", DMN_STATE_E_OTHER},
                 {"", DMN_STATE_E_BAD},
                 {"{\"version\": 1", DMN_STATE_E_BAD},
                 {"[1]", DMN_STATE_E_BAD},
                 {"{\"version\": 1, \"version\": 1}", DMN_STATE_E_BAD}};
    char path[DMN_STATE_PATH_MAX];

    begin();
    T_TRUE(dmn_state_file_path(DMN_STATE_CHOICE, folder, "h", "net", path));
    for (size_t i = 0; i < base_array_count(cases); i++) {
        put(path, cases[i].text);
        T_EQ(reading(DMN_STATE_CHOICE, path), cases[i].wanted);
    }
    T_EQ(truncate(path, (off_t)dmn_state_rows[DMN_STATE_CHOICE].bytes_max + 1), 0);
    T_EQ(reading(DMN_STATE_CHOICE, path), DMN_STATE_E_BAD);
    T_EQ(unlink(path), 0);
    T_EQ(mkfifo(path, 0600), 0);
    T_EQ(reading(DMN_STATE_CHOICE, path), DMN_STATE_E_BAD);
    T_EQ(unlink(path), 0);
    T_EQ(rmdir(folder), 0);
}

/* A failure leaves the previous file, and no draft. */
TEST(a_failure_leaves_the_previous_file)
{
    char path[DMN_STATE_PATH_MAX], draft[DMN_STATE_PATH_MAX + 8];

    begin();
    T_TRUE(dmn_state_file_path(DMN_STATE_PROFILE, folder, "", "", path));
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, path, json_pack("{s:i}", "x", 1)), 0);
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, path, NULL), -ENOMEM);
    snprintf(draft, sizeof(draft), "%s.new", path);
    T_EQ(mkdir(draft, 0700), 0);
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, path, json_pack("{s:i}", "x", 2)), -EISDIR);
    T_EQ(reading(DMN_STATE_PROFILE, path), 0);
    T_EQ(rmdir(draft), 0);
    T_EQ(unlink(path), 0);
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, "/nowhere/calibration.json", json_object()),
         -ENOENT);
    T_EQ(rmdir(folder), 0);
}

/* What is written before the disk is full is in the draft alone. */
TEST(a_full_disk_leaves_the_previous_file)
{
    struct rlimit before, little = {.rlim_cur = 4096};
    char path[DMN_STATE_PATH_MAX], text[8192];
    int r;

    begin();
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    T_TRUE(dmn_state_file_path(DMN_STATE_PROFILE, folder, "", "", path));
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, path, json_pack("{s:i}", "x", 1)), 0);
    T_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    little.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    T_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
    r = dmn_state_file_write(DMN_STATE_PROFILE, path, json_pack("{s:s}", "x", text));
    T_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    T_EQ(r, -EFBIG);
    T_EQ(reading(DMN_STATE_PROFILE, path), 0);
    T_EQ(unlink(path), 0);
    T_EQ(rmdir(folder), 0); /* nothing else is in it */
}

TEST_MAIN()
