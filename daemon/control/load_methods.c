/* SPDX-License-Identifier: Apache-2.0 */
/* Load and Unload: models that come and go by a call, and are kept across restarts if it asks. */

#include "base/base.h"
#include "base/path_below.h"
#include "daemon/config/state_file.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/models/arrival.h"
#include "daemon/models/hot_swap.h"
#include "daemon/models/model_copies.h"
#include "daemon/service/log.h"
#include "model/open_shapes.h"
#include "model/segment/segment_name.h"

/* ---- what is kept ---- */

static void not_saved(struct dmn_call *c, int error)
{
    dmn_log(LOG_WARNING, "model %s serves, but cannot be saved: %s",
            json_string_value(json_object_get(c->parameters, "name")), dmn_state_why(error));
    dmn_call_error(c, "LoadFailed", "the model serves, but cannot be saved: %s",
                   dmn_state_why(error));
}

/* What is kept of a model; borrowed from it. */
static struct dmn_config_model saved_as(struct dmn_model *m)
{
    return (struct dmn_config_model){.name = m->name,
                                     .path = m->path,
                                     .plan = m->config_plan,
                                     .shapes = m->shapes,
                                     .wishes = m->wishes};
}

/* Answers Load @c: @m serves. @copied: from a copy of the client's file. @saves: first has it kept
 * across restarts. */
static void load_reply(struct dmn_call *c, struct dmn_model *m, bool copied, bool saves)
{
    json_t *reply = json_pack("{s:o, s:b}", "model", dmn_model_json(m), "copied", copied);
    struct dmn_config_model as = saved_as(m);

    if (saves) {
        dmn_saved_add(m->of->disk, m->of->state_dir, &as, dmn_call_keep(c, reply, NULL, not_saved));
    } else {
        dmn_call_reply(c, reply, false);
    }
}

static void again_serves(struct dmn_hot_swap *r)
{
    const struct dmn_swap_call *of = r->of;

    load_reply(of->call, dmn_model_find(r->models, r->load->name), false, true);
}

static void load_again(struct dmn_call *c, struct dmn_model *m)
{
    struct dmn_hot_swap *r =
        dmn_swap_call_new(c, m, DMN_CAUSE_REQUEST, sizeof(struct dmn_swap_call));

    if (r) {
        r->serves = again_serves;
        dmn_hot_swap_begin(r);
    }
}

/* Keeps a model that is loaded from the file that Load @c names. If its files have changed since, a
 * hot swap loads them first. Return: false: @c does not ask for that; true: @c is answered, or will
 * be. */
static bool save_loaded(struct dmn_call *c, const struct dmn_load_source *s)
{
    struct dmn_model *m = dmn_model_find(c->control->models, s->name);
    bool same = m && strcmp(m->path, s->path) == 0 && s->shapes && !(s->plan && s->plan[0]) &&
                strcmp(m->shapes, s->shapes) == 0;

    if (!same || !dmn_call_asks(c, "save") ||
        dmn_users_is_link(c->control->users, c->conn->peer.uid)) {
        return false;
    }
    if (dmn_model_unchanged(m)) {
        load_reply(c, m, false, true);
    } else {
        load_again(c, m);
    }
    return true;
}

/* ---- Load ---- */

/* A Load call in progress. */
struct dmn_load_call {
    struct dmn_arrival arrival;
    struct dmn_control *control;
    LIST_ENTRY(dmn_load_call) linked;
    struct dmn_load *load;      /* owned */
    struct dmn_call *call;      /* NULL: nobody waits */
    struct dmn_sent_files sent; /* used by the work thread until the end */
};

static void load_free(struct dmn_load_call *l)
{
    LIST_REMOVE(l, linked);
    dmn_copy_leave(l->control->models, l->load->path);
    dmn_sent_files_deinit(&l->sent);
    dmn_load_free(l->load);
    free(l);
}

/* An error that names a copy names the client's file instead. */
static void name_origin(const struct dmn_load_call *l, char error[MDL_ERROR_MAX])
{
    size_t n = strlen(l->load->path);
    char named[MDL_ERROR_MAX];

    if (l->call && l->sent.copied && strncmp(error, l->load->path, n) == 0) {
        snprintf(named, sizeof(named), "%.400s%.600s", dmn_call_text(l->call, "path"), error + n);
        memcpy(error, named, sizeof(named));
    }
}

