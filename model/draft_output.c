/* SPDX-License-Identifier: Apache-2.0 */
/* The key `output` of a sidecar, by the row of a network in recipes.c. */
#include <dirent.h>

#include "base/json_text.h"
#include "model/common/file.h"
#include "model/recipes.h"
#include "model/sidecar_output.h"

#define FILES_MAX 1000u /* of a folder that are looked at */
#define POINTS_COCO 17

/* ---- tensors ---- */

static void add_tensor(json_t *tensors, const char *role, const char *name)
{
    json_t *there = json_object_get(tensors, role);

    if (!there) {
        json_object_set_new(tensors, role, json_string(name));
    } else if (json_is_array(there)) {
        json_array_append_new(there, json_string(name));
    } else {
        json_object_set_new(tensors, role, json_pack("[O,s]", there, name));
    }
}

/* Names of the outputs, unless one is the only one that is read and the first. */
static void add_tensors(json_t *output, const struct mdl_signs *s, const struct mdl_match *match)
{
    json_t *tensors = json_object();

    for (size_t i = 0; i < match->count; i++) {
        add_tensor(tensors, output_role_words[match->of[i].role],
                   s->outputs[match->of[i].output].v.name);
    }
    if (match->count > 1 || (match->count == 1 && match->of[0].output > 0)) {
        json_object_set(output, "tensors", tensors);
    }
    json_decref(tensors);
}

/* ---- characters ---- */

/* Return: how many lines the file has; 0: it cannot be read, or is not a text of UTF-8. */
static size_t count_lines(int dir_fd, const char *name)
{
    base_autofree char *text = NULL;
    char why[MDL_ERROR_MAX];
    struct mdl_data_file file;
    json_t *lines;
    size_t count;

    if (mdl_file_text_beneath(dir_fd, name, OUTPUT_TEXT_MAX, why, &file, &text) < 0) {
        return 0;
    }
    lines = mdl_alphabet_lines(text, file.bytes);
    count = json_array_size(lines);
    json_decref(lines);
    return count;
}

/* Return: whether an alphabet of @count characters makes @classes scores; then with the space? */
static bool is_alphabet(size_t count, size_t classes, bool *ret_space)
{
    *ret_space = count + 2 == classes;
    return count > 0 && (*ret_space || count + 1 == classes);
}

