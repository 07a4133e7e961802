/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/config.h - the configuration: files merged in order, every value checked, its
 * origin recorded
 *
 * A file is JSON with comments (// and # to the end of the line). FILE is read first, then *.json
 * in FILE.d (for piped.json: piped.json.d) in lexical order. A later file overrides single values;
 * models are merged by name; "eps" is replaced as a whole. An error names file, line and key.
 *
 * A configuration is plain data and does not change after loading, so a reload can build a second
 * one and discard it.
 *
 * Threads: any may read it; only its owner, the loop thread, builds and frees it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/config/keys.h"
#include "daemon/config/wishes.h"

#define DMN_CONFIG_ERROR_MAX 1024u
#define DMN_CONFIG_WHERE_MAX 424u
#define DMN_CONFIG_FILE_MAX (1u << 20)
#define DMN_CONFIG_FILES_MAX 64u
#define DMN_CONFIG_NAME_MAX 64u /* as MDL_SEGMENT_NAME_MAX */

struct dmn_config_value {
    int64_t number; /* INT, BOOL; ENUM: index */
    char *text;     /* owned; STRING */
    size_t origin;  /* index into files */
    size_t line;
};

struct dmn_config_model {
    char *name, *path, *plan, *kernels, *calibration,
        *shapes;  /* owned; all but the first two are "" where absent */
    char *boards; /* owned: "off", "auto" or a route, as below */
    struct dmn_wishes wishes;
    bool latest, saved; /* saved: by a call, not configured (saved.c) */
    bool stand_in;      /* comes with piped; nobody asked for it */
    size_t origin, line;
};

struct dmn_config_ep {
    char *name, *cpus;   /* owned */
    double speed, watts; /* watts 0: unknown */
};

struct dmn_config {
    struct dmn_config_value values[DMN_KEY_COUNT];
    size_t model_count, model_room, ep_count, file_count;
    struct dmn_config_model *models; /* owned */
    struct dmn_config_ep *eps;       /* owned */
    size_t eps_origin, eps_line;
    /* owned; 0: "default", 1: "command line"; the last one may be the list of saved models */
    char *files[DMN_CONFIG_FILES_MAX + 3];
    char *saved_error; /* owned; why that list cannot be used; NULL: it can, or there is none */
};
enum { DMN_ORIGIN_DEFAULT = 0, DMN_ORIGIN_ARGUMENT = 1 };

/**
 * dmn_config_load() - defaults, then the files (files.c)
 *
 * @path: the main file, or NULL for defaults alone     @required: it must exist
 * @ret_error: DMN_CONFIG_ERROR_MAX; "FILE:LINE: key: reason", always terminated
 * @ret: owned by the caller, see dmn_config_free()
 *
 * Return: 0; -EINVAL for a bad file; -ENOMEM; -errno of a system call.
 */
int dmn_config_load(const char *path, bool required, char *ret_error, struct dmn_config **ret);
/** dmn_config_free() - takes NULL. Return: NULL. */
struct dmn_config *dmn_config_free(struct dmn_config *c);

/**
 * dmn_config_add_model() - adds a model of the command line; replaces one of the files of the same
 * name as a whole, as a later file does
 *
 * @name, @path, @shapes: copied; shapes: as in model/open_shapes.h, or ""
 * @ret_error: DMN_CONFIG_ERROR_MAX
 *
 * Return: 0; -EINVAL for a bad name, one that is given twice, or bad shapes, with @ret_error set;
 * -ENOMEM.
 */
int dmn_config_add_model(struct dmn_config *c, const char *name, const char *path,
                         const char *shapes, char *ret_error);

static inline int64_t dmn_config_int(const struct dmn_config *c, enum dmn_config_id id)
{
    return c->values[id].number;
}
static inline const char *dmn_config_string(const struct dmn_config *c, enum dmn_config_id id)
{
    return c->values[id].text ? c->values[id].text : "";
}

/** dmn_config_user_weight() - Return: the weight of @uid beside other users, 1 to 1000. */
unsigned dmn_config_user_weight(const struct dmn_config *c, uid_t uid);
/** dmn_config_where() - writes "FILE:LINE", or the origin if that is not a file. */
void dmn_config_where(const struct dmn_config *c, size_t origin, size_t line,
                      char ret[DMN_CONFIG_WHERE_MAX]);
/** dmn_config_name_ok() - Return: @name is allowed as a model's name, or a segment's. */
bool dmn_config_name_ok(const char *name);

/* For files.c and merge.c, which build a configuration. */
/** dmn_config_weights_ok() - Return: @text is empty or a list of users, each once, and weights. */
bool dmn_config_weights_ok(const char *text);
/** dmn_config_set_string() - replaces *to by a copy of @value and frees the old one. Return: 0;
 * -ENOMEM: *to is unchanged. */
int dmn_config_set_string(char **to, const char *value);
/** dmn_config_find_model() - Return: the model of that name, borrowed; NULL: there is none. */
struct dmn_config_model *dmn_config_find_model(const struct dmn_config *c, const char *name);
/** dmn_config_model_slot() - finds the model of that name, or adds one with empty strings. Return:
 * borrowed until the next one is added; NULL: out of memory. */
struct dmn_config_model *dmn_config_model_slot(struct dmn_config *c, const char *name);
/** dmn_config_eps_free() - empties "eps". */
void dmn_config_eps_free(struct dmn_config *c);

/* ---- models[].boards: which boards serve which units, as people write it
 *
 * FIRST-LAST@BOARD*SHARE+BOARD*SHARE|FIRST-LAST@BOARD|..., from unit 0 on without a gap. BOARD is a
 * name of `pipectl board list`, or "here". SHARE of the frames is 1 to 1000, 1 if it is absent. No
 * board is in a hop twice. ---- */

/* Other values of the key. */
#define DMN_BOARDS_OFF "off"
#define DMN_BOARDS_AUTO "auto"
#define DMN_BOARD_HERE "here"

#define DMN_ROUTE_HOPS_MAX 16u   /* as BRD_HOPS_MAX */
#define DMN_ROUTE_BOARDS_MAX 8u  /* of a hop; as BRD_SHARE_MAX */
#define DMN_ROUTE_NAME_BYTES 32u /* as BRD_NAME_BYTES */
#define DMN_ROUTE_SHARE_MAX 1000u
#define DMN_ROUTE_ERROR_MAX 160u

struct dmn_route_text {
    size_t hop_count;
    struct {
        uint32_t first_unit, last_unit;
        size_t board_count;
        struct {
            char name[DMN_ROUTE_NAME_BYTES];
            uint32_t share;
        } board[DMN_ROUTE_BOARDS_MAX];
    } hop[DMN_ROUTE_HOPS_MAX];
};

/** dmn_route_text_parse() - a pure function. @why: DMN_ROUTE_ERROR_MAX bytes. Return: 0; -EINVAL
 * with @why set. */
int dmn_route_text_parse(const char *text, char *why, struct dmn_route_text *ret);
