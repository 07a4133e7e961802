/* SPDX-License-Identifier: Apache-2.0 */
/* A route that is planned. */
#include "daemon/boards/board_model.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"

struct dmn_spread_job {
    struct dmn_job work;
    struct dmn_board_model *owner;
    enum dmn_due due;
    struct dmn_spread_query query;
    struct dmn_spread_answer answer;
    int result;
};

/* ---- a route as it is wanted ---- */

int dmn_spread_want(struct dmn_board_model *bm, size_t count)
{
    int error = 0;

    if (count == 0 && bm->route->hop_count == 0) {
        return 0;
    }
    bm->route->hop_count = count;
    if (count > 0) {
        error = dmn_route_complete(bm->model, bm->route);
        bm->route->hop_count = error ? 0 : count;
    }
    bm->route->number = dmn_route_number();
    bm->of->routes_changed = true;
    if (bm->route->hop_count == 0) {
        bm->unwanted(bm);
    }
    return error;
}

const struct brd_route_state *dmn_spread_state(const struct dmn_board_model *bm)
{
    return bm->state.number && bm->state.number == bm->route->number ? &bm->state : NULL;
}

/* ---- life ---- */

int dmn_auto_init(struct dmn_board_model *bm)
{
    struct dmn_model *m = bm->model;
    int error = tun_problem_copy(&m->planning->problem, &bm->memory);

    dmn_decide_init(&bm->decide);
    bm->past.unit_count = m->model->unit_count;
    return error ? error : dmn_spread_units(m->model, m->net, &bm->memory);
}

static void drop(struct dmn_job *work)
{
    struct dmn_spread_job *j = base_container_of(work, struct dmn_spread_job, work);

    dmn_spread_query_deinit(&j->query);
    free(j);
}

void dmn_auto_deinit(struct dmn_board_model *bm)
{
    if (bm->job) {
        dmn_job_leave(&bm->job->work);
    }
    tun_problem_deinit(&bm->memory);
    dmn_past_deinit(&bm->past);
}

static void take_route(struct dmn_board_model *bm, const struct dmn_spread_answer *o,
                       enum dmn_due why, uint64_t now_ns)
{
    dmn_decide_changed(&bm->decide, why, now_ns);
    memcpy(bm->route->hop, o->hop, o->hop_count * sizeof(o->hop[0]));
    dmn_spread_want(bm, o->hop_count);
}

static void take_none(struct dmn_board_model *bm, enum dmn_due why, uint64_t now_ns)
{
    if (bm->route->hop_count > 0) {
        dmn_decide_changed(&bm->decide, why, now_ns);
        dmn_spread_want(bm, 0);
    }
}

/* ---- inputs ---- */

struct view {
    struct dmn_spread_may may;
    struct dmn_spread_inputs in;
    struct dmn_present now;
    size_t boards;
};

static void look(const struct dmn_board_model *bm, uint64_t now_ns, struct view *ret)
{
    ret->in = (struct dmn_spread_inputs){.here = &bm->model->planning->problem,
                                         .report = bm->of->report,
                                         .past = &bm->past,
                                         .may = &ret->may};
    ret->now = (struct dmn_present){.hop = bm->route->hop,
                                    .hop_count = bm->route->hop_count,
                                    .state = bm->fixed ? NULL : dmn_spread_state(bm)};
    ret->boards = dmn_decide_usable(&bm->decide, bm->of->report, now_ns, &ret->may);
}

/* Of a frame's input on its way to another board: pictures may have fewer than the tensor. */
static double wire_bytes(const struct dmn_board_model *bm)
{
    double seen = (double)bm->model->stats.wire_bytes, all = bm->memory.boards.input_bytes;

    return seen > 0 && seen < all ? seen : all;
}

/* The head's costs, with what the units take elsewhere. */
static int copy_here(const struct dmn_board_model *bm, struct tun_problem *ret)
{
    int error = dmn_planner_problem(bm->model, NULL, ret);

    if (!error) {
        memcpy(ret->units, bm->memory.units, ret->unit_count * sizeof(*ret->units));
        ret->boards = bm->memory.boards;
        ret->boards.input_bytes = wire_bytes(bm);
    }
    return error;
}

static int make_query(const struct dmn_board_model *bm, const struct view *v,
                      struct dmn_spread_query *ret)
{
    struct tun_problem here;
    int error = copy_here(bm, &here);

    error = error ? error : dmn_spread_query_init(ret, &here, &v->in, &v->now);
    ret->here_sleeps = pl_asleep(bm->model->pipe);
    return error;
}

void dmn_auto_searched(struct dmn_board_model *bm)
{
    uint64_t now = base_now_ns();
    struct view v;

    if (bm->of->report) {
        look(bm, now, &v);
        dmn_decide_sought(&bm->decide, &v.in);
        dmn_decide_changed(&bm->decide, DMN_DUE_BOARDS, now);
        bm->searched = true;
    }
}

int dmn_auto_query(const struct dmn_board_model *bm, struct dmn_spread_query *ret)
{
    struct view v;

    if (!bm->spreads) {
        return -EOPNOTSUPP;
    }
    if (!bm->of->report) {
        return -ENODATA;
    }
    look(bm, base_now_ns(), &v);
    return make_query(bm, &v, ret);
}

/* ---- searching ---- */

static void run(struct dmn_job *work)
{
    struct dmn_spread_job *j = base_container_of(work, struct dmn_spread_job, work);

    j->result = dmn_spread_query_run(&j->query, &j->answer);
}

static double fps(const struct dmn_figures *f)
{
    return f->possible && f->bottleneck_ns > 0 ? 1e9 / f->bottleneck_ns : 0;
}

