/* SPDX-License-Identifier: Apache-2.0 */
/* What piped-link calls: its reports, and the routes that it shall carry; and JudgeBorders: may f32
 * tensors go between boards in fewer bytes? A work thread asks examples, by a model of its own
 * while the served one goes on. */
#include "base/base.h"
#include "base/json_text.h"
#include "daemon/boards/border_kept.h"
#include "daemon/boards/over_boards.h"
#include "daemon/boards/route_fill.h"
#include "daemon/config/state_file.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"

#define AGREEMENT 0.98
#define AGAIN_NS BASE_NS_PER_S /* clients that are refused make it ask no more often */

static void free_report(struct brd_link_report_all **r)
{
    if (*r) {
        brd_report_all_deinit(*r);
        free(*r);
    }
}

void dmn_method_link_report(struct dmn_call *c)
{
    base_cleanup(free_report) struct brd_link_report_all *r = calloc(1, sizeof(*r));
    struct dmn_control *control = c->control;

    if (!r || brd_report_all_read(json_object_get(c->parameters, "report"), r) != 0) {
        dmn_call_invalid(c, "report");
        return;
    }
    control->reporter = c->conn;
    dmn_boards_report(control->boards, base_take(r));
    dmn_call_reply(c, json_object(), false);
}

static json_t *routes_json(const struct dmn_boards *b)
{
    base_autofree struct brd_routes *routes = dmn_boards_routes(b);

    return routes ? json_pack("{s:o}", "routes", brd_routes_json(routes)) : NULL;
}

void dmn_link_routes_changed(void *ctx)
{
    struct dmn_control *control = ctx;
    json_t *routes = LIST_EMPTY(&control->route_calls) ? NULL : routes_json(control->boards);
    struct dmn_call *c, *next;

    for (c = LIST_FIRST(&control->route_calls); routes && c; c = next) {
        next = LIST_NEXT(c, subscriber);
        dmn_call_reply(c, json_incref(routes), true);
    }
    json_decref(routes);
}

void dmn_method_link_routes(struct dmn_call *c)
{
    c->subscribed = true;
    LIST_INSERT_HEAD(&c->control->route_calls, c, subscriber);
    dmn_call_reply(c, routes_json(c->control->boards), true);
}

/* ---- the user piped-link was made after the start: a package was installed ---- */

static void look(struct dmn_job *work)
{
    dmn_users_look_up(
        "", &base_container_of(work, struct dmn_control, link_search.work)->link_search.found);
}

static void looked(struct dmn_job *work)
{
    struct dmn_control *control = base_container_of(work, struct dmn_control, link_search.work);
    const struct dmn_users *found = &control->link_search.found;
    struct dmn_call *c;

    control->link_search.again_ns = base_now_ns() + AGAIN_NS;
    if (found->has_link) {
        control->users->has_link = true;
        control->users->link = found->link;
    }
    while ((c = LIST_FIRST(&control->link_search.calls)) != NULL) {
        LIST_REMOVE(c, searching);
        if (c->conn) {
            control->link_search.again(c);
        } else {
            dmn_call_reply(c, json_object(), false); /* to nobody */
        }
    }
}

bool dmn_link_search(struct dmn_call *c, void (*again)(struct dmn_call *c))
{
    struct dmn_control *control = c->control;

    if (control->users->has_link || control->stopping ||
        base_now_ns() < control->link_search.again_ns) {
        return false;
    }
    control->link_search.again = again;
    LIST_INSERT_HEAD(&control->link_search.calls, c, searching);
    if (!control->link_search.work.at) {
        control->link_search.work = (struct dmn_job){.run = look, .done = looked};
        dmn_work_do(control->machine->awaited, &control->link_search.work);
    }
    return true;
}

/* ---- JudgeBorders ---- */

struct judge {
    struct dmn_job work;
    struct dmn_control *control;
    struct dmn_call *call;
    struct dmn_examples *examples; /* owned */
    struct dmn_load *load;         /* owned: name, path, limits; for the error */
    struct dmn_border_kept kept;   /* the outcome; hash: of the served model */
    uint64_t took_ns;
    int error;
};

static void judge_free(struct judge *j)
{
    dmn_examples_free(j->examples);
    dmn_load_free(j->load);
    free(j);
}

/* Work thread. */
static void run(struct dmn_job *work)
{
    struct judge *j = base_container_of(work, struct judge, work);
    struct dmn_load *l = j->load;
    struct mdl_load_options options = {.name = l->name,
                                       .weight_bytes_max = l->weight_bytes_max,
                                       .arena_bytes_max = l->arena_bytes_max,
                                       .weights_dir = l->choose.folder,
                                       .const_eval = krn_const_eval};
    uint64_t start = base_now_ns();
    struct mdl_model *m = NULL;

    j->error = mdl_load(l->path, &options, l->error, &m);
    if (j->error == 0 && strcmp(m->hash, j->kept.hash) != 0) {
        snprintf(l->error, sizeof(l->error), "the file changed since it was loaded");
        j->error = -ESTALE;
    }
    if (j->error == 0) {
        j->error = dmn_border_judge(m, &j->examples->set, j->kept.encoding, &j->control->stopping,
                                    l->error, &j->kept.verdict);
    }
    mdl_free(m);
    j->took_ns = base_now_ns() - start;
}