/* Answers it now; the step in work ends when it notices. */
static void load_cancel(struct dmn_load_call *l, const char *why)
{
    if (l->call) {
        dmn_call_error(base_take(l->call), "LoadFailed", "%s", why);
    }
    dmn_arrival_cancel(&l->arrival, why);
}

static void load_left(struct dmn_call *c, void *load)
{
    load_cancel(load, "its client has gone");
}

void dmn_control_loads_cancel(struct dmn_control *control, const char *why)
{
    struct dmn_load_call *l;

    LIST_FOREACH(l, &control->loads, linked) {
        load_cancel(l, why);
    }
}

/* The end of a Load, with or without success. */
static void load_end(struct dmn_arrival *a, const struct dmn_outcome *o)
{
    struct dmn_load_call *l = base_container_of(a, struct dmn_load_call, arrival);
    char error[MDL_ERROR_MAX] = "";
    struct dmn_model *m = NULL;

    if (l->call) {
        l->call->left = NULL;
    }
    if (o) {
        snprintf(error, sizeof(error), "%s", o->text);
    } else if (dmn_model_find(a->models, l->load->name)) {
        snprintf(error, sizeof(error), "a model of that name was loaded meanwhile");
    } else {
        dmn_model_start(a->models, l->load, DMN_CAUSE_REQUEST, error, &m);
    }
    if (m) {
        dmn_failed_remove(&a->models->failed, m->name);
    }
    if (!m) {
        name_origin(l, error);
        dmn_log_with(a->cancelled ? LOG_NOTICE : LOG_WARNING,
                     (struct dmn_log_fields){.id = DMN_MSG_MODEL_FAILED, .model = l->load->name},
                     "cannot serve model %s from %s: %s", l->load->name, l->load->path, error);
        if (l->sent.copied) {
            dmn_copy_forget(a->models, l->load->path);
        }
    }
    if (l->call && m) {
        load_reply(l->call, m, l->sent.copied, l->sent.save);
    } else if (l->call) {
        dmn_call_error(l->call, "LoadFailed", "%s", error);
    }
    load_free(l);
}

static int load_before(struct dmn_arrival *a)
{
    struct dmn_load_call *l = base_container_of(a, struct dmn_load_call, arrival);

    return dmn_sent_files_place(&l->sent, l->load, a->models->state_dir);
}

static void load_leave(struct dmn_arrival *a)
{
    struct dmn_load_call *l = base_container_of(a, struct dmn_load_call, arrival);

    if (l->call) {
        dmn_call_error(base_take(l->call), "Busy", "the daemon is stopping");
    }
}

static bool being_loaded(const struct dmn_control *control, const char *name, size_t *ret_count)
{
    const struct dmn_load_call *l;
    bool same = false;

    *ret_count = 0;
    LIST_FOREACH(l, &control->loads, linked) {
        if (!l->arrival.cancelled) {
            same |= strcmp(l->load->name, name) == 0;
            ++*ret_count;
        }
    }
    return same;
}

/* Refuses what a Load asks for. Return: it was refused. */
static bool refuse_load(struct dmn_call *c, const char *name, const char *path, const char *shapes,
                        const char *why_shapes)
{
    const struct dmn_control *control = c->control;
    size_t loading,
        most = (size_t)dmn_config_int(dmn_machine_config(control->machine), DMN_KEY_LIMIT_MODELS);

    if (!dmn_config_name_ok(name)) {
        dmn_call_error(c, "LoadFailed", "not a model name (" MDL_SEGMENT_NAME_RULE ")");
    } else if (path[0] != '/' || strlen(path) >= 4096) {
        dmn_call_error(c, "LoadFailed", "the path must be absolute and shorter than 4096 bytes");
    } else if (!shapes) {
        dmn_call_error(c, "LoadFailed", "%s", why_shapes);
    } else if (dmn_call_asks(c, "save") && dmn_users_is_link(control->users, c->conn->peer.uid)) {
        dmn_call_error(c, "LoadFailed", "models of other boards are not saved here");
    } else if (being_loaded(control, name, &loading) || dmn_model_find(control->models, name)) {
        dmn_call_error(c, "Busy",
                       "model %.100s is loaded already: unload it first, or take another name",
                       name);
    } else if (dmn_model_count(control->models) + loading >= most) {
        dmn_call_error(c, "LoadFailed", "too many models: limits.models is %zu", most);
    } else {
        return false;
    }
    return true;
}

