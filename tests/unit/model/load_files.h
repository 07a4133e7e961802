/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/model/load_files.h - files to load, in a folder that goes with the program
 *
 * LOAD_MAIN() instead of TEST_MAIN() makes the folder.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/model.h"
#include "tests/harness.h"
#include "tests/unit/model/onnx_bytes.h"

/* One of each in a program, although each of its files has them. */
__attribute__((weak)) char load_error[MDL_ERROR_MAX];
__attribute__((weak)) char load_folder[] = "/tmp/piped-load-XXXXXX";

/* Return: the path of a file of this name in the folder, good until the eighth next call */
static inline const char *load_path(const char *name)
{
    static char path[8][256];
    static int turn;

    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", load_folder, name);
    return path[turn];
}

/* Writes a file anew. Return: its path, as load_path() */
static inline const char *load_put(const char *name, const void *data, size_t bytes)
{
    const char *path = load_path(name);
    FILE *f;

    unlink(path); /* cutting a file to nothing makes some file systems write it out */
    f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) {
        abort();
    }
    return path;
}

/* Loads, prints what is refused unless @quiet, frees. Return: of mdl_load(); load_error has why */
static inline int load_try(const char *path, bool quiet)
{
    struct mdl_model *m = NULL;
    int r;

    memset(load_error, 'X', sizeof(load_error));
    load_error[MDL_ERROR_MAX - 1] = '\0';
    r = mdl_load(path, NULL, load_error, &m);
    if (r < 0 && !quiet) {
        printf("  %d (%s): %s\n", r, strerror(-r), load_error);
    }
    if (r == 0) {
        m = mdl_free(m);
    }
    return r;
}

/* load_try() of an ONNX model, which it frees */
static inline int load_model(struct pb model)
{
    int r = load_try(load_put("m.onnx", model.data, model.bytes), false);

    pb_free(&model);
    return r;
}

static inline void load_remove_folder(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", load_folder);
    if (system(command) != 0) {
        fprintf(stderr, "%s is left behind\n", load_folder);
    }
}

#define LOAD_MAIN()                                                                                \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        if (!mkdtemp(load_folder)) {                                                               \
            perror(load_folder);                                                                   \
            return 1;                                                                              \
        }                                                                                          \
        atexit(load_remove_folder);                                                                \
        return t_main(argc, argv);                                                                 \
    }
