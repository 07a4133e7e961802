/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/boards/board_json.h - structs as JSON and back, by one table of their members
 *
 * Written is what the table has, in its order. What is read is untrusted: texts and arrays fit
 * their members, numbers are finite and in their range, and keys that no table has are ignored.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"
#include "ipc/boards/known_boards.h"

enum brd_kind {
    BRD_TEXT,   /* char[] */
    BRD_SHOWN,  /* the same, of printable ASCII */
    BRD_PRINT,  /* a fingerprint; "" if it may lack */
    BRD_HASH,   /* 64 hex digits; "" if it may lack */
    BRD_WORD,   /* an enum: the index of one of `words` */
    BRD_STRUCT, /* a struct, by `item` */
    BRD_COUNT,  /* an integer without a sign, from `least` to `most` */
    BRD_NUMBER, /* double, from 0 to `most`; never has to be there */
    BRD_TIME,   /* the same; but whatever is no number in this range, or 0, is 0 */
    BRD_FLAG,   /* bool; anything but true is false */
    BRD_LIST    /* an array of at most `most` items; never has to be there */
};

struct brd_object;

struct brd_field {
    const char *key;
    enum brd_kind kind;
    size_t at, bytes; /* of the member; of a LIST: of an item */
    bool may_lack;    /* then it stays zeros */
    double least, most;
    const char *const *words; /* WORD: `most` + 1 of them */
    /* not 0: a bool at this offset: written if it is true, which it is if it was read */
    size_t only_if;
    const struct brd_object *item; /* LIST, STRUCT */
    bool owned; /* LIST: the member is a pointer to an array of calloc(), as long as the list */
    size_t count_at, count_bytes; /* LIST: of its counter; 0: it has as many items as it may have */
};
/* An item of a list may also be one value: its table has a field without a key. */
struct brd_object {
    const struct brd_field *field;
    size_t count;
    /* Does item @i, of which the table holds, go with those before it? NULL: yes. @items: all; of a
     * STRUCT: it alone. */
    bool (*is_valid)(const void *items, size_t i);
};

/* Initializers of members of struct brd_field. */
#define BRD_AT(type, member)                                                                       \
    .at = offsetof(struct type, member), .bytes = sizeof(((struct type *)0)->member)
#define BRD_ITEMS(type, member, counter)                                                           \
    .kind = BRD_LIST, .at = offsetof(struct type, member),                                         \
    .bytes = sizeof(((struct type *)0)->member[0]), .count_at = offsetof(struct type, counter),    \
    .count_bytes = sizeof(((struct type *)0)->counter)

#define BRD_OBJECT(fields) .field = (fields), .count = base_array_count(fields)

/** brd_put() - Return: a new reference; NULL: out of memory. */
json_t *brd_put(const struct brd_object *o, const void *of);
/** brd_get() - sets the members that @o has. @ret: zeros. Return: false: @j is something else, or
 * out of memory; @ret has anything, but its counters and pointers are right. */
bool brd_get(const struct brd_object *o, const json_t *j, void *ret);
/** brd_is_print() - Return: a fingerprint's digits, and no more. */
bool brd_is_print(const char *text);
