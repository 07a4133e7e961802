/* SPDX-License-Identifier: Apache-2.0 */
/* A search over boards (daemon/plans/retune.h): its plans become routes, and what these show is
 * measured: level 2 of the hierarchical DSE (its section 4.3), on the boards that are there.
 *
 * A plan says which cores run what; a route says which boards do, and each board decides by itself
 * how. So plans of one route are one to measure. Frames of the route's own are offered while no
 * client's frame waits, so that the route is full and shows its pace. Memory and energy are those
 * of the table, with what boards told meanwhile. */
#include "daemon/boards/board_model.h"
#include "daemon/boards/over_boards.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/retune.h"

#define PREPARE_NS (60 * BASE_NS_PER_S)  /* boards fetch weights and load segments */
#define PATIENCE_NS (10 * BASE_NS_PER_S) /* without a frame */
#define BUDGET_PART 20u
#define BATCH 4u
#define FRAMES_MAX 256u
#define SIGMA_TOLD 0.05 /* of a time that a board measured */

struct far {
    struct dmn_far_frame frame;
    struct dmn_board_trial *of;
    bool out;
};

/* A route that was measured. */
struct known {
    char text[DMN_ROUTE_TEXT_MAX];
    double ns, ci;
    uint64_t frames;
};

struct dmn_board_trial {
    struct dmn_board_model *bm;    /* NULL: it is gone */
    struct dmn_spread_table table; /* owned */
    struct far far[FRAMES_MAX];
    size_t outstanding;
    uint64_t done_count;     /* of its own frames */
    uint8_t *input, *output; /* owned, of all frames */
    struct known *known;     /* owned */
    size_t known_count, known_room;
    /* the measurement */
    struct dmn_trial_limits limits;
    struct pl_plan plan;
    char text[DMN_ROUTE_TEXT_MAX]; /* of its route */
    uint64_t began_ns, window_ns;  /* window_ns 0: the route is not full yet */
    uint64_t came_ns;              /* the last frame, or when it began or served */
    uint64_t first, back;          /* frames that were back when it served, and at the last look */
    bool serves, stopped, failed;
    struct dmn_pace pace;
};

/* ---- frames ---- */

static void came_back(struct dmn_far_frame *f, struct dmn_model *m, const struct dmn_far_answer *a)
{
    struct far *far = base_container_of(f, struct far, frame);

    far->out = false;
    far->of->outstanding--;
    far->of->done_count += !a->undone;
}

static void fill(struct dmn_board_trial *t)
{
    struct dmn_elsewhere *to = &t->bm->elsewhere;

    for (size_t i = 0; i < FRAMES_MAX && dmn_model_waiting(t->bm->model) == 0; i++) {
        struct far *far = &t->far[i];

        if (far->out) {
            continue;
        }
        far->of = t;
        far->frame =
            (struct dmn_far_frame){.input = t->input, .output = t->output, .done = came_back};
        if (to->offer(to, &far->frame) != DMN_OFFER_TAKEN) {
            return;
        }
        far->out = true;
        t->outstanding++;
    }
}

static bool busy(void *ctx)
{
    const struct dmn_board_trial *t = ctx;

    return t->outstanding > 0;
}

static uint64_t done(void *ctx)
{
    const struct dmn_board_trial *t = ctx;

    return t->done_count;
}

/* ---- measuring ---- */

static struct known *known_route(const struct dmn_board_trial *t)
{
    for (size_t i = 0; i < t->known_count; i++) {
        if (strcmp(t->known[i].text, t->text) == 0) {
            return &t->known[i];
        }
    }
    return NULL;
}

/* Return: every board of the hops is there. */
static bool all_up(const struct dmn_board_trial *t, const struct brd_hop *hop, size_t count)
{
    for (size_t h = 0; h < count; h++) {
        for (size_t b = 0; b < hop[h].board_count; b++) {
            if (!dmn_board_up(t->bm->of->report, hop[h].board[b].print)) {
                return false;
            }
        }
    }
    return true;
}

