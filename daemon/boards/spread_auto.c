/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_auto.h"

#include "base/base.h"
#include "daemon/machine/machine.h"
#include "daemon/models/models.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/planning.h"
#include "daemon/service/work.h"

struct job {
    struct dmn_job work;
    struct dmn_auto *owner;
    enum dmn_due due;
    struct dmn_spread_query query;
    struct dmn_spread_answer answer;
    int result;
};

struct dmn_auto {
    struct dmn_model *model; /* borrowed */
    dmn_auto_fn *changed;
    void *ctx;
    char content[BRD_CONTENT_BYTES];
    struct tun_problem memory; /* owned: only what dmn_spread_units() sets */
    double wire_bytes;         /* of an input, at the last search */
    struct dmn_decide decide;
    struct dmn_spread_past past;
    struct brd_link_report_all *report; /* owned, without costs; NULL: piped-link is away */
    struct brd_route_state state;       /* of the newest report, of the present hops */
    bool has_state, held;
    struct job *job; /* at work, or NULL */
    size_t hop_count;
    struct brd_hop hop[BRD_HOPS_MAX];
    char why[512];
};

#define say(a, ...) snprintf((a)->why, sizeof((a)->why), __VA_ARGS__)

int dmn_auto_new(struct dmn_model *m, const char *content, dmn_auto_fn *changed, void *ctx,
                 struct dmn_auto **ret)
{
    struct dmn_auto *a = calloc(1, sizeof(*a));
    int error = a ? 0 : -ENOMEM;

    if (!error) {
        error = tun_problem_copy(&m->planning->problem, &a->memory);
    }
    if (!error) {
        error = dmn_spread_units(m->model, m->net, &a->memory);
    }
    if (error) {
        dmn_auto_free(a);
        return error;
    }
    a->model = m;
    a->changed = changed;
    a->ctx = ctx;
    snprintf(a->content, sizeof(a->content), "%s", content);
    dmn_decide_init(&a->decide);
    dmn_past_init(&a->past, m->model->unit_count);
    say(a, "piped-link has not reported yet");
    *ret = a;
    return 0;
}

static void drop(struct dmn_job *work)
{
    struct job *j = base_container_of(work, struct job, work);

    dmn_spread_query_deinit(&j->query);
    free(j);
}

struct dmn_auto *dmn_auto_free(struct dmn_auto *a)
{
    if (a) {
        if (a->job) {
            dmn_job_leave(&a->job->work);
        }
        tun_problem_deinit(&a->memory);
        dmn_past_deinit(&a->past);
        free(a->report);
        free(a);
    }
    return NULL;
}

static void set_hops(struct dmn_auto *a, const struct brd_hop *hop, size_t count)
{
    a->hop_count = count;
    a->has_state = false;
    for (size_t i = 0; i < count; i++) {
        a->hop[i] = hop[i];
    }
}

static void take_hops(struct dmn_auto *a, const struct brd_hop *hop, size_t count, enum dmn_due why,
                      uint64_t now_ns)
{
    set_hops(a, hop, count);
    dmn_decide_changed(&a->decide, why, now_ns);
    a->changed(a->ctx, a->hop, a->hop_count);
}

/* ---- inputs ---- */

struct view {
    bool usable[BRD_MAX];
    struct dmn_spread_gap gaps[DMN_DECIDE_GAPS];
    struct dmn_spread_inputs in;
    struct dmn_present now;
    size_t boards;
};

static void look(const struct dmn_auto *a, uint64_t now_ns, struct view *ret)
{
    ret->in = (struct dmn_spread_inputs){.here = &a->model->planning->problem,
                                         .report = a->report,
                                         .past = &a->past,
                                         .usable = ret->usable,
                                         .gaps = ret->gaps};
    ret->now = (struct dmn_present){
        .hop = a->hop, .hop_count = a->hop_count, .state = a->has_state ? &a->state : NULL};
    ret->boards = dmn_decide_usable(&a->decide, a->report, now_ns, ret->usable, ret->gaps,
                                    &ret->in.gap_count);
}