static json_t *outcome(const struct judge *j, const struct dmn_model *m)
{
    const struct krn_examples *e = &j->examples->set;
    json_t *verdict = dmn_border_json(&j->kept);

    json_object_update_new(verdict,
                           json_pack("{s:s, s:I, s:o, s:f, s:s}", "serves",
                                     brd_encoding_name(dmn_border_encoding(j->control->boards, m)),
                                     "left_out", (json_int_t)e->left_out, "left_out_first",
                                     json_text_shown(e->note), "took_ms", (double)j->took_ns / 1e6,
                                     "note", ""));
    return json_pack("{s:s, s:o}", "model", j->kept.model, "verdict", verdict);
}

static void answer(const struct judge *j, const struct dmn_model *m)
{
    json_t *reply = outcome(j, m);

    dmn_border_save(j->control->boards, m,
                    dmn_call_keep(j->call, reply, json_object_get(reply, "verdict"), NULL));
}

static void keep(struct judge *j)
{
    struct dmn_model *m = dmn_model_find(j->control->models, j->kept.model);

    if (!m || strcmp(m->model->hash, j->kept.hash) != 0) {
        dmn_call_error(j->call, "NotFound", "what", "the model was unloaded meanwhile");
    } else if (dmn_boards_judged(j->control->boards, m, &j->kept) < 0) {
        dmn_call_error(j->call, "Unsupported", "why", "out of memory");
    } else {
        answer(j, m);
    }
}

static void done(struct dmn_job *work)
{
    struct judge *j = base_container_of(work, struct judge, work);

    j->control->judging = false;
    if (j->control->models->stopping) {
        dmn_call_error(j->call, "Busy", "why", "the daemon is stopping");
    } else if (j->error < 0) {
        dmn_call_error(j->call, "Unsupported", "why", j->load->error);
    } else {
        keep(j);
    }
    judge_free(j);
}

/* Return: true; false: the call was answered. */
static bool take_options(struct dmn_call *c, struct dmn_border_kept *ret)
{
    const char *encoding = dmn_call_text(c, "encoding");

    ret->encoding = BRD_AS_F16;
    ret->bound = AGREEMENT;
    if (encoding && (!brd_encoding_find(encoding, &ret->encoding) || ret->encoding == BRD_AS_IS)) {
        return dmn_call_invalid(c, "encoding");
    }
    return dmn_call_number(c, "agreement", 0, 1, &ret->bound);
}

/* Return: why the model's borders are not judged; NULL: they are. */
static const char *refusal(const struct dmn_model *m)
{
    const char *why = dmn_route_fits(m);

    return why                        ? why
           : pl_asleep(m->pipe)       ? "the model is too large to be run here"
           : m->model->unit_count < 2 ? "the model has one unit, so no border"
                                      : NULL;
}

static void begin(struct dmn_call *c, const struct dmn_model *m, const struct dmn_border_kept *k)
{
    struct dmn_load_source source = dmn_model_source(m);
    struct dmn_examples *examples = dmn_examples_take(c);
    struct judge *j = examples ? calloc(1, sizeof(*j)) : NULL;

    if (!j || !(j->load = dmn_load_from(&source, c->control->models))) {
        if (examples) {
            dmn_call_error(c, "Unsupported", "why", "out of memory");
        }
        dmn_examples_free(examples);
        free(j);
        return;
    }
    j->control = c->control;
    j->call = c;
    j->examples = examples;
    j->kept = *k;
    j->work = (struct dmn_job){.run = run, .done = done};
    c->control->judging = true;
    dmn_work_do(c->control->machine->beside, &j->work);
}

static void off_failed(struct dmn_call *c, int error)
{
    dmn_call_error(c, "Unsupported", "why", dmn_state_why(error));
}

static void off(struct dmn_call *c, const struct dmn_model *m)
{
    dmn_boards_unjudged(
        c->control->boards, m,
        dmn_call_keep(c, json_pack("{s:s, s:n}", "model", m->name, "verdict"), NULL, off_failed));
}

void dmn_method_judge_borders(struct dmn_call *c)
{
    const struct dmn_model *m = dmn_call_model(c, "model");
    struct dmn_border_kept k = {.bound = 0};
    const char *why;

    if (!m) {
        return;
    }
    if (c->control->judging) {
        dmn_call_error(c, "Busy", "why", "borders are being judged");
        return;
    }
    if (dmn_call_asks(c, "off")) {
        off(c, m);
        return;
    }
    if (!take_options(c, &k)) {
        return;
    }
    why = refusal(m);
    if (why) {
        dmn_call_error(c, "Unsupported", "why", why);
    } else {
        snprintf(k.model, sizeof(k.model), "%s", m->name);
        snprintf(k.hash, sizeof(k.hash), "%s", m->model->hash);
        begin(c, m, &k);
    }
}
