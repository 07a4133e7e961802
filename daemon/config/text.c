/* SPDX-License-Identifier: Apache-2.0 */
/* JSON with comments: removes them, and finds the line of a value. */
#include "daemon/config/merge.h"

#include <ctype.h>

#include "base/base.h"

void dmn_config_strip(char *text, size_t bytes)
{
    bool in_string = false;

    for (size_t i = 0; i < bytes; i++) {
        if (in_string) {
            if (text[i] == '\\') {
                i++;
            } else if (text[i] == '"' || text[i] == '\n') {
                in_string = false;
            }
        } else if (text[i] == '"') {
            in_string = true;
        } else if (text[i] == '#' || (text[i] == '/' && i + 1 < bytes && text[i + 1] == '/')) {
            while (i < bytes && text[i] != '\n') {
                text[i++] = ' ';
            }
        }
    }
}

struct walk {
    const char *at;
    size_t line;
    size_t found; /* line of the deepest part found so far */
    size_t depth;
};

static void skip_blank(struct walk *w)
{
    while (*w->at && isspace((unsigned char)*w->at)) {
        w->line += *w->at == '\n';
        w->at++;
    }
}

/* Steps over a string. *ret_start, *ret_bytes: the text between its quotes, with escapes. */
static void skip_string(struct walk *w, const char **ret_start, size_t *ret_bytes)
{
    const char *start = *w->at == '"' ? ++w->at : w->at;

    while (*w->at && *w->at != '"') {
        if (*w->at == '\\' && w->at[1]) {
            w->at++;
        }
        w->at++;
    }
    *ret_start = start;
    *ret_bytes = (size_t)(w->at - start);
    if (*w->at) {
        w->at++;
    }
}

/* The first part of a path: a key or "[index]". Return: where the rest starts. */
static const char *path_part(const char *path, const char **ret_start, size_t *ret_bytes)
{
    const char *start = *path == '.' ? path + 1 : path;
    size_t bytes = *start == '[' ? strcspn(start, "]") + 1 : strcspn(start, ".[");

    bytes = base_min(bytes, strlen(start));
    *ret_start = start;
    *ret_bytes = bytes;
    return start + bytes;
}

/* Steps over one value; if @path is not NULL, looks for it inside. */
static void walk_value(struct walk *w, const char *path)
{
    const char *part = NULL, *rest = NULL, *start;
    size_t part_bytes = 0, bytes, index = 0;
    char close;

    skip_blank(w);
    if (path) {
        w->found = w->line;
        if (*path) {
            rest = path_part(path, &part, &part_bytes);
        }
    }
    if (*w->at == '"') {
        skip_string(w, &start, &bytes);
        return;
    }
    if ((*w->at != '{' && *w->at != '[') || w->depth >= 64) {
        w->at += strcspn(w->at, ",]} \t\r\n");
        return;
    }
    close = *w->at++ == '{' ? '}' : ']';
    w->depth++;
    for (;; index++) {
        bool match = false;

        skip_blank(w);
        if (*w->at == ',') {
            w->at++;
            skip_blank(w);
        }
        if (*w->at == close || !*w->at) {
            w->at += *w->at != '\0';
            break;
        }
        if (close == '}') {
            skip_string(w, &start, &bytes);
            skip_blank(w);
            w->at += *w->at == ':';
            match = rest && bytes == part_bytes && memcmp(start, part, bytes) == 0;
        } else {
            match = rest && part[0] == '[' && strtoull(part + 1, NULL, 10) == index;
        }
        start = w->at;
        walk_value(w, match ? rest : NULL);
        if (w->at == start) { /* not JSON: give up */
            w->at += strlen(w->at);
            break;
        }
    }
    w->depth--;
}

size_t dmn_config_line(const char *text, const char *path)
{
    struct walk w = {.at = text, .line = 1, .found = 1};

    walk_value(&w, path);
    return w.found;
}