/* Of a frame's input on its way to another board: pictures may have fewer than the tensor. */
static double wire_bytes(const struct dmn_auto *a)
{
    double seen = (double)a->model->stats.wire_bytes, all = a->memory.boards.input_bytes;

    return seen > 0 && seen < all ? seen : all;
}

/* The head's costs, with what the units take elsewhere. */
static int copy_here(const struct dmn_auto *a, struct tun_problem *ret)
{
    int error = dmn_planner_problem(a->model, NULL, ret);

    if (!error) {
        memcpy(ret->units, a->memory.units, ret->unit_count * sizeof(*ret->units));
        ret->boards = a->memory.boards;
        ret->boards.input_bytes = wire_bytes(a);
    }
    return error;
}

static int make_query(const struct dmn_auto *a, const struct view *v, struct dmn_spread_query *ret)
{
    struct tun_problem here;
    int error = copy_here(a, &here);

    error = error ? error : dmn_spread_query_init(ret, &here, &v->in, &v->now);
    ret->here_sleeps = pl_asleep(a->model->pipe);
    return error;
}

int dmn_auto_query(const struct dmn_auto *a, struct dmn_spread_query *ret)
{
    struct view v;

    if (!a->report) {
        return -ENODATA;
    }
    look(a, base_now_ns(), &v);
    return make_query(a, &v, ret);
}

/* ---- searching ---- */

static void run(struct dmn_job *work)
{
    struct job *j = base_container_of(work, struct job, work);

    j->result = dmn_spread_query_run(&j->query, &j->answer);
}

static double fps(const struct dmn_figures *f)
{
    return f->possible && f->bottleneck_ns > 0 ? 1e9 / f->bottleneck_ns : 0;
}

static const char *cause(const struct job *j)
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

static void apply(struct dmn_auto *a, const struct job *j, uint64_t now_ns)
{
    const struct dmn_spread_answer *o = &j->answer;
    bool moves = dmn_hops_load(a->hop, a->hop_count, o->hop, o->hop_count);
    enum dmn_worth worth =
        dmn_decide_worth(&j->query.here, &o->best, &o->present, &o->alone, a->hop_count > 0, moves);

    if (!dmn_decide_sustained(&a->decide, j->due, worth == DMN_TAKE_ROUTE, moves, now_ns) &&
        worth == DMN_TAKE_ROUTE) {
        return;
    }

    if (worth == DMN_TAKE_ROUTE &&
        (j->due == DMN_DUE_BROKEN || !dmn_hops_same(a->hop, a->hop_count, o->hop, o->hop_count))) {
        say(a, "%s: %.4g fps by the table, %.4g alone; %s decides", cause(j), fps(&o->best),
            fps(&o->alone), o->limit);
        take_hops(a, o->hop, o->hop_count, j->due, now_ns);
    } else if (worth == DMN_TAKE_NONE || (worth == DMN_KEEP && a->hop_count == 0)) {
        if (o->best.possible) {
            say(a, "%s: the best route would have %.4g fps, this board alone has %.4g", cause(j),
                fps(&o->best), fps(&o->alone));
        } else {
            say(a, "%s: %s", cause(j), o->limit);
        }
        if (worth == DMN_TAKE_NONE) {
            take_hops(a, NULL, 0, j->due, now_ns);
        }
    }
}

static void consider(struct dmn_auto *a, uint64_t now_ns);

