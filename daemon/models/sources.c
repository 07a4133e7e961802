/* SPDX-License-Identifier: Apache-2.0 */
/* What to load: from the configuration, from a serving model, from a call. */

#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "daemon/models/models.h"

struct dmn_load_source dmn_model_source(const struct dmn_model *m)
{
    return (struct dmn_load_source){.name = m->name,
                                    .path = m->path,
                                    .plan = m->config_plan,
                                    .kernels = m->kernels,
                                    .calibration = m->calibration,
                                    .shapes = m->shapes,
                                    .preprocess = m->model->segment ? m->preprocess : NULL,
                                    .board = m->board,
                                    .wishes = &m->wishes,
                                    .latest = m->latest};
}

struct dmn_load_source dmn_config_source(const struct dmn_config_model *c)
{
    return (struct dmn_load_source){.name = c->name,
                                    .path = c->path,
                                    .plan = c->plan,
                                    .kernels = c->kernels,
                                    .calibration = c->calibration,
                                    .shapes = c->shapes,
                                    .wishes = &c->wishes,
                                    .latest = c->latest};
}

/* Return: bytes that the model may take here, if other boards can serve it, too; 0: no bound. */
static size_t memory_max(const struct dmn_config *config, const char *name)
{
    const struct dmn_config_model *c = dmn_config_find_model(config, name);

    return c && strcmp(c->boards, DMN_BOARDS_OFF) != 0
               ? (size_t)dmn_config_int(config, DMN_KEY_BOARDS_MEMORY_MIB) << 20
               : 0;
}

struct dmn_load *dmn_load_from(const struct dmn_load_source *s, const struct dmn_models *models)
{
    const struct dmn_config *config = s->config ? s->config : dmn_machine_config(models->machine);
    struct dmn_load *l = calloc(1, sizeof(*l));

    if (!l) {
        return NULL;
    }
    snprintf(l->name, sizeof(l->name), "%s", s->name);
    snprintf(l->board, sizeof(l->board), "%s", s->board ? s->board : "");
    l->path = strdup(s->path);
    l->plan = strdup(s->plan ? s->plan : "");
    l->kernels = strdup(s->kernels ? s->kernels : "");
    l->calibration = strdup(s->calibration ? s->calibration : "");
    l->shapes = strdup(s->shapes ? s->shapes : "");
    l->wishes = s->wishes ? *s->wishes : DMN_WISHES_NULL;
    l->latest = s->latest;
    l->planner = models->planner;
    l->weight_bytes_max = (size_t)dmn_config_int(config, DMN_KEY_LIMIT_WEIGHT_MIB) << 20;
    l->arena_bytes_max = (size_t)dmn_config_int(config, DMN_KEY_LIMIT_ARENA_MIB) << 20;
    l->memory_max = memory_max(config, s->name);
    if (dmn_choose_init(&l->choose, models->machine, models->state_dir) < 0 || !l->path ||
        !l->plan || !l->kernels || !l->calibration || !l->shapes ||
        (s->preprocess && !(l->preprocess = strdup(s->preprocess))) ||
        (s->primitives && !(l->choose.given = strdup(s->primitives)))) {
        return dmn_load_free(l);
    }
    l->choose.pack = l->memory_max ? KRN_PACK_NOTHING : KRN_PACK_ONE_STAGE;
    return l;
}
