/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the state directory: written whole, read when every byte of them is right. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/base.h"
#include "daemon/config/state_file.h"
#include "tests/harness.h"

/* of the test below: by another program than ours */
#define SUM "684a138b7d293ed0f5b48b82e0d14e524dfa3fba6bef3f215132b8e485246443"

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
    int r = dmn_state_file_read(file, path, file == DMN_STATE_CHOICE ? "h" : NULL, &root);

    json_decref(root);
    return r;
}

TEST(names)
{
    char path[DMN_STATE_PATH_MAX], hash[80], name[5000];

    T_TRUE(dmn_state_file_path(DMN_STATE_PROFILE, "/state", "", "", path));
    T_STR(path, "/state/calibration.json");
    T_TRUE(dmn_state_file_path(DMN_STATE_RANGES, "/state", "", "net", path));
    T_STR(path, "/state/calibration-net.v2.json");
    memset(hash, 'a', sizeof(hash));
    hash[64] = '\0';
    T_TRUE(dmn_state_file_path(DMN_STATE_MODEL, "/s", hash, "NAME", path));
    T_EQ(strlen(path), strlen("/s/model-") + 64 + strlen("-NAME.v3.json"));
    T_TRUE(!dmn_state_file_path(DMN_STATE_PROFILE, NULL, "", "", path));
    T_TRUE(dmn_state_file_path(DMN_STATE_CHOICE, "/s", "ab#17-44", "net#17-44", path));
    T_STR(path, "/s/choice-ab#17-44-net#17-44.v2.json");
    memset(name, 'n', sizeof(name));
    name[4999] = '\0';
    T_TRUE(!dmn_state_file_path(DMN_STATE_RANGES, "/s", "", name, path));
}

TEST(every_file_has_a_row)
{
    for (size_t i = 0; i < DMN_STATE_FILE_COUNT; i++) {
        const struct dmn_state_row *row = &dmn_state_rows[i];

        T_TRUE(row->form && row->version > 0 && row->bytes_max > 0 && row->then);
        T_TRUE(!row->former || strlen(row->former) == strlen(row->form));
    }
}

TEST(what_is_written_is_read)
{
    char path[DMN_STATE_PATH_MAX], text[256];
    json_t *root = NULL;

    begin();
    T_TRUE(dmn_state_file_path(DMN_STATE_CHOICE, folder, "h", "net", path));
    T_EQ(reading(DMN_STATE_CHOICE, path), -ENOENT);
    T_EQ(dmn_state_file_write(DMN_STATE_CHOICE, path, "h", json_pack("{s:f}", "x", 0.5)), 0);
    get(path, text, sizeof(text));
    /* printf '{"version":2,"identity":"h","x":0.5' | b2sum -l 256 */
    T_STR(text, "{\"version\":2,\"identity\":\"h\",\"x\":0.5,\n\"checksum\":\"" SUM "\"}\n");
    T_EQ(dmn_state_file_write(DMN_STATE_CHOICE, path, "h", json_pack("{s:i}", "y", 2)), 0);
    T_EQ(dmn_state_file_read(DMN_STATE_CHOICE, path, "h", &root), 0);
    T_EQ(json_integer_value(json_object_get(root, "y")), 2);
    T_TRUE(!json_object_get(root, "checksum"));
    json_decref(root);
    T_EQ(unlink(path), 0);
    T_EQ(rmdir(folder), 0); /* nothing else was left there */
}

/* Return: it was set aside, and that is not there any more. */
static bool was_set_aside(const char *path)
{
    char aside[DMN_STATE_PATH_MAX + 16];

    snprintf(aside, sizeof(aside), "%s.damaged", path);
    return access(path, F_OK) != 0 && unlink(aside) == 0;
}

static void put_bytes(const char *path, const char *text, size_t bytes)
{
    FILE *f = fopen(path, "we");

    T_TRUE(f && fwrite(text, 1, bytes, f) == bytes);
    fclose(f);
}

TEST(any_changed_byte_is_found)
{
    char path[DMN_STATE_PATH_MAX], text[512];
    size_t bytes;

    begin();
    T_TRUE(dmn_state_file_path(DMN_STATE_RANGES, folder, "", "net", path));
    T_EQ(dmn_state_file_write(DMN_STATE_RANGES, path, NULL,
                              json_pack("{s:{s:[f,f]}}", "ranges", "x", -1.0, 2.0)),
         0);
    get(path, text, sizeof(text));
    bytes = strlen(text);
    for (size_t i = 0; i < bytes; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ (1 << bit));
            put_bytes(path, text, bytes);
            T_EQ(reading(DMN_STATE_RANGES, path), DMN_STATE_E_BAD);
            T_TRUE(was_set_aside(path));
            text[i] = (char)(text[i] ^ (1 << bit));
        }
        put_bytes(path, text, i);
        T_EQ(reading(DMN_STATE_RANGES, path), DMN_STATE_E_BAD);
        T_TRUE(was_set_aside(path));
    }
    put_bytes(path, text, bytes);
    T_EQ(reading(DMN_STATE_RANGES, path), 0);
    T_EQ(unlink(path), 0);
    T_EQ(rmdir(folder), 0);
}

