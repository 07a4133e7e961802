/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/failed_models.h"

#include "base/base.h"

static void failed_free(struct dmn_failed_model *m)
{
    free(m->name);
    free(m->path);
    free(m->error);
    free(m);
}

int dmn_failed_add(struct dmn_failed_models *f, const char *name, const char *path,
                   const char *error)
{
    struct dmn_failed_model *m = calloc(1, sizeof(*m));

    if (!m) {
        return -ENOMEM;
    }
    m->name = strdup(name);
    m->path = strdup(path);
    m->error = strdup(error);
    if (!m->name || !m->path || !m->error) {
        failed_free(m);
        return -ENOMEM;
    }
    STAILQ_INSERT_TAIL(f, m, linked);
    return 0;
}

struct dmn_failed_model *dmn_failed_find(const struct dmn_failed_models *f, const char *name)
{
    struct dmn_failed_model *m;

    STAILQ_FOREACH(m, f, linked)
    {
        if (strcmp(m->name, name) == 0) {
            return m;
        }
    }
    return NULL;
}

void dmn_failed_remove(struct dmn_failed_models *f, const char *name)
{
    struct dmn_failed_model *m = dmn_failed_find(f, name);

    if (m) {
        STAILQ_REMOVE(f, m, dmn_failed_model, linked);
        failed_free(m);
    }
}

size_t dmn_failed_count(const struct dmn_failed_models *f)
{
    const struct dmn_failed_model *m;
    size_t count = 0;

    STAILQ_FOREACH(m, f, linked)
    {
        count++;
    }
    return count;
}

void dmn_failed_clear(struct dmn_failed_models *f)
{
    while (!STAILQ_EMPTY(f)) {
        struct dmn_failed_model *m = STAILQ_FIRST(f);

        STAILQ_REMOVE_HEAD(f, linked);
        failed_free(m);
    }
}
