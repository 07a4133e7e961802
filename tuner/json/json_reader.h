/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/json/json_reader.h - reading JSON strictly: the first error names the path of its key
 *
 * This folder is a library beside the tuner, which does not use it: the daemon and pipesim do. It
 * may use jansson.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "tuner/problem.h"

#define TUN_READER_ERROR_MAX 512u

/* A file being read. The first error is kept; whatever is read after it does not count. */
struct tun_reader {
    const char *path; /* borrowed */
    char *error;      /* [TUN_READER_ERROR_MAX], borrowed; empty: no error so far */
};

/** tun_read_file() - parses; a repeated key is an error. Return: an object owned by the caller, or
 * NULL with the error set. */
json_t *tun_read_file(struct tun_reader *r);

/** tun_wrong() - notes an error at @where, the path of the key; printf-like. */
void tun_wrong(struct tun_reader *r, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** tun_read_keys() - checks that every key of @object is one of @keys, which NULL ends; keys that
 * end in '?' may be missing. Return: it is an object, and there was no error. */
bool tun_read_keys(struct tun_reader *r, const char *where, const json_t *object,
                   const char *const *keys);

/* A member of an object that is known to have it; @where is the path of the object. */
double tun_read_number(struct tun_reader *r, const char *where, const json_t *object,
                       const char *key, double least, double most);
/** tun_read_positive() - above 0 and finite. */
double tun_read_positive(struct tun_reader *r, const char *where, const json_t *object,
                         const char *key);
const char *tun_read_text(struct tun_reader *r, const char *where, const json_t *object,
                          const char *key, size_t bytes_max);
/** tun_read_eps() - the list "kinds": 1..PL_EP_MAX of them, PL_CPU_MAX cores in all. */
const json_t *tun_read_eps(struct tun_reader *r, const json_t *root);
/** tun_read_ep() - name (that a plan can be written with) and cores of one of them. */
void tun_read_ep(struct tun_reader *r, const char *where, const json_t *object, struct tun_ep *ret);
/** tun_read_distinct() - no two EPs of one name, cores within PL_CPU_MAX. */
void tun_read_distinct(struct tun_reader *r, const struct tun_ep *eps, size_t count);
