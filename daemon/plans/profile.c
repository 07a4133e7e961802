/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A calibration as a chain of steps on the loop thread: the network is compiled on a work thread,
 * then every (place, width) is a plan of one stage in a pipeline of its own, switched from one to
 * the next; one frame at a time is in flight, so that the clocks see the units alone. The teams'
 * notify() wakes the loop and with it dmn_calibrate_step().
 */
#include "daemon/calibrate.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/calibrate_private.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"

#define FRAMES_MIN 2u /* the first packs caches and maps pages, the second counts */
#define FRAMES_MAX 50u
#define WIDTHS_MAX 10u /* 1, 2, 4, ... 256 and all cores */

struct gemm {
    bool known;
    double n, k, m;
};

struct dmn_calibrate_run {
    struct dmn_daemon *daemon;
    struct dmn_call *call; /* NULL: nobody waits any more */
    uv_work_t work;
    bool compiling, aborted;
    char *folder;          /* owned; where the description is put for the compiler */
    struct dmn_load *load; /* owned; the work thread's while compiling */
    int error;             /* of the work thread */
    struct pl_pipeline *pipe;
    struct gemm *gemms; /* [unit_count], owned */
    uint8_t *memory;    /* owned: the frame's inputs and outputs, back to back */
    size_t in_offset[PL_FRAME_IO_MAX], out_offset[PL_FRAME_IO_MAX];
    uint64_t share_ns; /* of the budget, for one width of one kind */
    size_t ep, width;  /* what runs now */
    bool switching, flying;
    uint64_t from_ns, frames;
    struct tun_bench *benches; /* owned: of the kind that runs now */
    size_t bench_count;
};

bool dmn_calibrating(const struct dmn_daemon *d)
{
    return d->calibration && d->calibration->run != NULL;
}

/* Widths double up to all cores of the place. Return: the next, 0 behind the last. */
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

static void run_free(struct dmn_calibrate_run *r)
{
    r->pipe = pl_free(r->pipe); /* before the network that it runs */
    dmn_load_free(r->load);
    free(r->folder);
    free(r->gemms);
    free(r->memory);
    free(r->benches);
    free(r);
}

/* Answers and goes; a work thread that still compiles keeps what it uses until it is done. */
static void end(struct dmn_calibrate_run *r, const char *error, const char *why)
{
    if (r->call && error) {
        dmn_call_error(base_take(r->call), error, "why", why);
    }
    r->daemon->calibration->run = NULL;
    if (r->compiling) {
        r->aborted = true;
        uv_cancel((uv_req_t *)&r->work);
    } else {
        run_free(r);
    }
}

static void fail(struct dmn_calibrate_run *r, const char *error, const char *why)
{
    dmn_log(LOG_WARNING, "the calibration was given up: %s", why);
    end(r, error, why);
}

static json_t *error_or_null(bool has, double error)
{
    return has ? json_real(error) : json_null();
}

static json_t *result_json(const struct dmn_daemon *d)
{
    json_t *list = json_array();

    for (size_t e = 0; e < d->eps.count; e++) {
        const struct tun_predictor *p = &d->calibration->kinds[e].predictor;

        json_array_append_new(
            list, json_pack("{s:s, s:I, s:o, s:o, s:o}", "name", d->eps.eps[e].name, "benches",
                            (json_int_t)d->calibration->kinds[e].benches, "error_conv",
                            error_or_null(p->has_conv, p->error_conv), "error_fc",
                            error_or_null(p->has_fc, p->error_fc), "error_multi",
                            error_or_null(p->has_alpha, p->error_multi)));
    }
    return list;
}

