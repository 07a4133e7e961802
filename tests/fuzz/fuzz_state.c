/* SPDX-License-Identifier: Apache-2.0 */
/* Kept files: the first byte says which, and whether the rest gets a checksum that fits. Without
 * one that fits, nothing of a file is used; with one, what makes no sense is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "daemon/config/config.h"
#include "daemon/config/state_file.h"
#include "daemon/service/log.h"
#include "tests/fuzz/replay.h"

#define IDENTITY "0123456789abcdef"

static char folder[64];

static void remove_folder(void)
{
    for (size_t i = 0; i < DMN_STATE_FILE_COUNT; i++) {
        char path[DMN_STATE_PATH_MAX], aside[DMN_STATE_PATH_MAX + 16];

        if (dmn_state_file_path((enum dmn_state_file)i, folder, IDENTITY, "m", path)) {
            snprintf(aside, sizeof(aside), "%s.damaged", path);
            (void)unlink(path);
            (void)unlink(aside);
        }
    }
    (void)rmdir(folder);
}

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    static const char *const texts[] = {
        ("{\"version\":2,\"models\":[{\"name\":\"m\",\"path\":\"/m.onnx\",\"plan\":\"\","
         "\"shapes\":\"\"}]}"),
        "{\"version\":3,\"identity\":\"" IDENTITY "\",\"states\":[]}",
        "{\"version\":2,\"ranges\":{\"x\":[0,1]},\"model\":\"" IDENTITY "\"}",
    };
    size_t which = index / 2, bytes;

    if (which >= sizeof(texts) / sizeof(texts[0]) || strlen(texts[which]) + 1 > cap) {
        return 0;
    }
    bytes = strlen(texts[which]);
    data[0] = (unsigned char)(index % 2 ? 0x80 | DMN_STATE_SAVED : DMN_STATE_SAVED);
    memcpy(data + 1, texts[which], bytes);
    return bytes + 1;
}

static void put(const char *path, const uint8_t *data, size_t bytes, bool sealed)
{
    json_t *root = sealed ? json_loadb((const char *)data, bytes, 0, NULL) : NULL;
    base_autofree char *text = json_is_object(root) && json_object_size(root) > 0
                                   ? dmn_seal_json(root, JSON_COMPACT)
                                   : NULL;
    FILE *f = fopen(path, "w");

    json_decref(root);
    MUST(f);
    MUST(fwrite(text ? (const void *)text : data, 1, text ? strlen(text) : bytes, f) ==
         (text ? strlen(text) : bytes));
    MUST(fclose(f) == 0);
}

static void read_saved(void)
{
    char error[DMN_CONFIG_ERROR_MAX];
    struct dmn_config *c = NULL;

    MUST(dmn_config_load(NULL, false, error, &c) == 0);
    MUST(dmn_saved_merge(c, folder) == 0);
    MUST(!c->saved_error || c->model_count == 0);
    for (size_t i = 0; i < c->model_count; i++) {
        MUST(dmn_config_name_ok(c->models[i].name));
    }
    dmn_config_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    enum dmn_state_file file =
        (enum dmn_state_file)(bytes ? (data[0] & 0x7f) % DMN_STATE_FILE_COUNT : 0);
    char path[DMN_STATE_PATH_MAX];
    json_t *root = NULL;
    int r;

    if (folder[0] == '\0') {
        snprintf(folder, sizeof(folder), "/dev/shm/piped-fuzz-XXXXXX");
        MUST(mkdtemp(folder) && atexit(remove_folder) == 0);
        dmn_log_level(-1);
    }
    MUST(dmn_state_file_path(file, folder, IDENTITY, "m", path));
    put(path, data + (bytes > 0), bytes - (bytes > 0), bytes && (data[0] & 0x80));
    if (file == DMN_STATE_SAVED) {
        read_saved();
        return 0;
    }
    r = dmn_state_file_read(
        file, path,
        dmn_state_rows[file].form && strstr(dmn_state_rows[file].form, "HASH") ? IDENTITY : NULL,
        &root);
    MUST((r == 0) == (root != NULL));
    json_decref(root);
    return 0;
}
