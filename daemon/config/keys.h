/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/keys.h - every configuration key in one table
 *
 * The parser, `piped --help`, the commented etc/piped.json and the man page piped.json(5) all use
 * this table, so they cannot disagree. The names of sizes and times end in their unit. A dot in a
 * key is a nested object: "limits.streams" is {"limits": {"streams": ...}}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dmn_config_type { DMN_CONFIG_INT, DMN_CONFIG_BOOL, DMN_CONFIG_STRING, DMN_CONFIG_ENUM };

enum dmn_config_id {
    DMN_KEY_LOG_LEVEL,
    DMN_KEY_ADMIN_GROUP,
    DMN_KEY_SOCKET_MODE,
    DMN_KEY_SOCKET_GROUP,
    DMN_KEY_DEFAULT_MODEL,
    DMN_KEY_PIN,
    DMN_KEY_FRAMES_IN_FLIGHT,
    DMN_KEY_DRAIN_MS,
    DMN_KEY_STALLED_MS,
    DMN_KEY_HISTORY_EVENTS,
    DMN_KEY_SPIN_US,
    DMN_KEY_PLANNER_OBJECTIVE,
    DMN_KEY_PLANNER_FPS,
    DMN_KEY_PLANNER_LATENCY_MS,
    DMN_KEY_PLANNER_STAGES_MAX,
    DMN_KEY_PLANNER_TUNE_S,
    DMN_KEY_PLANNER_ALGORITHM,
    DMN_KEY_PLANNER_START,
    DMN_KEY_PLANNER_ALPHA,
    DMN_KEY_BATCH_WAIT_US,
    DMN_KEY_PLANNER_FRAMES,
    DMN_KEY_PLANNER_MS,
    DMN_KEY_GPIO_CHIP,
    DMN_KEY_GPIO_BUTTON,
    DMN_KEY_GPIO_BUTTON_LOW,
    DMN_KEY_GPIO_POWER,
    DMN_KEY_GPIO_POWER_LOW,
    DMN_KEY_GPIO_LED,
    DMN_KEY_GPIO_LED_LOW,
    DMN_KEY_GPIO_DEBOUNCE_MS,
    DMN_KEY_SENSORS_INTERVAL_MS,
    DMN_KEY_ADAPT_ENABLED,
    DMN_KEY_ADAPT_GAIN,
    DMN_KEY_ADAPT_URGENT,
    DMN_KEY_ADAPT_COOLDOWN_S,
    DMN_KEY_ADAPT_HOURLY,
    DMN_KEY_ADAPT_PROBE_S,
    DMN_KEY_ADAPT_WINDOW_MS,
    DMN_KEY_ADAPT_NOTICE,
    DMN_KEY_ADAPT_FIRM,
    DMN_KEY_ADAPT_NOISE,
    DMN_KEY_ADAPT_SETTLE,
    DMN_KEY_ADAPT_VERIFY,
    DMN_KEY_KERNELS_MEASURE_MS,
    DMN_KEY_BOARDS_FRAMES_SOCKET,
    DMN_KEY_BOARDS_MEMORY_MIB,
    DMN_KEY_LIMIT_MODELS,
    DMN_KEY_LIMIT_WEIGHT_MIB,
    DMN_KEY_LIMIT_ARENA_MIB,
    DMN_KEY_LIMIT_CONNECTIONS,
    DMN_KEY_LIMIT_CONNECTIONS_UID,
    DMN_KEY_LIMIT_CONTROL,
    DMN_KEY_LIMIT_CONTROL_UID,
    DMN_KEY_LIMIT_KEPT,
    DMN_KEY_LIMIT_HANDSHAKE_S,
    DMN_KEY_LIMIT_STREAMS,
    DMN_KEY_LIMIT_CREDITS,
    DMN_KEY_LIMIT_POOL_MIB,
    DMN_KEY_LIMIT_INLINE_MIB,
    DMN_KEY_LIMIT_INLINE_TOTAL_MIB,
    DMN_KEY_LIMIT_BACKLOG_KIB,
    DMN_KEY_LIMIT_SLOW_S,
    DMN_KEY_LIMIT_IMAGE_MPIXELS,
    DMN_KEY_LIMIT_SLICE_MPIXELS,
    DMN_KEY_LIMIT_USER_WEIGHTS,
    DMN_KEY_COUNT
};

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

/** dmn_config_table() - Return: the rows in the order of enum dmn_config_id; static. */
const struct dmn_config_row *dmn_config_table(size_t *ret_count);

/* Keys of the objects in the arrays "models" and "eps". */
struct dmn_config_item_row {
    const char *array, *key, *type, *value, *help;
    bool required;
};
const struct dmn_config_item_row *dmn_config_item_table(size_t *ret_count);

/** dmn_config_choice() - Return: the index of @name in the row's choices, or -ENOENT. */
int dmn_config_choice(const struct dmn_config_row *row, const char *name);
/** dmn_config_choice_name() - copies the name of choice @index to @ret; "" if there is none. */
void dmn_config_choice_name(const struct dmn_config_row *row, size_t index, char *ret,
                            size_t bytes);
