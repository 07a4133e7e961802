/* SPDX-License-Identifier: Apache-2.0 */
/* Models, as Models, Status, Units and Inspect have them. */
#include "base/base.h"
#include "base/picture_fit.h"
#include "daemon/control/json.h"
#include "daemon/frames/clients.h"
#include "daemon/frames/room.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "model/declared.h"

static json_t *shape_json(const struct mdl_tensor *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->rank; i++) {
        json_array_append_new(list, json_integer((json_int_t)t->dim[i]));
    }
    return list;
}

static json_t *io_json(const struct mdl_model *m, const struct mdl_io *io)
{
    const struct mdl_tensor *t = &m->tensors[io->tensor];
    size_t rows = io->rows_output; /* the length depends on the data */

    return json_pack("{s:s, s:o, s:s, s:I, s:s*, s:o*}", "name", io->name, "shape", shape_json(t),
                     "dtype", mdl_dtype_name(t->dtype), "bytes", (json_int_t)io->bytes, "rows",
                     rows ? m->outputs[rows - 1].name : NULL, "rows_dim",
                     rows ? json_integer((json_int_t)io->rows_dim) : NULL);
}

static json_t *ios_json(const struct mdl_model *m, const struct mdl_io *io, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, io_json(m, &io[i]));
    }
    return list;
}

static json_t *preprocess_json(const struct dmn_model *m)
{
    const struct mdl_preproc *p = &m->model->preproc;

    return json_pack("{s:b, s:[f,f,f,f], s:[f,f,f,f], s:s, s:s, s:s, s:[f,f,f,f], s:i, s:i}",
                     "known", p->known, "mean", p->mean[0], p->mean[1], p->mean[2], p->mean[3],
                     "std", p->std[0], p->std[1], p->std[2], p->std[3], "colour",
                     p->bgr ? "bgr" : "rgb", "layout", p->nhwc ? "nhwc" : "nchw", "fit",
                     picture_fit_words[p->fit], "pad", p->pad[0], p->pad[1], p->pad[2], p->pad[3],
                     "width", (int)m->image_width, "height", (int)m->image_height);
}

/* Boards call a model NAME-IDENTITY or NAME-IDENTITY-CHOICE, with a long name cut
 * (daemon/boards/route_fill.c). Return: the length of NAME in the name of a segment of it. */
static int whole_name_length(const struct dmn_model *m)
{
    const char *end = strchr(m->name, '#'), *at = m->name, *found = NULL;
    char identity[10];

    snprintf(identity, sizeof(identity), "-%.8s", m->model->hash);
    while ((at = strstr(at, identity)) != NULL) {
        found = at++;
    }
    return (int)((found ? found : end) - m->name);
}

static json_t *segment_json(const struct dmn_model *m)
{
    const struct mdl_segment_of *s = m->model->segment;
    bool sent = m->board[0] != '\0'; /* by another board */

    return json_pack("{s:I, s:I, s:I, s:s, s:s, s:o*, s:s*}", "first_unit",
                     (json_int_t)s->first_unit, "last_unit", (json_int_t)s->last_unit, "units",
                     (json_int_t)s->unit_count, "front", s->front, "back", s->back, "of",
                     sent ? json_stringn(m->name, (size_t)whole_name_length(m)) : NULL, "board",
                     sent ? m->board : NULL);
}

/* @kind: a word that pipectl(1) lists; @kinds may be NULL. */
static void warn(json_t *list, json_t *kinds, const char *kind, json_t *text)
{
    json_array_append_new(list, text);
    json_array_append_new(kinds, json_string(kind));
}

static json_t *notes_json(const struct mdl_model *m, json_t *kinds)
{
    json_t *list = json_array();
    const struct mdl_note *n;

    for (size_t i = 0; (n = mdl_note(m, i)); i++) {
        warn(list, kinds, n->kind, json_text_shown(n->text));
    }
    return list;
}