/* The first text file of the folder with as many lines. Return: its name, new reference; NULL. */
static json_t *find_alphabet(const char *folder, size_t classes, bool *ret_space)
{
    base_autoclose int dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = dir_fd < 0 ? NULL : opendir(folder);
    char best[256] = "";
    struct dirent *e;

    for (size_t i = 0; dir && i < FILES_MAX && (e = readdir(dir)); i++) {
        size_t n = strlen(e->d_name);
        bool space;

        if (n > 4 && strcmp(e->d_name + n - 4, ".txt") == 0 && e->d_name[0] != '.' &&
            (!best[0] || strcmp(e->d_name, best) < 0) &&
            is_alphabet(count_lines(dir_fd, e->d_name), classes, &space)) {
            snprintf(best, sizeof(best), "%s", e->d_name);
            *ret_space = space;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return best[0] ? json_string(best) : NULL;
}

/* The characters, from the metadata or a file. Return: NULL, or what is missing. */
static const char *add_alphabet(json_t *output, const struct mdl_signs *s, size_t classes,
                                const char *folder, struct mdl_pool *pool)
{
    json_t *letters =
        s->characters ? mdl_alphabet_lines(s->characters, strlen(s->characters)) : NULL;
    bool space = false;

    if (letters && is_alphabet(json_array_size(letters), classes, &space)) {
        json_object_set(output, "alphabet", letters);
    } else {
        json_t *file = find_alphabet(folder, classes, &space);

        json_object_del(output, "alphabet");
        if (file) {
            json_object_set_new(output, "alphabet_file", file);
        }
    }
    json_decref(letters);
    if (space) {
        json_object_set_new(output, "space", json_true());
    }
    return json_object_size(output) > 1
               ? NULL
               : mdl_pool_printf(pool,
                                 "put a text file of its characters into its folder, one a line: "
                                 "%zu of them, or %zu if the space is one, and no blank",
                                 classes - 2, classes - 1);
}

/* ---- the rest ---- */

/* What the scores of characters and pixels still need; it changes no class, but its score. */
static void add_activation(json_t *output, const struct mdl_sign_output *of)
{
    const char *decode = json_string_value(json_object_get(output, "decode"));
    bool rows = json_object_get(output, "layout") != NULL;
    bool one = of->v.rank == 4 && of->v.dim[rows ? 3 : 1] == 1;

    if ((strcmp(decode, "ctc") == 0 || strcmp(decode, "mask") == 0) && !of->probabilities &&
        of->v.has_dtype && of->v.dtype == MDL_F32) {
        json_object_set_new(output, "activation", json_string(one ? "sigmoid" : "softmax"));
    }
}

/* Without it a decoder takes the smaller dimension for the numbers of a box; a small picture has
 * fewer boxes than that. */
static void add_layout(json_t *output, const struct mdl_gvalue *v, const struct mdl_match *match)
{
    const char *decode = json_string_value(json_object_get(output, "decode"));
    bool rows = match->cells_dim == 1;
    int64_t boxes = v->rank == 3 ? v->dim[rows ? 1 : 2] : -1;

    if (strcmp(decode, "yolo") == 0 && match->cells_dim && boxes >= 0 &&
        boxes <= v->dim[rows ? 2 : 1]) {
        json_object_set_new(output, "layout", json_string(rows ? "rows" : "channels"));
    }
}

static void add_numbers(json_t *output, const struct mdl_signs *s, const struct mdl_match *match)
{
    json_t *strides = json_object_get(output, "strides"),
           *points = json_object_get(output, "keypoints");

    if (json_is_array(strides) && json_array_size(strides) == 0) {
        for (size_t i = 0; i < match->stride_count; i++) {
            json_array_append_new(strides, json_integer((json_int_t)match->stride[i]));
        }
    }
    if (points && json_integer_value(points) == 0) {
        json_integer_set(points, (json_int_t)(s->points ? s->points : POINTS_COCO));
        if (s->point_numbers == 2) {
            json_object_set_new(output, "keypoint_numbers", json_integer(2));
        }
    }
}

const char *mdl_draft_output(const struct mdl_recipe *r, const struct mdl_signs *s,
                             const struct mdl_match *match, const char *folder,
                             struct mdl_pool *pool, const char **ret_needs)
{
    json_auto_t *output = r->output ? json_loads(r->output, 0, NULL) : NULL;
    const struct mdl_sign_output *first = &s->outputs[match->count ? match->of[0].output : 0];
    const char *decode = json_string_value(json_object_get(output, "decode"));
    base_autofree char *text = NULL;

    if (!decode || (strcmp(decode, "classes") == 0 && !(s->is & MDL_SIGN_CLASSES)) ||
        ((strcmp(decode, "classes") == 0 || strcmp(decode, "mask") == 0) &&
         s->is & MDL_SIGN_OTHER && !r->task)) {
        *ret_needs = r->needs ? r->needs
                              : "nobody here knows what its outputs are; if a decoder of "
                                "docs/outputs.md fits, write the key output as that page says";
        return NULL;
    }
    if (json_object_get(output, "alphabet")) {
        int64_t classes = first->v.rank ? first->v.dim[first->v.rank - 1] : -1;

        *ret_needs = classes < 3 ? "the number of its characters is open"
                                 : add_alphabet(output, s, (size_t)classes, folder, pool);
        if (*ret_needs) {
            return NULL;
        }
    }
    add_activation(output, first);
    add_layout(output, &first->v, match);
    add_numbers(output, s, match);
    add_tensors(output, s, match);
    text = json_text(output, JSON_COMPACT);
    return text ? mdl_pool_strdup(pool, text) : NULL;
}
