/* SPDX-License-Identifier: Apache-2.0 */
/* A profile is a chain of steps on the loop thread. A work thread compiles the network. Then each
 * (EP, width) is a plan of one stage, and one pipeline switches from one to the next. One frame at
 * a time is in flight, so the clocks see each unit alone. The teams' notify() wakes the loop, which
 * calls dmn_profile_step(). */

#include "daemon/plans/profile.h"
#include "daemon/config/state_file.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/switch.h"
#include "daemon/service/listeners.h"
#include "daemon/service/log.h"

#define FRAMES_MIN 2u /* the first packs caches and maps pages, the second counts */
#define FRAMES_MAX 50u
#define WIDTHS_MAX 10u /* 1, 2, 4, ... 256 and all cores */

struct dmn_profile_run {
    struct dmn_plans *plans; /* borrowed */
    struct dmn_done done;    /* the requester */
    struct dmn_job work;     /* compiles the network */
    char *folder;            /* owned; holds the description for the compiler */
    struct dmn_load *load;   /* owned; the work thread's while compiling */
    int error;               /* of the work thread */
    struct pl_pipeline *pipe;
    struct tun_bench *gemms; /* [unit_count], owned: only the matrices; n 0: unknown */
    uint8_t *memory;         /* owned: the frame's input, and behind it its output */
    size_t output_at;
    uint64_t share_ns; /* of the budget, for one width of one kind */
    size_t ep, width;  /* running now */
    struct dmn_streams streams;
    bool switching, flying;
    uint64_t from_ns, frames;
    struct tun_bench *benches; /* owned: of the kind that is running */
    size_t bench_count;
};

bool dmn_profiling(const struct dmn_plans *plans)
{
    return plans->profile && plans->profile->run != NULL;
}

/* Widths double up to all cores of the EP. Return: the next width; 0 after the last. */
static size_t next_width(const struct pl_ep *ep, size_t width)
{
    return width == ep->cpu_count ? 0 : base_min(2 * width, ep->cpu_count);
}

static size_t step_count(const struct pl_ep_set *eps)
{
    size_t count = 0;

    for (size_t e = 0; e < eps->count; e++) {
        for (size_t w = 1; w; w = next_width(&eps->eps[e], w)) {
            count++;
        }
    }
    return base_max(count, (size_t)1);
}

size_t dmn_profile_progress(const struct dmn_plans *plans, size_t *ret_of)
{
    const struct dmn_profile_run *r = plans->profile->run;
    const struct pl_ep_set *eps = &plans->machine->eps;
    size_t done = 0;

    for (size_t e = 0; e <= r->ep && e < eps->count; e++) {
        for (size_t w = 1; w && (e < r->ep || w < r->width); w = next_width(&eps->eps[e], w)) {
            done++;
        }
    }
    *ret_of = step_count(eps);
    return done;
}

static void drop(struct dmn_job *work)
{
    struct dmn_profile_run *r = base_container_of(work, struct dmn_profile_run, work);

    r->pipe = pl_free(r->pipe); /* before the network that it runs */
    dmn_load_free(r->load);
    free(r->folder);
    free(r->gemms);
    free(r->memory);
    free(r->benches);
    free(r);
}

/* Answers and frees the run; a work thread that still compiles keeps what it uses until it is
 * done. */
static void end(struct dmn_profile_run *r, const struct dmn_outcome *o)
{
    struct dmn_done done = r->done;

    r->plans->profile->run = NULL;
    dmn_job_leave(&r->work);
    dmn_done(&done, o);
}

static void fail(struct dmn_profile_run *r, enum dmn_refusal reason, const char *why)
{
    char text[sizeof(r->load->error)];

    snprintf(text, sizeof(text), "%s", why); /* `why` may belong to the run */
    dmn_log(LOG_WARNING, "the profile was given up: %s", text);
    end(r, &(struct dmn_outcome){.reason = reason, .text = text});
}

/* Whoever waits is told of the end when the profile is in its file, or cannot be. */
static void kept(void *ctx, int error)
{
    struct dmn_done *wait = ctx;

    (void)error; /* logged */
    if (wait) {
        dmn_done(wait, NULL);
        free(wait);
    }
}

static void log_fits(const char *ep, const struct dmn_profiled *of)
{
    char text[256] = "";

    for (size_t i = 0; i < TUN_LAYERS; i++) {
        const struct tun_fit *f = &of->predictor.fits[i];

        if (f->has) {
            base_append(text, sizeof(text), "%s%.1f %% (%s)", *text ? ", " : "", 100 * f->error,
                        dmn_layer_name((enum tun_layer)i));
        }
    }
    dmn_log(LOG_NOTICE, "profiled %s: %zu benchmarks, mean error of the fits %s", ep, of->benches,
            text);
}

