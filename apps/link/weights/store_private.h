/* SPDX-License-Identifier: Apache-2.0 */
/** store_private.h - what store.c (files) and store_folder.c (room for them) share */
#pragma once

#include "apps/link/weights/store.h"

#define STORE_ENDING ".onnx"
#define STORE_NAME_BYTES (2 * MDL_HASH_BYTES + sizeof(STORE_ENDING))

struct store {
    int folder;         /* owned; locked */
    char *path;         /* owned; of the folder, absolute */
    uint64_t bytes_max; /* 0: none */
    struct store_file *in_use;
};

struct store_file {
    struct store *store;
    struct store_file *next; /* in_use */
    char name[STORE_NAME_BYTES];
    char *path; /* owned */
    int fd;     /* owned; -1: no list yet */
    bool has_list;
    struct mdl_leaves leaves;
};

/** store_say() - writes a sentence. Return: @code. */
int store_say(char why[STORE_WHY_BYTES], int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** store_spare_one() - the disk is full: removes the file that is unused for longest. Return:
 * whether there was one. */
bool store_spare_one(struct store *s);
/** store_remove() - the file and its list. */
void store_remove(struct store *s, const char *name);