/* What its file leaves in doubt. */
static json_t *file_warnings_json(const struct dmn_model *m, json_t *kinds)
{
    json_t *list = notes_json(m->model, kinds);

    if (m->image_width && m->model->doubt) {
        warn(list, kinds, "pictures", json_string(m->model->doubt));
    }
    return list;
}

json_t *dmn_model_json(const struct dmn_model *m)
{
    const struct mdl_model *model = m->model;
    char plan[PL_PLAN_TEXT_MAX];
    json_t *kinds = json_array();

    dmn_model_plan_text(m, plan);
    return json_pack(
        "{s:s, s:o, s:s, s:b, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:s, s:o, "
        "s:o, s:o*, s:b, s:I, s:o, s:o*, s:o, s:o, s:o}",
        "name", m->name, "path", json_text_path(m->path), "hash", model->hash, "default",
        dmn_model_default(m->of) == m, "units", (json_int_t)model->unit_count, "ops",
        (json_int_t)model->op_count, "input", io_json(model, &model->inputs[0]), "inputs",
        ios_json(model, model->inputs, model->input_count), "outputs",
        ios_json(model, model->outputs, model->output_count), "weight_bytes",
        (json_int_t)model->weight_bytes, "packed_bytes", (json_int_t)krn_net_packed_bytes(m->net),
        "arena_bytes", (json_int_t)model->arena_bytes, "frames",
        (json_int_t)pl_frame_count(m->pipe), "macs", model->macs, "load_ms",
        (double)m->load_took_ns / 1e6, "plan", plan, "preprocess", preprocess_json(m), "labels",
        json_text_list((const char *const *)model->labels, model->label_count), "segment",
        model->segment ? segment_json(m) : NULL, "asleep", pl_asleep(m->pipe), "integers",
        (json_int_t)mdl_integer_ops(m->model), "calibration", json_text_path(m->calibration),
        "shapes", json_string(m->shapes), "wishes", dmn_wishes_json(&m->wishes), "warnings",
        file_warnings_json(m, kinds), "warning_kinds", kinds);
}

/* Share of about the last second in which a team held frames. */
static double busy_share(const struct dmn_model *m, size_t team, uint64_t busy_ns, uint64_t now_ns)
{
    const struct dmn_busy *b = &m->busy[1];

    if (b->epoch != pl_epoch(m->pipe) || !b->at_ns) {
        b = &m->busy[0];
    }
    if (team >= PL_TEAM_MAX || b->epoch != pl_epoch(m->pipe) || !b->at_ns || now_ns <= b->at_ns ||
        busy_ns < b->busy_ns[team]) {
        return 0;
    }
    return base_min((double)(busy_ns - b->busy_ns[team]) / (double)(now_ns - b->at_ns), 1.0);
}

void dmn_model_busy(const struct dmn_model *m, double ret[PL_STAGE_MAX])
{
    size_t teams[PL_STAGE_MAX] = {0};
    uint64_t now = base_now_ns();

    memset(ret, 0, PL_STAGE_MAX * sizeof(*ret));
    for (size_t i = 0; i < pl_team_count(m->pipe); i++) {
        struct pl_team_stats t;

        pl_team_stats(m->pipe, i, &t);
        ret[t.stage] +=
            (busy_share(m, i, t.busy_ns, now) - ret[t.stage]) / (double)++teams[t.stage];
    }
}