/* Takes the files that came with a Load: their descriptors in the order of "files". Return: NULL,
 * or why they are refused. */
static const char *take_files(struct dmn_call *c, const char *path, struct dmn_sent_files *ret)
{
    const json_t *files = json_object_get(c->parameters, "files");
    size_t count = json_array_size(files);

    if (count == 0) {
        return NULL;
    }
    if (count > DMN_SENT_FILES_MAX || !dmn_call_take_fds(c, count, ret->fd)) {
        return "files: each needs a descriptor, sent with the call, and at most "
               "64 can be sent";
    }
    for (ret->count = 0; ret->count < count; ret->count++) {
        const char *name = json_string_value(json_array_get(files, ret->count));
        char below[PATH_BELOW_MAX];

        ret->name[ret->count] = name && path_below(name, below) == 0 ? strdup(below) : NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (!ret->name[i]) {
            return "files: a name is not a path below the model's folder";
        }
    }
    return strcmp(ret->name[0], strrchr(path, '/') + 1) == 0
               ? NULL
               : "files: the first must be the model, named as in path";
}

/* Reads wishes from the parameters. Return: they are good; false: the call was answered. */
static bool take_wishes(struct dmn_call *c, struct dmn_wishes *ret)
{
    char why[DMN_WISH_ERROR_MAX];
    const char *key;

    if (dmn_wishes_read(c->parameters, ret, &key, why) < 0) {
        dmn_call_error(c, "InvalidWish", "%s: %s", key, why);
        return false;
    }
    return true;
}

void dmn_method_load(struct dmn_call *c)
{
    const json_t *given = json_object_get(c->parameters, "shapes");
    char why_shapes[MDL_ERROR_MAX] = "out of memory";
    base_autofree char *preprocess =
        json_dumps(json_object_get(c->parameters, "preprocess"), JSON_COMPACT | JSON_ENSURE_ASCII);
    base_autofree char *shapes = mdl_shapes_text(json_is_object(given) ? given : NULL, why_shapes);
    struct dmn_wishes wishes = DMN_WISHES_NULL;
    struct dmn_load_source source = {.name = dmn_call_text(c, "name"),
                                     .path = dmn_call_text(c, "path"),
                                     .plan = dmn_call_text(c, "plan"),
                                     .shapes = shapes,
                                     .preprocess = preprocess,
                                     .primitives = dmn_call_text(c, "primitives"),
                                     .board = dmn_call_text(c, "board"),
                                     .wishes = &wishes};
    struct dmn_control *control = c->control;
    struct dmn_load_call *l;
    const char *why;

    if (!take_wishes(c, &wishes) || save_loaded(c, &source) ||
        refuse_load(c, source.name, source.path, shapes, why_shapes)) {
        return;
    }
    l = calloc(1, sizeof(*l));
    why = l ? take_files(c, source.path, &l->sent) : "out of memory";
    if (why || !(l->load = dmn_load_from(&source, control->models))) {
        if (l) {
            dmn_sent_files_deinit(&l->sent);
        }
        free(l);
        dmn_call_error(c, "LoadFailed", "%s", why ? why : "out of memory");
        return;
    }
    l->sent.save = dmn_call_asks(c, "save");
    l->control = control;
    l->call = c;
    l->arrival = (struct dmn_arrival){.models = control->models,
                                      .loads = &l->load,
                                      .count = 1,
                                      .before = load_before,
                                      .leave = load_leave,
                                      .end = load_end};
    c->left = load_left;
    c->left_arg = l;
    LIST_INSERT_HEAD(&control->loads, l, linked);
    dmn_arrival_begin(&l->arrival);
}

/* ---- SetWishes ---- */

static void not_kept(struct dmn_call *c, int error)
{
    dmn_call_error(c, "InvalidWish", "the wishes hold, but cannot be kept: %s",
                   dmn_state_why(error));
}