static bool has_failed(const struct dmn_board_model *bm)
{
    const struct brd_route_state *state = dmn_spread_state(bm);

    return !bm->of->report || bm->route->hop_count == 0 || (state && state->phase == BRD_FAILED);
}

static int want(struct dmn_board_model *bm, const struct brd_hop *hop, size_t count)
{
    if (dmn_hops_same(bm->route->hop, bm->route->hop_count, hop, count) && !has_failed(bm)) {
        return 0;
    }
    memcpy(bm->route->hop, hop, count * sizeof(*hop));
    return dmn_spread_want(bm, count);
}

static int begin(void *ctx, const struct pl_plan *plan, const struct dmn_trial_limits *limits)
{
    base_autofree struct brd_hop *hop = calloc(BRD_HOPS_MAX, sizeof(*hop));
    struct dmn_board_trial *t = ctx;
    size_t count = 0;
    int r = !hop ? -ENOMEM : !t->bm ? -ENODEV : dmn_plan_hops(&t->table, plan, hop, &count);

    if (r < 0) {
        return r;
    }
    if (count == 0) {
        if (pl_asleep(t->bm->model->pipe)) {
            return -EINVAL;
        }
        dmn_spread_want(t->bm, 0);
        return DMN_OVER_ALONE;
    }
    if (!t->bm->of->report || !all_up(t, hop, count) || dmn_spread_crosses_gap(&t->table.p, plan)) {
        return -ENODEV;
    }
    r = want(t->bm, hop, count);
    if (r == 0 && limits) {
        dmn_hops_text(hop, count, t->bm->of->report, t->text);
        t->limits = *limits;
        t->plan = *plan;
        t->began_ns = t->came_ns = base_now_ns();
        t->window_ns = 0;
        t->serves = t->stopped = t->failed = false;
        t->pace = (struct dmn_pace){0};
    }
    return r;
}

static uint64_t frames_back(const struct dmn_board_model *bm)
{
    struct dmn_away_counts n = dmn_board_model_counts(bm);

    return n.taken - n.in_flight - n.undone;
}

/* Counts what came back since the last look. Return: enough is known. */
static bool look(struct dmn_board_trial *t, uint64_t now_ns)
{
    uint64_t back = frames_back(t->bm);
    double ns, half;

    t->came_ns = back > t->back ? now_ns : t->came_ns;
    if (!t->window_ns) {
        uint64_t full = base_max((uint64_t)t->bm->state.window, (uint64_t)1);

        if (back - t->first >= full ||
            (back > t->first && now_ns - t->began_ns >= t->limits.budget_ns)) {
            t->window_ns = now_ns;
            dmn_pace_begin(&t->pace, now_ns, BATCH);
        }
        t->back = back;
        return false;
    }
    for (; t->back < back; t->back++) {
        dmn_pace_add(&t->pace, now_ns);
    }
    ns = dmn_pace_mean_ns(&t->pace);
    half = dmn_pace_half_ns(&t->pace);
    t->stopped = t->limits.stop_ns > 0 && t->pace.count >= DMN_TRIAL_STOP_FRAMES &&
                 ns - half > t->limits.stop_ns;
    return t->stopped || (t->pace.count > 0 && now_ns - t->window_ns >= t->limits.budget_ns) ||
           (t->pace.count >= t->limits.frames &&
            now_ns - t->window_ns >= t->limits.budget_ns / BUDGET_PART &&
            half <= DMN_TRIAL_UNCERTAINTY * ns);
}

static bool over(void *ctx, uint64_t now_ns)
{
    struct dmn_board_trial *t = ctx;
    uint64_t patience = t->serves ? PATIENCE_NS : PREPARE_NS;

    if (t->bm && !t->limits.anew && known_route(t)) {
        return true;
    }
    if (!t->bm || has_failed(t->bm) || now_ns - t->came_ns > patience) {
        t->failed = true;
        return true;
    }
    if (t->bm->serving != t->bm->route->number) {
        return false;
    }
    if (!t->serves) {
        t->serves = true;
        t->first = t->back = frames_back(t->bm);
        t->began_ns = t->came_ns = now_ns;
    }
    fill(t);
    return look(t, now_ns);
}