/* One entry for the teams of one stage, EP and width. */
static json_t *group_json(const struct dmn_model *m, size_t first, size_t stage, uint64_t now_ns)
{
    const struct pl_stage_plan *plan = &pl_current_plan(m->pipe)->stages[stage];
    const struct pl_ep_set *eps = pl_current_eps(m->pipe);
    struct pl_team_stats t, lead;
    double service = 0, busy = 0, expected = 0, held_s = 0, cpu_s = 0, waited_s = 0;
    size_t replicas = 0, measured = 0, queue = 0, batch = 1;
    uint64_t frames = 0, runs = 0;
    struct pl_group of = {0};
    char units[32], ep[PL_GROUP_TEXT_MAX];
    json_t *cpus = json_array();
    bool pinned = true;

    pl_team_stats(m->pipe, first, &lead);
    of.ep = lead.ep;
    for (size_t g = 0; g < plan->group_count; g++) {
        if (plan->groups[g].ep == lead.ep && pl_group_width(&plan->groups[g]) == lead.width) {
            expected = m->planning->expected.team_ns[stage][g];
            of = plan->groups[g];
            batch = base_max(batch, pl_group_batch(&plan->groups[g]));
        }
    }
    for (size_t i = first; i < pl_team_count(m->pipe); i++) {
        pl_team_stats(m->pipe, i, &t);
        if (t.stage != stage || t.ep != lead.ep || t.width != lead.width) {
            continue;
        }
        replicas++;
        queue += t.queue;
        frames += t.frames;
        runs += t.runs;
        pinned &= t.pinned;
        busy += busy_share(m, i, t.busy_ns, now_ns);
        held_s += (double)t.busy_ns / 1e9;
        cpu_s += (double)t.cpu_ns / 1e9;
        waited_s += (double)t.waited_ns / 1e9;
        if (t.service.count) {
            service += t.service.ewma_ns;
            measured++;
        }
        for (size_t k = 0; k < t.width && k < base_array_count(t.cpus); k++) {
            json_array_append_new(cpus, json_integer(t.cpus[k]));
        }
    }
    snprintf(units, sizeof(units), "%u-%u", plan->first_unit, plan->last_unit);
    of.count = 1;
    of.more = 0;
    of.width = pl_group_spans(&of) ? of.width : 1; /* a team of one EP has its width beside it */
    pl_group_format(&of, pl_ep_name, eps, ep);
    return json_pack(
        "{s:i, s:s, s:s, s:o, s:i, s:i, s:f, s:i, s:b, s:I, s:o, s:I, s:f, s:f, s:f, s:o, s:o}",
        "stage", (int)stage, "units", units, "ep", ep, "cpus", cpus, "width", (int)lead.width,
        "replicas", (int)replicas, "busy", replicas ? busy / (double)replicas : 0, "queue",
        (int)queue, "pinned", pinned, "batch", (json_int_t)batch, "frames_at_once",
        runs ? json_real((double)frames / (double)runs) : json_null(), "frames", (json_int_t)frames,
        "busy_s", held_s, "cpu_s", cpu_s, "waited_s", waited_s, "service_ms",
        measured ? json_real(service / (double)measured / 1e6) : json_null(), "expected_ms",
        dmn_json_positive(expected / 1e6));
}

static json_t *stages_json(const struct dmn_model *m)
{
    json_t *list = json_array();
    uint64_t now = base_now_ns();

    for (size_t i = 0; i < pl_team_count(m->pipe); i++) {
        struct pl_team_stats t, other;
        bool seen = false;

        pl_team_stats(m->pipe, i, &t);
        for (size_t j = 0; j < i && !seen; j++) {
            pl_team_stats(m->pipe, j, &other);
            seen = other.stage == t.stage && other.ep == t.ep && other.width == t.width;
        }
        if (!seen) {
            json_array_append_new(list, group_json(m, i, t.stage, now));
        }
    }
    return list;
}