void dmn_method_set_wishes(struct dmn_call *c, struct dmn_model *m)
{
    const struct dmn_config *config = dmn_machine_config(c->control->machine);
    const struct dmn_config_model *of = dmn_config_find_model(config, m->name);
    struct dmn_wishes wishes = m->wishes;
    char where[DMN_CONFIG_WHERE_MAX];
    json_t *reply;

    if (!take_wishes(c, &wishes)) {
        return;
    }
    if (dmn_call_asks(c, "save") && of && !of->saved) {
        dmn_config_where(config, of->origin, of->line, where);
        dmn_call_error(c, "InvalidWish", "model %s is configured: set its wishes in %s", m->name,
                       where);
        return;
    }
    dmn_model_wish(m, &wishes);
    reply = json_pack("{s:o}", "wishes", dmn_wishes_json(&wishes));
    if (dmn_call_asks(c, "save")) {
        struct dmn_config_model as = saved_as(m);

        dmn_saved_add(m->of->disk, m->of->state_dir, &as, dmn_call_keep(c, reply, NULL, not_kept));
    } else {
        dmn_call_reply(c, reply, false);
    }
}

/* ---- Unload ---- */

static void unload(struct dmn_call *c, struct dmn_model *m)
{
    dmn_hot_swap_cancel(m->of, m->name, "the model was unloaded");
    dmn_model_unload(m, (struct dmn_done){dmn_call_done, c});
}

/* A saved model was forgotten. A configured one would be back after a restart: its file must
 * change. @call: struct dmn_call. */
static void forgotten(void *call, int error)
{
    struct dmn_call *c = call;
    const struct dmn_config *config = dmn_machine_config(c->control->machine);
    const char *name = dmn_call_text(c, "name");
    const struct dmn_config_model *m = dmn_config_find_model(config, name);
    struct dmn_model *serves = dmn_model_find(c->control->models, name);

    if (error == 0 && serves) {
        dmn_copy_forget(c->control->models, serves->path);
        unload(c, serves);
        return;
    }
    if (error == 0) { /* it could not be loaded */
        const struct dmn_failed_model *f = dmn_failed_find(&c->control->models->failed, name);

        if (f) {
            dmn_copy_forget(c->control->models, f->path);
        }
        dmn_failed_remove(&c->control->models->failed, name);
        dmn_call_reply(c, json_object(), false);
        return;
    }
    if (error > 0 && m && m->stand_in) {
        dmn_call_error(c, "Unsupported",
                       "model %s comes with piped, and is served after each start while no model "
                       "is configured: name yours in /etc/piped/piped.json, or unload it without "
                       "--save",
                       name);
    } else if (error > 0 && m && !m->saved) {
        dmn_call_error(c, "Unsupported",
                       "model %s is configured: remove it from %.400s, or unload it without --save",
                       name, config->files[m->origin]);
    } else {
        dmn_call_error(c, "Unsupported", "%s",
                       error < 0 ? dmn_state_why(error) : "no model of that name is saved");
    }
}

/* Return: model @name was being loaded, and no longer is. */
static bool cancel_named(struct dmn_control *control, const char *name)
{
    struct dmn_load_call *l;

    LIST_FOREACH(l, &control->loads, linked) {
        if (!l->arrival.cancelled && strcmp(l->load->name, name) == 0) {
            load_cancel(l, "the model was unloaded while it was loaded");
            return true;
        }
    }
    return false;
}

void dmn_method_unload(struct dmn_call *c)
{
    const char *name = dmn_call_text(c, "name");
    struct dmn_model *m;

    if (cancel_named(c->control, name) && !dmn_call_asks(c, "save")) {
        dmn_call_reply(c, json_object(), false);
        return;
    }
    if (dmn_call_asks(c, "save")) {
        dmn_saved_remove(c->control->models->disk, c->control->models->state_dir, name,
                         (struct dmn_state_kept){forgotten, c});
        return;
    }
    if (!*name) { /* no model is unloaded by default */
        dmn_call_invalid(c, "name");
        return;
    }
    m = dmn_call_model(c, "name");
    if (m) {
        unload(c, m);
    }
}
