/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/config.h"

#include <ctype.h>

#include "model/open_shapes.h"
#include "model/segment/segment_name.h"

#define USER_WEIGHT_MAX 1000u
#define UNIT_MAX 9999999u /* more than any model has */

int dmn_config_set_string(char **to, const char *value)
{
    char *copy = strdup(value);

    if (!copy) {
        return -ENOMEM;
    }
    free(*to);
    *to = copy;
    return 0;
}

void dmn_config_where(const struct dmn_config *c, size_t origin, size_t line,
                      char ret[DMN_CONFIG_WHERE_MAX])
{
    if (origin > DMN_ORIGIN_ARGUMENT) {
        snprintf(ret, DMN_CONFIG_WHERE_MAX, "%.400s:%zu", c->files[origin], line);
    } else {
        snprintf(ret, DMN_CONFIG_WHERE_MAX, "%.400s", c->files[origin]);
    }
}

bool dmn_config_name_ok(const char *name)
{
    struct mdl_segment_name parsed;

    return mdl_segment_name_parse(name, &parsed);
}

static void model_deinit(struct dmn_config_model *m)
{
    free(m->name);
    free(m->path);
    free(m->plan);
    free(m->kernels);
    free(m->calibration);
    free(m->shapes);
    free(m->boards);
}

struct dmn_config_model *dmn_config_find_model(const struct dmn_config *c, const char *name)
{
    for (size_t i = 0; i < c->model_count; i++) {
        if (strcmp(c->models[i].name, name) == 0) {
            return &c->models[i];
        }
    }
    return NULL;
}

/* Without any key. Return: false: out of memory. */
static bool model_init(struct dmn_config_model *m, const char *name)
{
    *m = (struct dmn_config_model){.name = strdup(name),
                                   .path = strdup(""),
                                   .plan = strdup(""),
                                   .kernels = strdup(""),
                                   .calibration = strdup(""),
                                   .wishes = DMN_WISHES_NULL,
                                   .shapes = strdup(""),
                                   .boards = strdup(DMN_BOARDS_OFF)};
    if (!m->name || !m->path || !m->plan || !m->kernels || !m->calibration || !m->shapes ||
        !m->boards) {
        model_deinit(m);
        return false;
    }
    return true;
}

struct dmn_config_model *dmn_config_model_slot(struct dmn_config *c, const char *name)
{
    struct dmn_config_model *m = dmn_config_find_model(c, name);

    if (m) {
        return m;
    }
    if (!base_room(&c->models, sizeof(*m), c->model_count, &c->model_room) ||
        !model_init(&c->models[c->model_count], name)) {
        return NULL;
    }
    return &c->models[c->model_count++];
}

void dmn_config_eps_free(struct dmn_config *c)
{
    for (size_t i = 0; i < c->ep_count; i++) {
        free(c->eps[i].name);
        free(c->eps[i].cpus);
    }
    free(c->eps);
    c->eps = NULL;
    c->ep_count = 0;
}

struct dmn_config *dmn_config_free(struct dmn_config *c)
{
    if (!c) {
        return NULL;
    }
    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        free(c->values[i].text);
    }
    for (size_t i = 0; i < c->model_count; i++) {
        model_deinit(&c->models[i]);
    }
    free(c->models);
    dmn_config_eps_free(c);
    for (size_t i = 0; i < c->file_count; i++) {
        free(c->files[i]);
    }
    free(c->saved_error);
    free(c);
    return NULL;
}

int dmn_config_add_model(struct dmn_config *c, const char *name, const char *path,
                         const char *shapes, char *ret_error)
{
    struct dmn_config_model *m, fresh;
    char why[MDL_ERROR_MAX];

    if (!dmn_config_name_ok(name)) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
                 "--model: \"%.80s\" is not a model name (" MDL_SEGMENT_NAME_RULE ")", name);
        return -EINVAL;
    }
    if (mdl_shapes_check(shapes, why) < 0) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "--model %s: %.900s", name, why);
        return -EINVAL;
    }
    m = dmn_config_model_slot(c, name);
    if (m && m->origin == DMN_ORIGIN_ARGUMENT) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
                 "--model: \"%s\" is given twice; name each by NAME=FILE", name);
        return -EINVAL;
    }
    if (!m || !model_init(&fresh, name)) {
        return -ENOMEM;
    }
    model_deinit(m);
    *m = fresh;
    m->origin = DMN_ORIGIN_ARGUMENT;
    return dmn_config_set_string(&m->path, path) < 0 ||
                   dmn_config_set_string(&m->shapes, shapes) < 0
               ? -ENOMEM
               : 0;
}

/* ---- limits.user_weights: "UID=WEIGHT,..."; to look up names might block ---- */