json_t *dmn_model_warnings_json(const struct dmn_model *m, json_t *kinds)
{
    json_t *list = notes_json(m->model, kinds);
    const struct pl_ep_set *eps = pl_current_eps(m->pipe);
    const struct pl_plan *plan = pl_current_plan(m->pipe);

    for (size_t e = 0; e < eps->count; e++) {
        size_t cores = pl_plan_cores(plan, e);

        if (cores > eps->eps[e].cpu_count) {
            warn(list, kinds, "cores",
                 json_sprintf("the plan asks for %zu cores of %s, which has %zu: "
                              "teams share cores",
                              cores, eps->eps[e].name, eps->eps[e].cpu_count));
        }
    }
    for (size_t i = 0; i < pl_team_count(m->pipe); i++) {
        struct pl_team_stats t;

        pl_team_stats(m->pipe, i, &t);
        if (!t.pinned && dmn_config_int(dmn_machine_config(m->of->machine), DMN_KEY_PIN)) {
            warn(list, kinds, "pinning",
                 json_sprintf("a team of stage %u could not be pinned to its cores", t.stage));
            break;
        }
    }
    if (m->stalled) {
        warn(list, kinds, "stalled", json_string("a stage makes no progress"));
    }
    return list;
}

json_t *dmn_model_status_json(const struct dmn_model *m)
{
    const struct mdl_model *model = m->model;
    const struct mdl_tensor *input = &model->tensors[model->inputs[0].tensor];
    const struct dmn_model_stats *s = &m->stats;
    char plan[PL_PLAN_TEXT_MAX];
    double latency[4];
    json_t *kinds = json_array();

    dmn_model_plan_text(m, plan);
    dmn_client_stats_latency(&m->clients->stats, latency);
    return json_pack(
        "{s:s, s:I, s:{s:o, s:s}, s:s, s:I, s:s, s:f, s:{s:f, s:f, s:f, s:f}, s:{s:I, s:I, s:I, "
        "s:I, s:I, s:I}, s:o, s:I, s:I, s:b, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:o*}",
        "name", m->name, "units", (json_int_t)model->unit_count, "input", "shape",
        shape_json(input), "dtype", mdl_dtype_name(input->dtype), "plan", plan, "epoch",
        (json_int_t)pl_epoch(m->pipe), "algorithm", dmn_origin_name(m->origin), "fps",
        dmn_model_fps(m, base_now_ns()), "latency_ms", "p50", latency[0], "p95", latency[1], "p99",
        latency[2], "max", latency[3], "frames", "admitted", (json_int_t)s->admitted, "answered",
        (json_int_t)s->answered, "dropped", (json_int_t)s->dropped, "failed", (json_int_t)s->failed,
        "due", (json_int_t)s->due, "late", (json_int_t)s->late, "wishes",
        dmn_wishes_json(&m->wishes), "in_flight", (json_int_t)dmn_frames_in_flight(m), "waiting",
        (json_int_t)dmn_model_waiting(m), "tuning", m->planning->retune != NULL, "stages",
        stages_json(m), "warnings", dmn_model_warnings_json(m, kinds), "adapt", dmn_adapt_json(m),
        "warning_kinds", kinds, "load_ms", (double)m->load_took_ns / 1e6, "pictures_s",
        (double)m->clients->stats.image_ns / 1e9, "pictures_beside_s",
        (double)m->clients->stats.image_beside_ns / 1e9, "segment",
        model->segment ? segment_json(m) : NULL);
}

/* The primitive of every operator on every kind of core; "+" after it: it runs the next one,
 * too. */
static json_t *primitives_json(const struct dmn_model *m, const struct mdl_unit *unit)
{
    const struct pl_ep_set *eps = pl_current_eps(m->pipe);
    json_t *kinds = json_object();

    for (size_t e = 0; e < eps->count; e++) {
        size_t kind = krn_net_kind(m->net, eps->eps[e].name);
        json_t *names = json_array();

        for (size_t i = unit->first_op; i <= unit->last_op; i++) {
            const struct krn_primitive *fused = krn_net_chosen_fused(m->net, kind, i);

            json_array_append_new(names, fused
                                             ? json_sprintf("%s+", fused->name)
                                             : json_string(krn_net_chosen(m->net, kind, i)->name));
        }
        json_object_set_new(kinds, eps->eps[e].name, names);
    }
    return kinds;
}