static void done(struct dmn_job *work)
{
    struct job *j = base_container_of(work, struct job, work);
    struct dmn_auto *a = j->owner;
    struct view v;

    a->job = NULL;
    if (a->report && !a->held) {
        uint64_t now = base_now_ns();

        look(a, now, &v);
        v.now = (struct dmn_present){.hop = j->answer.hop, .hop_count = j->answer.hop_count};
        if (j->result < 0) {
            say(a, "no route was found: %s", strerror(-j->result));
            if (a->hop_count > 0 && j->due == DMN_DUE_BROKEN) {
                take_hops(a, NULL, 0, j->due, now);
            }
        } else if (dmn_decide_broken(&v.in, &v.now)) {
            a->decide.sought = false;
        } else {
            apply(a, j, now);
        }
        consider(a, now);
    }
    drop(work);
}

static void start(struct dmn_auto *a, const struct view *v, enum dmn_due due, uint64_t now_ns)
{
    struct job *j = calloc(1, sizeof(*j));
    int error = j ? make_query(a, v, &j->query) : -ENOMEM;

    if (error) {
        free(j);
        say(a, "no route was sought: %s", strerror(-error));
        if (due == DMN_DUE_BROKEN) {
            take_hops(a, NULL, 0, due, now_ns);
        }
        return;
    }
    dmn_decide_sought(&a->decide, &v->in);
    a->wire_bytes = wire_bytes(a);
    j->owner = a;
    j->due = due;
    j->work = (struct dmn_job){.run = run, .done = done, .drop = drop};
    a->job = j;
    dmn_work_do(a->model->of->machine->beside, &j->work);
}

static void consider(struct dmn_auto *a, uint64_t now_ns)
{
    struct view v;
    enum dmn_due due;

    look(a, now_ns, &v);
    due = dmn_decide_due(&a->decide, &v.in, &v.now, now_ns);
    if (a->job || a->held || due == DMN_DUE_NOT) {
        return;
    }
    if (v.boards > 0) {
        start(a, &v, due, now_ns);
    } else {
        say(a, "no other board is there, or not for long enough");
        if (a->hop_count > 0) {
            take_hops(a, NULL, 0, due, now_ns);
        }
    }
}

static void keep_report(struct dmn_auto *a, const struct brd_link_report_all *r,
                        const struct brd_route_state *state)
{
    *a->report = *r;
    a->report->self.costs_count = 0;
    for (size_t i = 0; i < r->board_count; i++) {
        a->report->board[i].costs_count = 0;
    }
    a->has_state = state != NULL;
    if (state) {
        a->state = *state;
    }
}

void dmn_auto_report(struct dmn_auto *a, const struct brd_link_report_all *r,
                     const struct brd_route_state *state, uint64_t now_ns)
{
    struct view v;

    if (r && !a->report) {
        a->report = malloc(sizeof(*a->report));
    }
    if (!r || !a->report) {
        free(base_take(a->report));
        dmn_decide_away(&a->decide);
        say(a, r ? "out of memory" : "piped-link is away");
        if (a->hop_count > 0) {
            take_hops(a, NULL, 0, DMN_DUE_BROKEN, now_ns);
        }
        return;
    }
    keep_report(a, r, state);
    dmn_past_learn(&a->past, a->content, r, now_ns);
    look(a, now_ns, &v);
    dmn_decide_see(&a->decide, a->report, &v.now, now_ns);
    if (a->wire_bytes > 0 && fabs(wire_bytes(a) / a->wire_bytes - 1) > DMN_SIGN_LINKS) {
        a->decide.sought = false; /* clients send pictures now, or tensors */
        a->wire_bytes = 0;
    }
    consider(a, now_ns);
}

void dmn_auto_hold(struct dmn_auto *a)
{
    a->held = true;
    set_hops(a, NULL, 0);
}

void dmn_auto_release(struct dmn_auto *a, const struct brd_hop *hop, size_t count)
{
    a->held = false;
    set_hops(a, hop, count);
    a->decide.sought = false;
    memset(a->decide.change_ns, 0, sizeof(a->decide.change_ns));
    say(a, "no route was sought yet");
}

const char *dmn_auto_why(const struct dmn_auto *a)
{
    return a->why;
}
