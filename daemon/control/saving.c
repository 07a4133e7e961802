/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/saving.h"

#include "daemon/config/saved.h"
#include "daemon/config/state_lock.h"
#include "daemon/control/json.h"
#include "daemon/control/kept_reply.h"
#include "daemon/control/swap_call.h"
#include "daemon/service/log.h"

static void failed(struct dmn_call *c, int error)
{
    char why[160];

    snprintf(why, sizeof(why), "the model serves, but cannot be saved: %s", dmn_state_why(error));
    dmn_log(LOG_WARNING, "model %s serves, but cannot be saved: %s",
            json_string_value(json_object_get(c->parameters, "name")), dmn_state_why(error));
    dmn_call_error(c, "LoadFailed", "why", why);
}

void dmn_load_reply(struct dmn_call *c, struct dmn_model *m, bool copied, bool saves)
{
    json_t *reply = json_pack("{s:o, s:b}", "model", dmn_model_json(m), "copied", copied);
    struct dmn_config_model as = {
        .name = m->name, .path = m->path, .plan = m->config_plan, .shapes = m->shapes};

    if (saves) {
        dmn_saved_add(m->of->disk, m->of->state_dir, &as, dmn_kept_reply(c, reply, NULL, failed));
    } else {
        dmn_call_reply(c, reply, false);
    }
}

static bool loaded(struct dmn_hot_swap *r)
{
    return true;
}

static void serves(struct dmn_hot_swap *r)
{
    const struct dmn_swap_call *of = r->of;

    dmn_load_reply(of->call, dmn_model_find(r->models, r->load->name), false, true);
}

static void end(struct dmn_hot_swap *r)
{
    free(r->of);
}

static void load_again(struct dmn_call *c, struct dmn_model *m)
{
    struct dmn_hot_swap *r =
        dmn_swap_call_new(c, m, DMN_CAUSE_REQUEST, sizeof(struct dmn_swap_call));

    if (r) {
        r->loaded = loaded;
        r->serves = serves;
        r->end = end;
        dmn_hot_swap_begin(r);
    }
}

bool dmn_save_loaded(struct dmn_call *c, const struct dmn_load_source *s)
{
    struct dmn_model *m = dmn_model_find(c->control->models, s->name);
    bool same = m && strcmp(m->path, s->path) == 0 && s->shapes && !(s->plan && s->plan[0]) &&
                strcmp(m->shapes, s->shapes) == 0;

    if (!same || !json_is_true(json_object_get(c->parameters, "save")) ||
        dmn_users_is_link(c->control->users, c->conn->peer.uid)) {
        return false;
    }
    if (dmn_model_unchanged(m)) {
        dmn_load_reply(c, m, false, true);
    } else {
        load_again(c, m);
    }
    return true;
}