static void finish(struct dmn_calibrate_run *r)
{
    struct dmn_daemon *d = r->daemon;
    struct dmn_call *call = base_take(r->call);

    dmn_calibration_save(d);
    for (struct dmn_model *m = d->models; m; m = m->next) {
        dmn_calibrate_predict(d, &m->problem);
    }
    for (size_t e = 0; e < d->eps.count; e++) {
        const struct tun_predictor *p = &d->calibration->kinds[e].predictor;

        dmn_log(LOG_NOTICE,
                "calibrated %s: %zu benchmarks, mean error of the fits %.1f %% (convolutions), "
                "%.1f %% (fully connected)",
                d->eps.eps[e].name, d->calibration->kinds[e].benches, 100 * p->error_conv,
                100 * p->error_fc);
    }
    end(r, NULL, NULL);
    if (call) {
        dmn_call_reply(call, json_pack("{s:o}", "kinds", result_json(d)), false);
    }
}

/* ---- running ---- */

static void begin_width(struct dmn_calibrate_run *r)
{
    r->from_ns = base_now_ns();
    r->frames = 0;
}

static struct pl_plan plan_now(const struct dmn_calibrate_run *r)
{
    struct pl_plan plan = {.stage_count = 1};

    plan.stages[0] = (struct pl_stage_plan){
        .last_unit = (uint16_t)(r->load->model->unit_count - 1),
        .group_count = 1,
        .groups = {{.ep = (uint16_t)r->ep, .width = (uint16_t)r->width, .count = 1}}};
    return plan;
}

static void submit(struct dmn_calibrate_run *r)
{
    const struct mdl_model *m = r->load->model;
    struct pl_frame *f = pl_frame_get(r->pipe);

    if (!f) {
        return;
    }
    for (size_t i = 0; i < m->input_count; i++) {
        f->inputs[i] = r->memory + r->in_offset[i];
    }
    for (size_t i = 0; i < m->output_count; i++) {
        f->outputs[i] = r->memory + r->out_offset[i];
    }
    if (pl_submit(r->pipe, f) != 0) {
        pl_frame_put(r->pipe, f);
        return;
    }
    r->flying = true;
}

/* The clocks of this width. The quickest of a unit's frames is the one that nobody disturbed. */
static void record(struct dmn_calibrate_run *r)
{
    for (size_t u = 0; u < r->load->model->unit_count; u++) {
        struct pl_unit_stats stats;

        pl_unit_stats(r->pipe, u, &stats);
        if (r->gemms[u].known && stats.time.count > 0 && stats.time.min_ns > 0) {
            r->benches[r->bench_count++] = (struct tun_bench){.n = r->gemms[u].n,
                                                              .k = r->gemms[u].k,
                                                              .m = r->gemms[u].m,
                                                              .width = (uint16_t)r->width,
                                                              .ns = stats.time.min_ns};
        }
    }
}

/* Return: false when every width of every kind was measured. */
static bool next(struct dmn_calibrate_run *r)
{
    struct dmn_daemon *d = r->daemon;

    r->width = next_width(&d->eps.eps[r->ep], r->width);
    if (r->width == 0) {
        struct tun_predictor p = {0};

        if (tun_predictor_fit(r->benches, r->bench_count, &p) == 0) {
            d->calibration->kinds[r->ep].known = true;
            d->calibration->kinds[r->ep].benches = r->bench_count;
            d->calibration->kinds[r->ep].predictor = p;
        }
        r->bench_count = 0;
        r->width = 1;
        r->ep++;
    }
    return r->ep < d->eps.count;
}

static bool collect(struct dmn_calibrate_run *r)
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