/* ---- what it showed ---- */

static void remember(struct dmn_board_trial *t)
{
    double ns = dmn_pace_mean_ns(&t->pace), half = dmn_pace_half_ns(&t->pace);
    struct known *to = known_route(t);

    if (!to && base_room(&t->known, sizeof(*t->known), t->known_count, &t->known_room)) {
        to = &t->known[t->known_count++];
        memcpy(to->text, t->text, sizeof(to->text));
    }
    if (to) {
        to->ns = ns;
        to->ci = isfinite(half) ? half / ns : 0;
        to->frames = t->pace.count;
    }
}

/* Adds what the boards told of an EP's width. Return: the samples, with these. */
static size_t add_row(const struct tun_problem *p, size_t ep, size_t width,
                      const struct dmn_past_row *row, struct tun_sample *samples, size_t count)
{
    for (size_t u = 0; row && u < p->unit_count; u++) {
        if (row->ns[u] > 0) {
            samples[count++] = (struct tun_sample){.ep = (uint16_t)ep,
                                                   .width = (uint16_t)width,
                                                   .unit = (uint32_t)u,
                                                   .ns = row->ns[u],
                                                   .sigma = SIGMA_TOLD};
        }
    }
    return count;
}

static int tell_samples(const struct dmn_board_trial *t, const struct tun_problem *p,
                        struct tun_trial *ret, struct tun_sample **ret_samples)
{
    struct tun_sample *samples = calloc(tun_cell_count(&p->costs), sizeof(*samples));

    if (!samples) {
        return -ENOMEM;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        const char *name = p->eps[k].name, *colon = p->eps[k].board ? strchr(name, ':') : NULL;

        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            ret->sample_count = add_row(p, k, w,
                                        dmn_past_find(&t->bm->past, t->table.print[p->eps[k].board],
                                                      colon ? colon + 1 : name, w),
                                        samples, ret->sample_count);
        }
    }
    ret->samples = *ret_samples = samples;
    return 0;
}

static int result(void *ctx, const struct tun_problem *p, struct tun_trial *ret,
                  struct tun_sample **ret_samples, double *ret_ci)
{
    struct dmn_board_trial *t = ctx;
    const struct known *known = t->bm && !t->failed && !t->limits.anew ? known_route(t) : NULL;
    bool again = known;

    *ret = (struct tun_trial){.plan = t->plan, .stopped = t->stopped && !again};
    *ret_samples = NULL;
    *ret_ci = 0;
    ret->spent_ns = again ? 0 : (double)(base_now_ns() - t->began_ns);
    if (!again && !t->failed) {
        remember(t);
        known = known_route(t);
    }
    ret->failed = !known || tun_eval(p, &t->plan, &ret->measured) != 0;
    if (ret->failed) {
        return 0;
    }
    /* of the table, which is not to learn of itself */
    memset(ret->measured.team_ns, 0, sizeof(ret->measured.team_ns));
    memset(ret->measured.stage_ns, 0, sizeof(ret->measured.stage_ns));
    ret->measured.bottleneck_ns = known->ns;
    ret->frames = known->frames;
    *ret_ci = known->ci;
    return tell_samples(t, p, ret, ret_samples);
}

static void text(void *ctx, const struct tun_problem *p, const struct pl_plan *plan,
                 char ret[PL_PLAN_TEXT_MAX])
{
    base_autofree struct brd_hop *hop = calloc(BRD_HOPS_MAX, sizeof(*hop));
    const struct dmn_board_trial *t = ctx;
    size_t count = 0;

    if (hop && t->bm && t->bm->of->report && dmn_plan_hops(&t->table, plan, hop, &count) == 0 &&
        count > 0) {
        dmn_hops_text(hop, count, t->bm->of->report, ret);
    } else {
        tun_plan_text(p, plan, ret);
    }
}

/* ---- its beginning and its end ---- */

