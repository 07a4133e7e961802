/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/models.h"

#include "base/near_word.h"
#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "daemon/models/elsewhere.h"
#include "daemon/models/process_memory.h"
#include "daemon/service/listeners.h"
#include "daemon/service/log.h"
#include "model/declared.h"

void dmn_models_listen(struct dmn_models *models, struct dmn_models_listener *l)
{
    DMN_LISTEN(models->listeners, l);
}

struct dmn_model *dmn_model_find(const struct dmn_models *models, const char *name)
{
    for (struct dmn_model *m = models->models; m; m = m->next) {
        if (strcmp(m->name, name) == 0) {
            return m;
        }
    }
    return NULL;
}

struct dmn_model *dmn_model_loaded(const struct dmn_models *models, const char *name,
                                   uint64_t loaded_ns)
{
    struct dmn_model *m = dmn_model_find(models, name);

    return m && m->loaded_ns == loaded_ns ? m : NULL;
}

const char *dmn_model_missing(const struct dmn_models *models, const char *name, char *ret,
                              size_t bytes)
{
    const struct dmn_failed_model *failed = dmn_failed_find(&models->failed, name);
    struct near_word n = {.given = name};
    char hint[NEAR_WORD_HINT_BYTES];

    for (const struct dmn_model *m = models->models; m; m = m->next) {
        near_word_try(&n, m->name);
    }
    if (!name[0]) {
        snprintf(ret, bytes, "no model is loaded");
    } else if (failed) {
        snprintf(ret, bytes, "model %.64s could not be loaded: %.*s", name, MDL_ERROR_MAX,
                 failed->error);
    } else {
        snprintf(ret, bytes, "no such model: %.64s%s", name, near_word_hint(&n, hint));
    }
    return ret;
}

/* What nobody asked for is not what requests without a name mean: the model that comes with piped,
 * and segments for other boards. */
static bool is_asked_for(const struct dmn_model *m)
{
    const struct dmn_config_model *c =
        dmn_config_find_model(dmn_machine_config(m->of->machine), m->name);

    return !m->board[0] && !(c && c->stand_in && strcmp(c->path, m->path) == 0);
}

struct dmn_model *dmn_model_default(const struct dmn_models *models)
{
    const char *name =
        dmn_config_string(dmn_machine_config(models->machine), DMN_KEY_DEFAULT_MODEL);
    struct dmn_model *m = name[0] ? dmn_model_find(models, name) : NULL;

    for (struct dmn_model *next = models->models; !m && next; next = next->next) {
        m = is_asked_for(next) ? next : NULL;
    }
    return m ? m : models->models;
}

size_t dmn_model_depth(const struct dmn_model *m)
{
    size_t there = m->elsewhere ? m->elsewhere->depth(m->elsewhere) : 0;

    return base_max(pl_depth(m->pipe), there);
}

void dmn_model_plan_text(const struct dmn_model *m, char *ret)
{
    pl_plan_format(pl_current_plan(m->pipe), pl_current_eps(m->pipe), ret, PL_PLAN_TEXT_MAX);
}

size_t dmn_model_count(const struct dmn_models *models)
{
    size_t count = 0;

    for (const struct dmn_model *m = models->models; m; m = m->next) {
        count++;
    }
    return count;
}

/* Lays out one frame's areas; finds out whether its input is an image. */
static int lay_out(struct dmn_model *m)
{
    const struct mdl_model *model = m->model;
    const struct mdl_tensor *t = &model->tensors[model->inputs[0].tensor];
    size_t channels = model->preproc.nhwc ? 3 : 1, at = 0;

    for (size_t i = 0; i < model->input_count; i++) {
        m->in_offset[i] = at = base_align_up(at, 64);
        if (!base_add(at, model->inputs[i].bytes, &at) || at > m->of->frame_bytes_max) {
            return -E2BIG;
        }
    }
    m->input_bytes = at;
    at = 0;
    for (size_t i = 0; i < model->output_count; i++) {
        m->out_offset[i] = at = base_align_up(at, 64);
        if (!base_add(at, model->outputs[i].bytes, &at) || at > m->of->frame_bytes_max) {
            return -E2BIG;
        }
    }
    m->output_bytes = at;
    if ((!model->segment || model->segment->first_unit == 0) && model->input_count == 1 &&
        t->rank == 4 && t->dim[0] == 1 && (t->dim[channels] == 1 || t->dim[channels] == 3) &&
        (t->dtype == MDL_F32 || t->dtype == MDL_U8)) {
        m->image_height = (uint32_t)t->dim[model->preproc.nhwc ? 1 : 2];
        m->image_width = (uint32_t)t->dim[model->preproc.nhwc ? 2 : 3];
    }
    return 0;
}

/* Prepares planning and the first plan, unless the load brings them. */
static int first_plan(struct dmn_model *m, struct dmn_load *l, char *ret_error)
{
    const struct dmn_models *of = m->of;
    int error = 0;

    if (!l->planning) { /* a start, when the loop does not run yet */
        of->planner->read(of->planner_ctx, l);
        error = of->planner->prepare(of->planner_ctx, dmn_machine_config(of->machine), l);
    }
    if (!error) {
        error = of->planner->first(l);
    }
    if (error) {
        snprintf(ret_error, MDL_ERROR_MAX, "%s", l->error);
        return error;
    }
    m->origin = l->origin;
    m->planning = base_take(l->planning);
    return 0;
}