static void finish(struct dmn_profile_run *r)
{
    struct dmn_plans *plans = r->plans;
    struct dmn_done *wait = malloc(sizeof(*wait));

    for (struct dmn_model *m = plans->models->models; m; m = m->next) {
        dmn_profile_predict(plans, &m->planning->problem);
    }
    for (size_t e = 0; e < plans->machine->eps.count; e++) {
        const struct dmn_profiled *of = dmn_profiled(plans, plans->machine->eps.eps[e].name);

        log_fits(plans->machine->eps.eps[e].name, of);
    }
    if (wait) {
        *wait = r->done;
        r->done = (struct dmn_done){0};
    }
    end(r, NULL);
    dmn_profile_save(plans, (struct dmn_state_kept){kept, wait});
}

/* ---- running ---- */

static void begin_width(struct dmn_profile_run *r)
{
    r->from_ns = base_now_ns();
    r->frames = 0;
}

static struct pl_plan plan_now(const struct dmn_profile_run *r)
{
    struct pl_plan plan = {.stage_count = 1};

    plan.stages[0] = (struct pl_stage_plan){
        .last_unit = (uint16_t)(r->load->model->unit_count - 1),
        .group_count = 1,
        .groups = {{.ep = (uint16_t)r->ep, .width = (uint16_t)r->width, .count = 1}}};
    return plan;
}

static void submit(struct dmn_profile_run *r)
{
    struct pl_frame *f = pl_frame_get(r->pipe);

    if (!f) {
        return;
    }
    f->inputs[0] = r->memory;
    f->outputs[0] = r->memory + r->output_at;
    if (pl_submit(r->pipe, f) != 0) {
        pl_frame_put(r->pipe, f);
        return;
    }
    r->flying = true;
}

/* Records the clocks of this width: of each unit the quickest frame, which nothing disturbed. */
static void record(struct dmn_profile_run *r)
{
    for (size_t u = 0; u < r->load->model->unit_count; u++) {
        struct pl_series stats;

        pl_unit_stats(r->pipe, u, &stats);
        if (r->gemms[u].n > 0 && stats.count > 0 && stats.min_ns > 0) {
            struct tun_bench *b = &r->benches[r->bench_count++];

            *b = r->gemms[u];
            b->width = (uint16_t)r->width;
            b->ns = stats.min_ns;
        }
    }
}

/* Starts the next width. Return: false: every width of every kind was measured. */
static bool next(struct dmn_profile_run *r)
{
    struct dmn_plans *plans = r->plans;

    r->width = next_width(&plans->machine->eps.eps[r->ep], r->width);
    if (r->width == 0) {
        struct tun_predictor p = {0};

        if (tun_predictor_fit(r->benches, r->bench_count, &p) == 0) {
            dmn_profile_keep(plans, plans->machine->eps.eps[r->ep].name, r->bench_count, &p);
        }
        r->bench_count = 0;
        r->width = 1;
        r->ep++;
    }
    return r->ep < plans->machine->eps.count;
}

static bool collect(struct dmn_profile_run *r)
{
    struct pl_frame *f;

    while ((f = pl_collect(r->pipe)) != NULL) {
        pl_frame_put(r->pipe, f);
        r->flying = false;
        r->frames++;
    }
    pl_reap(r->pipe);
    return !r->flying;
}

/* Return: enough frames were measured. A wide team that others disturb has no times at first; it is
 * waited for as long as the default of the whole. */
static bool measured(const struct dmn_profile_run *r)
{
    uint64_t wanted_ns = r->share_ns;
    struct pl_series first;

    pl_unit_stats(r->pipe, 0, &first);
    if (first.count == 0) {
        wanted_ns = base_max(wanted_ns, DMN_PROFILE_MS * BASE_NS_PER_MS);
    }
    return r->frames >= FRAMES_MAX ||
           (r->frames >= FRAMES_MIN && base_now_ns() - r->from_ns >= wanted_ns);
}