void dmn_calibrate_step(struct dmn_daemon *d)
{
    struct dmn_calibrate_run *r = d->calibration ? d->calibration->run : NULL;
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
    } else if (r->frames >= FRAMES_MAX ||
               (r->frames >= FRAMES_MIN && base_now_ns() - r->from_ns >= r->share_ns)) {
        record(r);
        if (!next(r)) {
            finish(r);
            return;
        }
        plan = plan_now(r);
        error = pl_switch(r->pipe, &plan);
        if (error) {
            fail(r, "Busy", error < 0 ? strerror(-error) : "a switch did not end");
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

static void compile(uv_work_t *work)
{
    struct dmn_calibrate_run *r = work->data;
    base_autofree char *path = NULL;

    r->error = dmn_calibrate_write_net(r->folder, &path);
    if (r->error) {
        snprintf(r->load->error, sizeof(r->load->error), "%.200s: %s", r->folder,
                 strerror(-r->error));
        return;
    }
    free(r->load->path);
    r->load->path = strdup(path);
    r->error = r->load->path ? dmn_load_run(r->load) : -ENOMEM;
    unlink(path);
}

static int lay_out(struct dmn_calibrate_run *r)
{
    const struct mdl_model *m = r->load->model;
    size_t bytes = 0, rows = m->unit_count * WIDTHS_MAX;

    for (size_t i = 0; i < m->input_count; i++) {
        r->in_offset[i] = bytes;
        bytes += base_align_up(m->inputs[i].bytes, 64);
    }
    for (size_t i = 0; i < m->output_count; i++) {
        r->out_offset[i] = bytes;
        bytes += base_align_up(m->outputs[i].bytes, 64);
    }
    r->memory = calloc(1, bytes + 64);
    r->gemms = calloc(m->unit_count, sizeof(*r->gemms));
    r->benches = calloc(rows, sizeof(*r->benches));
    if (!r->memory || !r->gemms || !r->benches) {
        return -ENOMEM;
    }
    for (size_t u = 0; u < m->unit_count; u++) {
        struct gemm *g = &r->gemms[u];

        g->known = dmn_unit_gemm(m, u, &g->n, &g->k, &g->m);
    }
    return 0;
}

static int build(struct dmn_calibrate_run *r)
{
    struct dmn_daemon *d = r->daemon;
    struct pl_options options = {.frames = 2,
                                 .no_pin = !dmn_config_int(d->config, DMN_KEY_PIN),
                                 .notify = dmn_daemon_wake,
                                 .notify_arg = d};
    struct pl_plan plan = plan_now(r);
    int error = lay_out(r);

    return error ? error : pl_new(r->load->net, &d->eps, &plan, &options, &r->pipe);
}

static void compiled(uv_work_t *work, int status)
{
    struct dmn_calibrate_run *r = work->data;
    struct dmn_daemon *d = r->daemon;
    int error;

    r->compiling = false;
    if (r->aborted) {
        run_free(r);
        return;
    }
    if (status < 0 || r->error) {
        fail(r, "LoadFailed", status < 0 ? "no work thread" : r->load->error);
    } else if ((error = build(r)) != 0) {
        fail(r, "LoadFailed", strerror(error < 0 ? -error : ENOTRECOVERABLE));
    } else {
        begin_width(r);
        dmn_calibrate_step(d);
    }
    dmn_daemon_settle(d);
}

int dmn_calibrate_begin(struct dmn_daemon *d, struct dmn_call *call, unsigned ms)
{
    const char *folder = d->state_dir ? d->state_dir : d->runtime_dir ? d->runtime_dir : "/tmp";
    struct dmn_calibrate_run *r;
    int error;

    if (d->calibration->run) {
        return -EBUSY;
    }
    r = calloc(1, sizeof(*r));
    if (!r) {
        return -ENOMEM;
    }
    r->daemon = d;
    r->work.data = r;
    r->width = 1;
    r->share_ns = ms * BASE_NS_PER_MS / step_count(&d->eps);
    r->folder = strdup(folder);
    r->load = dmn_load_new("calibration", "", NULL, NULL, false, d);
    if (!r->folder || !r->load) {
        run_free(r);
        return -ENOMEM;
    }
    r->load->choose.ms = 0;
    r->load->weight_bytes_max = r->load->arena_bytes_max = 0; /* limits are for users' models */
    error = uv_queue_work(&d->loop, &r->work, compile, compiled);
    if (error < 0) {
        run_free(r);
        return error;
    }
    r->compiling = true;
    r->call = call;
    d->calibration->run = r;
    dmn_log(LOG_INFO, "calibration begins: %zu shapes of teams, %u ms", step_count(&d->eps), ms);
    dmn_control_event(d, json_pack("{s:s}", "event", "calibration"));
    return 0;
}

void dmn_calibrate_abort(struct dmn_daemon *d, const char *why)
{
    if (dmn_calibrating(d)) {
        fail(d->calibration->run, "Busy", why);
    }
}