void dmn_model_wish(struct dmn_model *m, const struct dmn_wishes *wishes)
{
    struct pl_claim claim = dmn_wishes_claim(wishes);

    m->wishes = *wishes;
    pl_client_claim(&m->client, &claim);
}

static int build(struct dmn_model *m, struct dmn_load *l, char *ret_error)
{
    const struct dmn_models *of = m->of;
    const struct dmn_config *config = dmn_machine_config(of->machine);
    struct pl_options options = {
        .frames = (size_t)dmn_config_int(config, DMN_KEY_FRAMES_IN_FLIGHT),
        .spin_ns = (uint64_t)dmn_config_int(config, DMN_KEY_SPIN_US) * BASE_NS_PER_US,
        .batch_wait_ns = (uint64_t)dmn_config_int(config, DMN_KEY_BATCH_WAIT_US) * BASE_NS_PER_US,
        .no_pin = !dmn_config_int(config, DMN_KEY_PIN),
        .asleep = l->asleep,
        .notify = of->wake,
        .notify_arg = of->wake_arg,
        .client = &m->client,
    };
    int error;

    snprintf(m->name, sizeof(m->name), "%s", l->name);
    m->path = strdup(l->path);
    m->config_plan = strdup(l->plan);
    m->kernels = strdup(l->kernels);
    m->calibration = strdup(l->calibration);
    m->shapes = strdup(l->shapes);
    m->preprocess = base_take(l->preprocess);
    memcpy(m->board, l->board, sizeof(m->board));
    m->latest = l->latest;
    m->from_config = l->from_config;
    m->quantised = l->ranges != NULL;
    m->load_took_ns = l->took_ns;
    m->stamp = l->stamp;
    m->loaded_ns = base_now_ns();
    m->stats.rate[m->stats.rate_at++].at_ns = m->loaded_ns;
    m->net = l->net;
    if (!m->path || !m->config_plan || !m->kernels || !m->calibration || !m->shapes) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    error = lay_out(m);
    if (error) {
        snprintf(ret_error, MDL_ERROR_MAX, "a frame's inputs or outputs are larger than %zu bytes",
                 m->of->frame_bytes_max);
        return error;
    }
    error = first_plan(m, l, ret_error);
    if (error) {
        return error;
    }
    pl_client_init(&m->client, of->seats);
    dmn_model_wish(m, &l->wishes);
    error = pl_new(m->net, &of->machine->eps, l->first, &options, &m->pipe);
    if (error) {
        snprintf(ret_error, MDL_ERROR_MAX, "cannot build the pipeline: %s", strerror(-error));
    }
    return error;
}

static void free_parts(struct dmn_model *m)
{
    free(m->path);
    free(m->config_plan);
    free(m->kernels);
    free(m->calibration);
    free(m->shapes);
    free(m->preprocess);
    dmn_kept_choice_deinit(&m->choice);
    free(m);
}

/* Does everything that can fail. */
static int prepare(struct dmn_model *m, struct dmn_load *l, char *ret_error)
{
    for (struct dmn_models_listener *to = m->of->listeners; to; to = to->next) {
        int error = to->starting ? to->starting(to->ctx, m) : 0;

        if (error) {
            snprintf(ret_error, MDL_ERROR_MAX, "%s",
                     error == -ENOMEM ? "out of memory" : strerror(-error));
            return error;
        }
    }
    return build(m, l, ret_error);
}

int dmn_model_start(struct dmn_models *models, struct dmn_load *l, enum dmn_cause cause,
                    char *ret_error, struct dmn_model **ret)
{
    struct dmn_model *m = calloc(1, sizeof(*m)), **at;
    char plan[PL_PLAN_TEXT_MAX], detail[320], integers[64] = "", outdated[64] = "";
    int error;

    ret_error[0] = '\0';
    if (!m) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    m->of = models;
    m->model = l->model; /* lent: the caller takes it back on failure */
    error = prepare(m, l, ret_error);
    if (error) {
        DMN_TELL(models->listeners, gone, m);
        free_parts(m);
        return error;
    }
    l->model = NULL;
    l->net = NULL;
    dmn_choose_keep(&l->choose, l->choose.chosen || l->kernels[0], &m->choice);
    for (at = &models->models; *at; at = &(*at)->next) {
    }
    *at = m;
    krn_net_trim(m->net);
    dmn_memory_trim();
    dmn_model_plan_text(m, plan);
    if (mdl_integer_ops(m->model)) {
        snprintf(integers, sizeof(integers), ", %zu operators on integers",
                 mdl_integer_ops(m->model));
    }
    if (l->choose.outdated) {
        snprintf(outdated, sizeof(outdated), ", its primitives chosen for %s", l->choose.outdated);
    }
    snprintf(detail, sizeof(detail), "%zu unit%s, loaded in %.0f ms%s%s%s%s", m->model->unit_count,
             base_plural(m->model->unit_count), (double)m->load_took_ns / 1e6,
             l->asleep ? ", too large to run on this board alone" : "",
             l->choose.chosen && l->choose.measured ? ", its primitives measured" : "", outdated,
             integers);
    if (l->choose.note[0]) {
        dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.model = m->name}, "model %s: %s",
                     m->name, l->choose.note);
    }
    if (m->image_width && m->model->doubt) {
        dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.model = m->name}, "model %s: %s",
                     m->name, m->model->doubt);
    }
    for (size_t i = 0; mdl_note(m->model, i); i++) {
        dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.model = m->name}, "model %s: %s",
                     m->name, mdl_note(m->model, i)->text);
    }
    dmn_log_with(
        LOG_NOTICE,
        (struct dmn_log_fields){.id = DMN_MSG_MODEL_LOADED, .model = m->name, .plan = plan},
        "model %s from %s: %s, plan %s (%s)", m->name, m->path, detail, plan,
        dmn_origin_name(m->origin));
    DMN_TELL(models->listeners, started, m, cause, detail);
    *ret = m;
    return 0;
}