static const char *cause(const struct dmn_spread_job *j)
{
    switch (j->due) {
    case DMN_DUE_BROKEN:
        return "the route broke";
    case DMN_DUE_LINKS:
        return "a link changed";
    case DMN_DUE_COSTS:
        return "times were measured";
    default:
        return "boards came or went";
    }
}

static void apply(struct dmn_board_model *bm, const struct dmn_spread_job *j, uint64_t now_ns)
{
    const struct dmn_spread_answer *o = &j->answer;
    bool moves = dmn_hops_load(bm->route->hop, bm->route->hop_count, o->hop, o->hop_count);
    enum dmn_worth worth = dmn_decide_worth(&j->query.here, &o->best, &o->present, &o->alone,
                                            bm->route->hop_count > 0, moves);

    if (!dmn_decide_sustained(&bm->decide, j->due, worth == DMN_TAKE_ROUTE, moves, now_ns) &&
        worth == DMN_TAKE_ROUTE) {
        return;
    }

    if (worth == DMN_TAKE_ROUTE &&
        (j->due == DMN_DUE_BROKEN ||
         !dmn_hops_same(bm->route->hop, bm->route->hop_count, o->hop, o->hop_count))) {
        dmn_spread_say(bm, "%s: %.4g fps by the table, %.4g alone; %s decides", cause(j),
                       fps(&o->best), fps(&o->alone), o->limit);
        take_route(bm, o, j->due, now_ns);
    } else if (worth == DMN_TAKE_NONE || (worth == DMN_KEEP && bm->route->hop_count == 0)) {
        if (o->best.possible) {
            dmn_spread_say(bm, "%s: the best route would have %.4g fps, this board alone has %.4g",
                           cause(j), fps(&o->best), fps(&o->alone));
        } else {
            dmn_spread_say(bm, "%s: %s", cause(j), o->limit);
        }
        if (worth == DMN_TAKE_NONE) {
            take_none(bm, j->due, now_ns);
        }
    }
}

static void consider(struct dmn_board_model *bm, uint64_t now_ns);

static void done(struct dmn_job *work)
{
    struct dmn_spread_job *j = base_container_of(work, struct dmn_spread_job, work);
    struct dmn_board_model *bm = j->owner;
    struct view v;

    bm->job = NULL;
    if (bm->of->report && !bm->fixed && !bm->trial) {
        uint64_t now = base_now_ns();

        look(bm, now, &v);
        v.now = (struct dmn_present){.hop = j->answer.hop, .hop_count = j->answer.hop_count};
        if (j->result < 0) {
            dmn_spread_say(bm, "no route was found: %s", strerror(-j->result));
            if (j->due == DMN_DUE_BROKEN) {
                take_none(bm, j->due, now);
            }
        } else if (dmn_decide_broken(&v.in, &v.now)) {
            bm->decide.sought = false;
        } else {
            apply(bm, j, now);
        }
        consider(bm, now);
    }
    drop(work);
}

static void start(struct dmn_board_model *bm, const struct view *v, enum dmn_due due,
                  uint64_t now_ns)
{
    struct dmn_spread_job *j = calloc(1, sizeof(*j));
    int error = j ? make_query(bm, v, &j->query) : -ENOMEM;

    if (error) {
        free(j);
        dmn_spread_say(bm, "no route was sought: %s", strerror(-error));
        if (due == DMN_DUE_BROKEN) {
            take_none(bm, due, now_ns);
        }
        return;
    }
    dmn_decide_sought(&bm->decide, &v->in);
    bm->wire_bytes = wire_bytes(bm);
    j->owner = bm;
    j->due = due;
    j->work = (struct dmn_job){.run = run, .done = done, .drop = drop};
    bm->job = j;
    dmn_work_do(bm->model->of->machine->beside, &j->work);
}

static void consider(struct dmn_board_model *bm, uint64_t now_ns)
{
    struct view v;
    enum dmn_due due;

    if (bm->job || bm->fixed || bm->trial) {
        return;
    }
    look(bm, now_ns, &v);
    due = dmn_decide_due(&bm->decide, &v.in, &v.now, now_ns);
    if (due == DMN_DUE_COSTS && bm->searched) {
        return; /* costs predict what was measured */
    }
    bm->searched &= due == DMN_DUE_NOT;
    if (due != DMN_DUE_NOT && v.boards > 0) {
        start(bm, &v, due, now_ns);
    } else if (due != DMN_DUE_NOT) {
        dmn_spread_say(bm, "no other board is there, or not for long enough");
        take_none(bm, due, now_ns);
    }
}

void dmn_auto_report(struct dmn_board_model *bm, uint64_t now_ns)
{
    const struct brd_link_report_all *r = bm->of->report;
    struct view v;

    if (!r) {
        dmn_decide_away(&bm->decide);
        bm->searched = false;
        if (!bm->fixed && !bm->trial) {
            dmn_spread_say(bm, "piped-link is away");
            take_none(bm, DMN_DUE_BROKEN, now_ns);
        }
        return;
    }
    dmn_past_learn(&bm->past, bm->route->content, r, now_ns);
    look(bm, now_ns, &v);
    dmn_decide_see(&bm->decide, r, &v.now, now_ns);
    if (bm->wire_bytes > 0 && !bm->searched &&
        fabs(wire_bytes(bm) / bm->wire_bytes - 1) > DMN_SIGN_LINKS) {
        bm->decide.sought = false; /* clients send pictures now, or tensors */
        bm->wire_bytes = 0;
    }
    consider(bm, now_ns);
}

void dmn_auto_release(struct dmn_board_model *bm)
{
    bm->fixed = bm->searched = false;
    bm->decide.sought = false;
    memset(bm->decide.change_ns, 0, sizeof(bm->decide.change_ns));
    dmn_spread_say(bm, "no route was sought yet");
}