static void adopt(void *ctx, const struct pl_plan *plan, bool found)
{
    struct dmn_board_trial *t = ctx;
    char route[PL_PLAN_TEXT_MAX] = "";

    if (t->bm) {
        t->bm->trial = NULL;
        text(t, &t->table.p, plan, route);
        dmn_spread_searched(t->bm, found ? route : NULL);
        t->bm = NULL;
    }
}

static void trial_free(void *ctx)
{
    struct dmn_board_trial *t = ctx;

    if (t->bm) {
        t->bm->trial = NULL;
    }
    dmn_spread_table_deinit(&t->table);
    free(t->known);
    free(t->input);
    free(t->output);
    free(t);
}

void dmn_board_trial_leave(struct dmn_board_model *bm, bool ends)
{
    struct dmn_board_trial *t = base_take(bm->trial);

    if (t) {
        t->bm = NULL;
        t->outstanding = ends ? 0 : t->outstanding;
    }
}

/* Return: owned; NULL: out of memory. */
static struct dmn_board_trial *trial_new(struct dmn_board_model *bm)
{
    struct dmn_board_trial *t = calloc(1, sizeof(*t));

    if (t) {
        t->bm = bm;
        t->table = DMN_SPREAD_TABLE_NULL;
        t->input = calloc(1, base_max(bm->model->input_bytes, (size_t)1));
        t->output = calloc(1, base_max(bm->model->output_bytes, (size_t)1));
        if (!t->input || !t->output) {
            trial_free(base_take(t));
        }
    }
    return t;
}

/* The table for the goal, and the present route as one of its plans. nsga2 may come back to boards,
 * so it is told how many segments a route has at most. */
static int prepare(struct dmn_board_trial *t, const struct dmn_goal *goal,
                   const struct tun_algorithm *of, struct pl_plan *plan)
{
    base_autofree struct dmn_spread_query *query = calloc(1, sizeof(*query));
    base_cleanup(tun_problem_deinit) struct tun_problem of_goal = TUN_PROBLEM_NULL;
    int r = query ? dmn_auto_query(t->bm, query) : -ENOMEM;

    r = r ? r : dmn_planner_problem(t->bm->model, goal, &of_goal);
    for (size_t i = 0; i < BRD_MAX && r == 0; i++) {
        query->may.usable[i] = true; /* whoever asks knows that they stay */
    }
    r = r ? r : dmn_spread_query_table(query, &t->table);
    if (r == 0) {
        t->table.p.objective = of_goal.objective;
        t->table.p.bounds = of_goal.bounds;
        t->table.p.bounds.stages_max = of == &tun_nsga2 ? BRD_HOPS_MAX : 0;
        r = t->table.p.boards.count < 2 ? -ENODEV : 0;
    }
    if (r == 0 && query->hop_count > 0 &&
        dmn_hops_plan(&t->table, query->hop, query->hop_count, plan) < 0) {
        r = -ENODEV; /* a board of the present route */
    }
    if (query) {
        dmn_spread_query_deinit(query);
    }
    return r;
}

int dmn_boards_retune(struct dmn_model *m, const struct dmn_retune_request *q)
{
    base_autofree struct pl_plan *before = calloc(1, sizeof(*before));
    struct dmn_board_model *bm = dmn_boards_of(m);
    struct dmn_retune_request over_boards = *q;
    struct dmn_board_trial *t;
    int r;

    if (!bm || !bm->spreads) {
        return -EOPNOTSUPP;
    }
    if (bm->trial) {
        return -EBUSY;
    }
    t = trial_new(bm);
    r = before && t ? prepare(t, &q->goal, q->algorithm, before) : -ENOMEM;
    if (r) {
        if (t) {
            trial_free(t);
        }
        return r;
    }
    over_boards.over =
        (struct dmn_retune_over){t, begin, over, result, text, adopt, busy, done, trial_free};
    over_boards.problem = &t->table.p;
    over_boards.before = before->stage_count ? before : NULL;
    bm->trial = t;
    return dmn_retune_begin(m, &over_boards);
}