bool dmn_model_unchanged(const struct dmn_model *m)
{
    struct dmn_stamp now = dmn_stamp_read(m->path, m->calibration);

    now.data = dmn_stamp_data(m->model, true);
    return memcmp(&now, &m->stamp, sizeof(now)) == 0;
}

static bool same_tensors(const struct mdl_model *a, const struct mdl_io *of_a,
                         const struct mdl_model *b, const struct mdl_io *of_b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct mdl_tensor *x = &a->tensors[of_a[i].tensor], *y = &b->tensors[of_b[i].tensor];

        if (strcmp(of_a[i].name, of_b[i].name) != 0 || x->dtype != y->dtype || x->rank != y->rank ||
            memcmp(x->dim, y->dim, x->rank * sizeof(x->dim[0])) != 0 ||
            of_a[i].rows_output != of_b[i].rows_output || of_a[i].rows_dim != of_b[i].rows_dim) {
            return false;
        }
    }
    return true;
}

bool dmn_model_replace(struct dmn_model *m, struct dmn_model *by)
{
    const struct mdl_model *a = m->model, *b = by->model;

    if (a->input_count != b->input_count || a->output_count != b->output_count ||
        !same_tensors(a, a->inputs, b, b->inputs, b->input_count) ||
        !same_tensors(a, a->outputs, b, b->outputs, b->output_count) ||
        m->image_width != by->image_width || m->image_height != by->image_height) {
        return false;
    }
    DMN_TELL(m->of->listeners, replaced, m, by);
    return true;
}

static void unlist(struct dmn_model *m)
{
    struct dmn_model **at = m->leaving ? &m->of->leaving : &m->of->models;

    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
}

void dmn_model_unload(struct dmn_model *m, struct dmn_done done)
{
    unlist(m);
    m->next = m->of->leaving;
    m->of->leaving = m;
    m->leaving = true;
    m->unloaded = done;
    DMN_TELL(m->of->listeners, unloading, m);
    dmn_log_with(LOG_NOTICE,
                 (struct dmn_log_fields){.id = DMN_MSG_MODEL_UNLOADED, .model = m->name},
                 "model %s: unloading, %zu frames in flight", m->name, pl_in_flight(m->pipe));
}

void dmn_model_destroy(struct dmn_model *m)
{
    unlist(m);
    DMN_TELL(m->of->listeners, ending, m);
    m->leaving = true;
    m->pipe = pl_free(m->pipe); /* from here on no team touches a submitter's memory */
    DMN_TELL(m->of->listeners, gone, m);
    dmn_done(&m->unloaded, NULL);
    m->net = krn_net_free(m->net);
    m->model = mdl_free(m->model);
    free_parts(m);
}

void dmn_model_collect(struct dmn_model *m)
{
    struct pl_frame *f;

    while ((f = pl_collect(m->pipe)) != NULL) {
        struct dmn_frame_owner *owner = f->owner;

        m->stats.collected++;
        owner->collected(owner, m, f);
        DMN_TELL(m->of->listeners, collected, m, f);
        pl_frame_put(m->pipe, f);
        DMN_TELL(m->of->listeners, room, m);
    }
    pl_reap(m->pipe);
    DMN_TELL(m->of->listeners, room, m);
}

size_t dmn_model_waiting(const struct dmn_model *m)
{
    size_t count = 0;

    for (const struct dmn_models_listener *l = m->of->listeners; l; l = l->next) {
        count += l->waiting ? l->waiting(l->ctx, m) : 0;
    }
    return count;
}

static bool busy(const struct dmn_model *m)
{
    for (const struct dmn_models_listener *l = m->of->listeners; l; l = l->next) {
        if (l->busy && l->busy(l->ctx, m)) {
            return true;
        }
    }
    return m->running > 0 || pl_in_flight(m->pipe) > 0 || pl_switching(m->pipe);
}

void dmn_model_after(struct dmn_model *m)
{
    if (m->leaving && !busy(m)) {
        dmn_model_destroy(m);
    }
}

/* ---- configured models that do not serve ---- */

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
