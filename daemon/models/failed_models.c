/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/failed_models.h"

#include "base/base.h"

int dmn_failed_add(struct dmn_failed_models *f, const char *name, const char *path,
                   const char *error)
{
    size_t n = strlen(name) + 1, p = strlen(path) + 1, e = strlen(error) + 1;
    struct dmn_failed_model *m = malloc(sizeof(*m) + n + p + e);

    if (!m) {
        return -ENOMEM;
    }
    m->name = memcpy(m->texts, name, n);
    m->path = memcpy(m->texts + n, path, p);
    m->error = memcpy(m->texts + n + p, error, e);
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
        free(m);
    }
}

void dmn_failed_clear(struct dmn_failed_models *f)
{
    while (!STAILQ_EMPTY(f)) {
        struct dmn_failed_model *m = STAILQ_FIRST(f);

        STAILQ_REMOVE_HEAD(f, linked);
        free(m);
    }
}