/* Reads a number at *@at. Return: false: it is none, or above @most. */
static bool number(const char **at, unsigned long most, unsigned long *ret)
{
    char *end;

    if (!isdigit((unsigned char)**at)) {
        return false;
    }
    *ret = strtoul(*at, &end, 10); /* ULONG_MAX if it is too large */
    *at = end;
    return *ret <= most;
}

/* Reads one "UID=WEIGHT" at *@at with the comma after it. Return: false: it is not that. */
static bool next_weight(const char **at, unsigned long *ret_uid, unsigned long *ret_weight)
{
    if (!number(at, UINT_MAX - 1u, ret_uid) || *(*at)++ != '=' ||
        !number(at, USER_WEIGHT_MAX, ret_weight) || *ret_weight == 0) {
        return false;
    }
    return **at == '\0' || (*(*at)++ == ',' && **at);
}

bool dmn_config_weights_ok(const char *text)
{
    unsigned long uid, weight, other;

    while (*text) {
        if (!next_weight(&text, &uid, &weight)) {
            return false;
        }
        for (const char *rest = text; *rest && next_weight(&rest, &other, &weight);) {
            if (other == uid) {
                return false;
            }
        }
    }
    return true;
}

unsigned dmn_config_user_weight(const struct dmn_config *c, uid_t uid)
{
    const char *text = dmn_config_string(c, DMN_KEY_LIMIT_USER_WEIGHTS);
    unsigned long user, weight;

    while (*text && next_weight(&text, &user, &weight)) {
        if (user == uid) {
            return (unsigned)weight;
        }
    }
    return 1;
}

/* ---- models[].boards: a route ---- */

__attribute__((format(printf, 2, 3))) static int fail(char *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, DMN_ROUTE_ERROR_MAX, format, args);
    va_end(args);
    return -EINVAL;
}

static size_t name_length(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]) || (n > 0 && (text[n] == '-' || text[n] == '_'))) {
        n++;
    }
    return n;
}

/* Reads BOARD*SHARE at *at into the hop's next place. */
static int board(const char **at, char *why, struct dmn_route_text *r)
{
    size_t hop = r->hop_count - 1, n = name_length(*at), count = r->hop[hop].board_count;
    unsigned long share = 1;

    if (n == 0 || n >= DMN_ROUTE_NAME_BYTES) {
        return fail(why, "a board's name is missing before \"%.20s\"", *at);
    }
    if (count == DMN_ROUTE_BOARDS_MAX) {
        return fail(why, "more than %u boards for units %u-%u", DMN_ROUTE_BOARDS_MAX,
                    r->hop[hop].first_unit, r->hop[hop].last_unit);
    }
    memcpy(r->hop[hop].board[count].name, *at, n);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(r->hop[hop].board[i].name, r->hop[hop].board[count].name) == 0) {
            return fail(why, "board %s is named twice for units %u-%u", r->hop[hop].board[i].name,
                        r->hop[hop].first_unit, r->hop[hop].last_unit);
        }
    }
    r->hop[hop].board_count++;
    *at += n;
    if (**at == '*') {
        ++*at;
        if (!number(at, DMN_ROUTE_SHARE_MAX, &share) || share == 0) {
            return fail(why, "the share of board %s must be 1 to %u", r->hop[hop].board[count].name,
                        DMN_ROUTE_SHARE_MAX);
        }
    }
    r->hop[hop].board[count].share = (uint32_t)share;
    return 0;
}

int dmn_route_text_parse(const char *text, char *why, struct dmn_route_text *ret)
{
    const char *at = text;

    *ret = (struct dmn_route_text){0};
    for (unsigned long next = 0;; at++) {
        size_t hop = ret->hop_count;
        unsigned long first, last;

        if (hop == DMN_ROUTE_HOPS_MAX) {
            return fail(why, "more than %u segments", DMN_ROUTE_HOPS_MAX);
        }
        if (!number(&at, UNIT_MAX, &first) || *at++ != '-' || !number(&at, UNIT_MAX, &last) ||
            *at++ != '@') {
            return fail(why, "must be \"" DMN_BOARDS_OFF "\", \"" DMN_BOARDS_AUTO
                             "\" or FIRST-LAST@BOARDS|..., such as 0-16@here|17-44@b2");
        }
        if (first != next || last < first) {
            return fail(why, "units %lu-%lu do not begin at unit %lu", first, last, next);
        }
        next = last + 1;
        ret->hop[hop].first_unit = (uint32_t)first;
        ret->hop[hop].last_unit = (uint32_t)last;
        ret->hop_count++;
        do {
            int r = board(&at, why, ret);

            if (r < 0) {
                return r;
            }
        } while (*at == '+' && at++);
        if (*at == '\0') {
            return 0;
        }
        if (*at != '|') {
            return fail(why, "\"%.20s\" is not expected there", at);
        }
    }
}