TEST(other_files_are_refused)
{
    char path[DMN_STATE_PATH_MAX], text[512], other[DMN_STATE_PATH_MAX];
    char *at;

    begin();
    T_TRUE(dmn_state_file_path(DMN_STATE_CHOICE, folder, "h", "net", path));
    T_EQ(dmn_state_file_write(DMN_STATE_CHOICE, path, "g", json_object()), 0);
    T_EQ(reading(DMN_STATE_CHOICE, path), DMN_STATE_E_BAD); /* of another model */
    T_TRUE(was_set_aside(path));
    T_EQ(dmn_state_file_write(DMN_STATE_MODEL, path, "h", json_object()), 0);
    T_EQ(reading(DMN_STATE_CHOICE, path), DMN_STATE_E_BAD); /* another version: stays */
    get(path, text, sizeof(text));
    at = strstr(text, ",\n\"checksum\"");
    T_TRUE(at);
    snprintf(at, sizeof(text) - (size_t)(at - text), "}\n");
    put(path, text); /* as before checksums, but of this version's name */
    T_EQ(reading(DMN_STATE_CHOICE, path), DMN_STATE_E_BAD);
    T_TRUE(was_set_aside(path));
    put(path, "");
    T_EQ(truncate(path, (off_t)dmn_state_rows[DMN_STATE_CHOICE].bytes_max + 1), 0);
    T_EQ(reading(DMN_STATE_CHOICE, path), DMN_STATE_E_BAD);
    T_TRUE(was_set_aside(path));
    T_EQ(mkfifo(path, 0600), 0);
    T_EQ(reading(DMN_STATE_CHOICE, path), DMN_STATE_E_BAD);
    T_TRUE(was_set_aside(path));
    snprintf(other, sizeof(other), "%.200s/choice-h-net.v1.json", folder);
    put(other, "{\"version\":1}");
    T_EQ(reading(DMN_STATE_CHOICE, path), -ENOENT); /* made anew */
    T_EQ(unlink(other), 0);
    T_EQ(rmdir(folder), 0);
}

/* What users made is read from the format before checksums, once. */
TEST(the_former_format_is_written_again)
{
    char path[DMN_STATE_PATH_MAX], former[DMN_STATE_PATH_MAX];
    const char *why = NULL;
    json_t *root = NULL;

    begin();
    T_TRUE(dmn_state_file_path(DMN_STATE_SAVED, folder, "", "", path));
    snprintf(former, sizeof(former), "%.200s/models.v1.json", folder);
    put(former, "{\"version\":1,\"models\":[7]}");
    T_EQ(dmn_state_file_look(DMN_STATE_SAVED, path, &root, &why), 0);
    T_EQ(json_array_size(json_object_get(root, "models")), 1);
    json_decref(root);
    T_TRUE(access(former, F_OK) == 0 && access(path, F_OK) != 0); /* who looks changes nothing */
    for (size_t i = 0; i < 2; i++) {
        T_EQ(dmn_state_file_read(DMN_STATE_SAVED, path, NULL, &root), 0);
        T_EQ(json_array_size(json_object_get(root, "models")), 1);
        json_decref(root);
        T_TRUE(access(former, F_OK) != 0 && access(path, F_OK) == 0);
    }
    put(former, "{");
    T_EQ(dmn_state_file_remove(DMN_STATE_SAVED, path), 0);
    T_TRUE(access(former, F_OK) != 0 && access(path, F_OK) != 0);
    T_EQ(dmn_state_file_remove(DMN_STATE_SAVED, path), 0);
    put(former, "{");
    T_EQ(dmn_state_file_look(DMN_STATE_SAVED, path, &root, &why), DMN_STATE_E_BAD);
    T_STR(why, "it is not a JSON object");
    T_TRUE(access(former, F_OK) == 0);
    T_EQ(reading(DMN_STATE_SAVED, path), DMN_STATE_E_BAD);
    T_TRUE(was_set_aside(former));
    T_EQ(rmdir(folder), 0);
}

/* A failure leaves the previous file, and no draft. */
TEST(a_failure_leaves_the_previous_file)
{
    char path[DMN_STATE_PATH_MAX], draft[DMN_STATE_PATH_MAX + 8];

    begin();
    T_TRUE(dmn_state_file_path(DMN_STATE_PROFILE, folder, "", "", path));
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, path, NULL, json_pack("{s:i}", "x", 1)), 0);
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, path, NULL, NULL), -ENOMEM);
    snprintf(draft, sizeof(draft), "%s.new", path);
    T_EQ(mkdir(draft, 0700), 0);
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, path, NULL, json_pack("{s:i}", "x", 2)), -EISDIR);
    T_EQ(reading(DMN_STATE_PROFILE, path), 0);
    T_EQ(rmdir(draft), 0);
    T_EQ(unlink(path), 0);
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, "/nowhere/calibration.json", NULL, json_object()),
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
    T_EQ(dmn_state_file_write(DMN_STATE_PROFILE, path, NULL, json_pack("{s:i}", "x", 1)), 0);
    T_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    little.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    T_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
    r = dmn_state_file_write(DMN_STATE_PROFILE, path, NULL, json_pack("{s:s}", "x", text));
    T_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    T_EQ(r, -EFBIG);
    T_EQ(reading(DMN_STATE_PROFILE, path), 0);
    T_EQ(unlink(path), 0);
    T_EQ(rmdir(folder), 0); /* nothing else is in it */
}

TEST_MAIN()
