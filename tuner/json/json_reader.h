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

/* A figure of a struct that is a member of an object, read and written alike; tables of them end
 * with a key of NULL. */
struct tun_field {
    const char *key;
    size_t at; /* offset in the struct */
    enum tun_field_as {
        TUN_REAL,     /* double within least..most */
        TUN_POSITIVE, /* double above 0 and finite */
        TUN_COUNT,    /* size_t within least..most */
        TUN_SHORT,    /* uint16_t likewise */
        TUN_FLAG,     /* bool */
        TUN_TEXT,     /* char[most], 1 byte at least */
        TUN_NAME,     /* likewise, of an EP as plans can be written with */
    } as;
    double least, most;
    double null;   /* NAN or INFINITY, which null stands for; 0: it may not be null */
    bool optional; /* where it is missing the struct keeps what it has */
};
/* clang-format off */
#define TUN_FIELD(type, member, ...) {#member, offsetof(type, member), __VA_ARGS__}
/* clang-format on */

/** tun_read_object() - checks that every key of @object is one of @keys, which NULL ends, or of
 * @fields, and reads the fields into @to. Keys that end in '?' may be missing. @keys, @fields:
 * NULL: none. Return: it is an object, and there was no error. */
bool tun_read_object(struct tun_reader *r, const char *where, const json_t *object,
                     const char *const *keys, const struct tun_field *fields, void *to);
/** tun_read_fields() - those that @object has, no other key is looked at. */
void tun_read_fields(struct tun_reader *r, const char *where, const json_t *object,
                     const struct tun_field *fields, void *to);
/** tun_fields_add() - the fields as members of @object, in their order, but optional numbers that
 * are 0. Return: @object. */
json_t *tun_fields_add(json_t *object, const struct tun_field *fields, const void *from);
/** tun_rows_json() - a list of objects. @rows: [count], structs of @bytes. */
json_t *tun_rows_json(const struct tun_field *fields, const void *rows, size_t count, size_t bytes);

/** tun_read_text() - a member of an object that is known to have it, 1 to @bytes_max - 1 bytes;
 * @where is the path of the object. */
const char *tun_read_text(struct tun_reader *r, const char *where, const json_t *object,
                          const char *key, size_t bytes_max);
/** tun_read_list() - a member that is a list of @least to @most entries. Return: borrowed; NULL:
 * the error is set. */
const json_t *tun_read_list(struct tun_reader *r, const json_t *object, const char *where,
                            const char *key, size_t least, size_t most);
/** tun_read_numbers() - a member that is a list of @count numbers. Return: it is. */
bool tun_read_numbers(struct tun_reader *r, const json_t *object, const char *where,
                      const char *key, size_t count, double *ret);
/** tun_read_distinct() - no two EPs of one name, cores within PL_CPU_MAX. */
void tun_read_distinct(struct tun_reader *r, const struct tun_ep *eps, size_t count);