void dmn_profile_step(struct dmn_plans *plans)
{
    struct dmn_profile_run *r = plans->profile ? plans->profile->run : NULL;
    struct pl_plan plan;
    int error;

    if (!r || !r->pipe || !collect(r)) {
        return;
    }
    if (r->switching) {
        if (pl_switching(r->pipe)) {
            return;
        }
        r->switching = false;
        begin_width(r);
    } else if (measured(r)) {
        record(r);
        if (!next(r)) {
            finish(r);
            return;
        }
        plan = plan_now(r);
        error = pl_switch(r->pipe, &plan);
        if (error) {
            fail(r, DMN_REFUSED_BUSY,
                 error < 0 ? strerror(-error) : "the previous plan did not drain");
            return;
        }
        r->switching = pl_switching(r->pipe);
        if (r->switching) {
            return;
        }
        begin_width(r);
    }
    submit(r);
}

/* ---- building ---- */

static void compile(struct dmn_job *work)
{
    struct dmn_profile_run *r = base_container_of(work, struct dmn_profile_run, work);
    char *path;

    r->error = dmn_profile_write_net(r->folder, &path);
    if (r->error) {
        snprintf(r->load->error, sizeof(r->load->error), "%.200s: %s", r->folder,
                 strerror(-r->error));
        return;
    }
    free(r->load->path);
    r->load->path = path;
    r->error = dmn_load_run(r->load);
    unlink(path);
    dmn_streams_measure(&r->streams);
}

/* The chain has one input and one output. */
static int lay_out(struct dmn_profile_run *r)
{
    const struct mdl_model *m = r->load->model;
    size_t rows = m->unit_count * WIDTHS_MAX;

    r->output_at = base_align_up(m->inputs[0].bytes, 64);
    r->memory = calloc(1, r->output_at + base_align_up(m->outputs[0].bytes, 64) + 64);
    r->gemms = calloc(m->unit_count, sizeof(*r->gemms));
    r->benches = calloc(rows, sizeof(*r->benches));
    if (!r->memory || !r->gemms || !r->benches) {
        return -ENOMEM;
    }
    for (size_t u = 0; u < m->unit_count; u++) {
        dmn_unit_gemm(m, u, &r->gemms[u]);
    }
    return 0;
}

static int build(struct dmn_profile_run *r)
{
    struct dmn_plans *plans = r->plans;
    struct pl_options options = {
        .frames = 2,
        .no_pin = !dmn_config_int(dmn_machine_config(plans->machine), DMN_KEY_PIN),
        .notify = plans->models->wake,
        .notify_arg = plans->models->wake_arg};
    struct pl_plan plan = plan_now(r);
    int error = lay_out(r);

    return error ? error : pl_new(r->load->net, &plans->machine->eps, &plan, &options, &r->pipe);
}

static void compiled(struct dmn_job *work)
{
    struct dmn_profile_run *r = base_container_of(work, struct dmn_profile_run, work);
    struct dmn_plans *plans = r->plans;
    int error;

    if (r->error) {
        fail(r, DMN_REFUSED_LOAD, r->load->error);
    } else if ((error = build(r)) != 0) {
        fail(r, DMN_REFUSED_LOAD, strerror(-error));
    } else {
        dmn_streams_take(plans, &r->streams);
        begin_width(r);
        dmn_profile_step(plans);
    }
}

int dmn_profile_begin(struct dmn_plans *plans, struct dmn_done done, unsigned ms)
{
    const char *folder = plans->models->state_dir ? plans->models->state_dir : plans->scratch_dir;
    struct dmn_profile_run *r;

    if (plans->profile->run) {
        return -EBUSY;
    }
    r = calloc(1, sizeof(*r));
    if (!r) {
        return -ENOMEM;
    }
    r->plans = plans;
    r->work = (struct dmn_job){.run = compile, .done = compiled, .drop = drop};
    r->width = 1;
    r->streams.on = *dmn_machine_whole(plans->machine);
    r->share_ns = ms * BASE_NS_PER_MS / step_count(&plans->machine->eps);
    r->folder = strdup(folder);
    r->load =
        dmn_load_from(&(struct dmn_load_source){.name = "profile", .path = ""}, plans->models);
    if (!r->folder || !r->load) {
        drop(&r->work);
        return -ENOMEM;
    }
    r->load->choose.ms = 0;
    r->load->weight_bytes_max = r->load->arena_bytes_max = 0; /* limits apply to users' models */
    r->done = done;
    plans->profile->run = r;
    dmn_work_do(plans->machine->awaited, &r->work);
    dmn_log(LOG_INFO, "a profile begins: %zu shapes of teams, %u ms",
            step_count(&plans->machine->eps), ms);
    DMN_TELL(plans->listeners, profile_begun);
    return 0;
}

void dmn_profile_abort(struct dmn_plans *plans, const char *why)
{
    if (dmn_profiling(plans)) {
        fail(plans->profile->run, DMN_REFUSED_BUSY, why);
    }
}