/* What the choice of primitives rests on: {EP: {ms, sigma_ms, unsure}}. */
static json_t *chosen_json(const struct dmn_model *m, const struct mdl_unit *unit)
{
    json_t *kinds = json_object();

    for (size_t k = 0; k < m->choice.count; k++) {
        const double *ns = m->choice.kind[k].op_ns, *sigma = m->choice.kind[k].op_sigma_ns;
        const bool *unsure = m->choice.kind[k].op_unsure;
        double sum = 0, variance = 0;
        bool doubt = false;

        for (size_t i = unit->first_op; ns && sigma && i <= unit->last_op; i++) {
            sum += ns[i];
            variance += sigma[i] * sigma[i];
            doubt |= m->choice.doubt > 0 && unsure && unsure[i];
        }
        if (ns && sigma) {
            json_object_set_new(kinds, m->choice.kind[k].name,
                                json_pack("{s:f, s:f, s:b}", "ms", sum / 1e6, "sigma_ms",
                                          sqrt(variance) / 1e6, "unsure", doubt));
        }
    }
    return kinds;
}

/* What 2, 4 and 8 frames at once gain, on the EPs where they do. */
static json_t *at_once_json(const struct dmn_model *m, size_t unit)
{
    const struct tun_problem *p = &m->planning->problem;
    json_t *eps = json_object();

    for (size_t k = 0; k < p->ep_count; k++) {
        const struct tun_at_once *a = tun_at_once_at(p, k, unit);

        if (tun_at_once_gains(a)) {
            json_object_set_new(eps, p->eps[k].name,
                                json_pack("[f, f, f]", a->factor[0], a->factor[1], a->factor[2]));
        }
    }
    return eps;
}

json_t *dmn_model_units_json(const struct dmn_model *m)
{
    const struct pl_ep_set *eps = pl_current_eps(m->pipe);
    const struct mdl_model *model = m->model;
    json_t *list = json_array();

    for (size_t u = 0; u < model->unit_count; u++) {
        const struct mdl_unit *unit = &model->units[u];
        const struct krn_primitive *v = krn_net_chosen(m->net, 0, unit->heavy_op);
        json_t *times = json_object();
        struct pl_series stats;

        for (size_t e = 0; e < m->planning->problem.ep_count && e < eps->count; e++) {
            const struct tun_cell *cell = tun_cell_at(&m->planning->problem.costs, e, 1, u);

            if (cell->source >= TUN_SAVED) {
                json_object_set_new(times, eps->eps[e].name, json_real(cell->ns / 1e6));
            }
        }
        pl_unit_stats(m->pipe, u, &stats);
        json_array_append_new(
            list,
            json_pack("{s:I, s:s, s:s, s:I, s:f, s:f, s:I, s:I, s:s, s:o, s:o, s:I, s:o, s:o, s:o, "
                      "s:o}",
                      "unit", (json_int_t)u, "name", unit->name, "kind",
                      mdl_op_kind_name(model->ops[unit->heavy_op].kind), "ops",
                      (json_int_t)(unit->last_op - unit->first_op + 1), "weight", unit->weight,
                      "macs", unit->macs, "weight_bytes", (json_int_t)unit->weight_bytes,
                      "live_bytes", (json_int_t)unit->live_bytes, "primitive", v ? v->name : "",
                      "primitives", primitives_json(m, unit), "measured_ms", times, "count",
                      (json_int_t)stats.count, "chosen_by", chosen_json(m, unit), "at_once",
                      at_once_json(m, u), "time_ms",
                      stats.count ? json_real(stats.mean_ns / 1e6) : json_null(), "ewma_ms",
                      stats.count ? json_real(stats.ewma_ns / 1e6) : json_null()));
    }
    return list;
}

json_t *dmn_failed_json(const struct dmn_failed_models *failed)
{
    const struct dmn_failed_model *m;
    json_t *list = json_array();

    STAILQ_FOREACH(m, failed, linked)
    {
        json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "name", m->name, "path",
                                              json_text_shown(m->path), "error",
                                              json_text_shown(m->error)));
    }
    return list;
}
