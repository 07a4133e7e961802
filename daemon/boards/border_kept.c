/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/border_kept.h"

#include "daemon/plans/plans.h"
#include "daemon/service/log.h"

bool dmn_border_allowed(const struct dmn_border_kept *k)
{
    return k->verdict.judged > 0 && k->verdict.agreement >= k->bound;
}

static struct dmn_border_kept *find(const struct dmn_boards *b, const char *model)
{
    struct dmn_border_kept *k;

    LIST_FOREACH(k, &b->borders, linked) {
        if (strcmp(k->model, model) == 0) {
            return k;
        }
    }
    return NULL;
}

const struct dmn_border_kept *dmn_border_of(const struct dmn_boards *b, const struct dmn_model *m)
{
    const struct dmn_border_kept *k = find(b, m->name);

    return k && strcmp(k->hash, m->model->hash) == 0 ? k : NULL;
}

enum brd_encoding dmn_border_encoding(const struct dmn_boards *b, const struct dmn_model *m)
{
    const struct dmn_border_kept *k = dmn_border_of(b, m);

    return k && dmn_border_allowed(k) ? k->encoding : BRD_AS_IS;
}

/* ---- in memory ---- */

static void drop(struct dmn_border_kept *k)
{
    LIST_REMOVE(k, linked);
    free(k);
}

/* Return: 0 or -ENOMEM. */
static int put(struct dmn_boards *b, const struct dmn_border_kept *k)
{
    struct dmn_border_kept *before = find(b, k->model), *new = malloc(sizeof(*new));

    if (!new) {
        return -ENOMEM;
    }
    if (before) {
        drop(before);
    }
    *new = *k;
    LIST_INSERT_HEAD(&b->borders, new, linked);
    return 0;
}

void dmn_border_unload(struct dmn_boards *b, const char *model)
{
    struct dmn_border_kept *k, *next;

    for (k = LIST_FIRST(&b->borders); k; k = next) {
        next = LIST_NEXT(k, linked);
        if (!model || strcmp(k->model, model) == 0) {
            drop(k);
        }
    }
}

/* ---- in the state folder ---- */

static json_t *finite_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *kept_json(const struct dmn_border_kept *k)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:I, s:o, s:o}", "model", k->hash, "encoding",
                     brd_encoding_name(k->encoding), "bound", k->bound, "agreement",
                     k->verdict.agreement, "judged", (json_int_t)k->verdict.judged, "error_mean",
                     finite_json(k->verdict.error_mean), "error_most",
                     finite_json(k->verdict.error_most));
}

/* Return: false: not a verdict. */
static bool read_kept(json_t *j, struct dmn_border_kept *ret)
{
    struct dmn_border_verdict *v = &ret->verdict;
    const char *hash, *encoding;
    json_int_t judged = 0;

    *v = (struct dmn_border_verdict){.error_mean = INFINITY, .error_most = INFINITY};
    if (json_unpack(j, "{s:s, s:s, s?I, s:F, s:F}", "model", &hash, "encoding", &encoding, "judged",
                    &judged, "bound", &ret->bound, "agreement", &v->agreement) < 0 ||
        strlen(hash) + 1 != sizeof(ret->hash) || !brd_encoding_find(encoding, &ret->encoding) ||
        judged < 0 || judged > KRN_EXAMPLES_MAX) {
        return false;
    }
    memcpy(ret->hash, hash, sizeof(ret->hash));
    v->judged = (size_t)judged;
    (void)json_unpack(j, "{s:F}", "error_mean", &v->error_mean); /* null: infinite */
    (void)json_unpack(j, "{s:F}", "error_most", &v->error_most);
    return ret->bound >= 0 && ret->bound <= 1 && v->agreement >= 0 && v->agreement <= 1;
}

static bool path_of(const struct dmn_boards *b, const char *model, char ret[DMN_STATE_PATH_MAX])
{
    return dmn_state_file_path(DMN_STATE_BORDERS, b->plans->models->state_dir, "", model, ret);
}

void dmn_border_load(struct dmn_boards *b, const struct dmn_model *m)
{
    struct dmn_border_kept k = {.linked = {NULL, NULL}};
    char path[DMN_STATE_PATH_MAX];
    json_t *root = NULL;
    int r = path_of(b, m->name, path) ? dmn_state_file_read(DMN_STATE_BORDERS, path, NULL, &root)
                                      : -ENOENT;
    bool good = r == 0 && read_kept(root, &k);

    json_decref(root);
    snprintf(k.model, sizeof(k.model), "%s", m->name);
    if (good && strcmp(k.hash, m->model->hash) == 0) {
        put(b, &k);
    } else if (r == 0) {
        dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.model = m->name},
                     "model %s: borders go between boards as they are: the stored verdict is %s",
                     m->name, good ? "for a different file" : "lost");
    }
}

int dmn_border_keep(struct dmn_boards *b, const struct dmn_model *m,
                    const struct dmn_border_kept *k)
{
    const struct dmn_border_kept *before = dmn_border_of(b, m);

    if (before && dmn_border_allowed(before) && !dmn_border_allowed(k) &&
        k->encoding > before->encoding) {
        return 0;
    }
    return put(b, k);
}

void dmn_border_save(const struct dmn_boards *b, const struct dmn_model *m,
                     struct dmn_state_kept kept)
{
    const struct dmn_border_kept *k = dmn_border_of(b, m);
    char path[DMN_STATE_PATH_MAX];

    if (k && path_of(b, m->name, path)) {
        dmn_state_put(b->plans->models->disk, DMN_STATE_BORDERS, path, kept_json(k), kept);
    } else {
        kept.fn(kept.ctx, -ENOENT);
    }
}

void dmn_border_forget(struct dmn_boards *b, const struct dmn_model *m, struct dmn_state_kept kept)
{
    char path[DMN_STATE_PATH_MAX];

    dmn_border_unload(b, m->name);
    if (path_of(b, m->name, path)) {
        dmn_state_drop(b->plans->models->disk, DMN_STATE_BORDERS, path, kept);
    } else {
        kept.fn(kept.ctx, 0);
    }
}
