/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/keys.h - every configuration key in one table, whose rows are in key_rows.h
 *
 * The parser, `piped --help`, the commented etc/piped.json and the man page piped.json(5) all use
 * this table, so they cannot disagree. The names of sizes and times end in their unit. A dot in a
 * key is a nested object: "limits.streams" is {"limits": {"streams": ...}}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/key_rows.h"

enum dmn_config_type { DMN_CONFIG_INT, DMN_CONFIG_BOOL, DMN_CONFIG_STRING, DMN_CONFIG_ENUM };

/* DMN_KEY_LOG_LEVEL and so on, one for each row */
#define DMN_KEY_ID(ID, ...) DMN_KEY_##ID,
enum dmn_config_id { DMN_KEY_ROWS(DMN_KEY_ID, DMN_KEY_ID, DMN_KEY_ID, DMN_KEY_ID) DMN_KEY_COUNT };

struct dmn_config_row {
    enum dmn_config_id id;
    const char *key;
    enum dmn_config_type type;
    const char *unit;    /* "" where there is none */
    int64_t min, max;    /* INT; STRING: max is the greatest length in bytes */
    int64_t value;       /* default of INT, BOOL; index into choices for ENUM */
    const char *text;    /* default of STRING */
    const char *choices; /* ENUM: names joined by '|' */
    bool restart;        /* takes effect at the next start, not at a reload */
    bool advanced;       /* its default suits; lists have it last in its group, or leave it out */
    const char *help;    /* one or two sentences */
};

/* in the order of enum dmn_config_id */
extern const struct dmn_config_row dmn_config_rows[DMN_KEY_COUNT];

/* Keys of the objects in the arrays "models" and "eps". */
struct dmn_config_item_row {
    const char *array, *key, *type, *value, *help;
    bool required;
};
#define DMN_CONFIG_ITEM_COUNT 17u
extern const struct dmn_config_item_row dmn_config_item_rows[DMN_CONFIG_ITEM_COUNT];

/** dmn_config_choice() - Return: the index of @name in the row's choices, or -ENOENT. */
int dmn_config_choice(const struct dmn_config_row *row, const char *name);
#define DMN_CONFIG_CHOICE_BYTES 32u
/** dmn_config_choice_name() - copies the name of choice @index. Return: false: there is none. */
bool dmn_config_choice_name(const struct dmn_config_row *row, size_t index,
                            char ret[DMN_CONFIG_CHOICE_BYTES]);
