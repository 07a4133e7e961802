/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models.h - the loaded models, each with its own pipeline
 *
 * A model is made from a finished load (daemon/load.h). Threads: the loop's. One that is unloaded
 * leaves the list of names at once, answers what it had admitted, and is freed when it has run dry.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/adapt.h"
#include "daemon/admission.h"
#include "daemon/frames.h"
#include "daemon/history.h"
#include "daemon/load.h"
#include "daemon/planner.h"
#include "daemon/retune.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "pipeline/pipeline.h"

struct dmn_call;

#define DMN_LATENCIES 1024u /* answers that the percentiles look at */
#define DMN_RATE_SAMPLES 6u /* seconds that fps looks at */

struct dmn_model_stats {
    uint64_t admitted, answered, dropped, failed; /* frames of clients */
    uint64_t by_status[IPC_STATUS_COUNT];
    uint64_t collected;              /* out of the pipeline, synthetic ones too */
    float latency_ms[DMN_LATENCIES]; /* arrival to done, a ring */
    uint64_t latency_count;
    double latency_sum_s;
    double service_ewma_ns; /* start to done, moving average */
    uint64_t last_ns;       /* when the last client's frame came out */
    struct {
        uint64_t at_ns, answered;
    } rate[DMN_RATE_SAMPLES]; /* once a second */
    size_t rate_at;
};

/* A sample of every team's busy time, to tell its share of the last second. */
struct dmn_busy {
    uint64_t at_ns;
    uint32_t epoch;
    uint64_t busy_ns[PL_TEAM_MAX];
};

struct dmn_model {
    struct dmn_model *next;
    struct dmn_daemon *daemon;
    char name[64];
    char *path, *config_plan, *kernels, *calibration; /* owned */
    bool latest, from_config;
    struct mdl_model *model;  /* owned */
    struct krn_net *net;      /* owned */
    struct pl_pipeline *pipe; /* owned */
    uint64_t loaded_ns, load_took_ns;
    struct dmn_stamp stamp;
    /* one frame's areas: tensors back to back, each offset a multiple of 64 */
    size_t input_bytes, output_bytes;
    size_t in_offset[PL_FRAME_IO_MAX], out_offset[PL_FRAME_IO_MAX];
    uint32_t image_width, image_height; /* 0: input 0 is no image */
    const char *algorithm;              /* static: of the tuner, or "manual", "config", "saved" */
    struct tun_outcome expected;        /* of the plan that serves, by the table when it began */
    bool expects;                       /* all of expected is known */
    struct tun_problem problem;         /* what was learned of it on these cores */
    struct tun_trial measured;          /* the last retune's, of the plan it left; frames 0: none */
    char measured_at[DMN_DATE_MAX];
    struct dmn_planner_clocks clocks;
    struct dmn_busy busy[2]; /* a second ago, and the second before */
    uint64_t period_ns;      /* of a busy pipeline, for admission; 0: not known yet */
    struct dmn_admission admission;
    struct dmn_stream *streams;    /* all, orphans too */
    size_t running;                /* records inside the pipeline */
    bool leaving;                  /* unloaded: not found by name any more */
    struct dmn_call *unload_call;  /* to be answered when it is gone */
    struct dmn_call *switch_call;  /* to be answered when the old plan has run dry */
    struct dmn_adapt_model *adapt; /* owned; NULL: nothing is watched */
    struct dmn_retune *retune;     /* owned; a measurement that is under way, or NULL */
    bool stalled;                  /* said so already */
    /* dmn_memory_settle(): the plan that served last time and since when, that of the last trim */
    uint32_t settling_epoch, settled_epoch;
    uint64_t settling_ns;
    struct dmn_model_stats stats;
};

struct dmn_model *dmn_model_find(const struct dmn_daemon *d, const char *name);
/** dmn_model_default() - the one that is meant when none is named, or NULL. */
struct dmn_model *dmn_model_default(const struct dmn_daemon *d);
size_t dmn_model_count(const struct dmn_daemon *d);
/** dmn_model_source() - what @m was loaded from; borrowed from it. */
struct dmn_load_source dmn_model_source(const struct dmn_model *m);
/** dmn_model_integers() - how many of its operators run on integers. */
size_t dmn_model_integers(const struct dmn_model *m);

/**
 * dmn_model_start() - a finished load becomes a serving model, the newest in the list
 * Takes what the load holds, on success. @cause: of the history event. Return: 0, -EINVAL or -errno
 * with @ret_error (MDL_ERROR_MAX) set.
 */
int dmn_model_start(struct dmn_daemon *d, struct dmn_load *l, const char *cause, char *ret_error,
                    struct dmn_model **ret);
/** dmn_model_unload() - streams are told; @call (may be NULL) is answered when the last frame is.
 */
void dmn_model_unload(struct dmn_model *m, struct dmn_call *call);
/** dmn_model_move_streams() - @from's streams go to @to if its frames look the same. Return: did
 * they. */
bool dmn_model_move_streams(struct dmn_model *from, struct dmn_model *to);
/** dmn_model_destroy() - now; streams lose it. In-flight frames are cancelled. */
void dmn_model_destroy(struct dmn_model *m);

/** dmn_model_admit() - fills the pipeline from the waiting frames. */
void dmn_model_admit(struct dmn_model *m);
/** dmn_model_collect() - takes every finished frame; then what waits is admitted. */
void dmn_model_collect(struct dmn_model *m);
/** dmn_model_after() - work that a finished switch or an emptied pipeline allows; may free @m. */
void dmn_model_after(struct dmn_model *m);

/** dmn_model_set_plan() - switches and remembers: log, history, saved state, clients. Return: 0,
 * PL_E_BUSY, -errno. */
int dmn_model_set_plan(struct dmn_model *m, const struct pl_plan *plan, const char *algorithm,
                       const char *cause, const char *detail);
/** dmn_model_plan_changed() - another plan serves: expectations, credits, clients, subscribers. */
void dmn_model_plan_changed(struct dmn_model *m);

/** dmn_model_busy() - share of the last second that the teams of each stage held frames, mean. */
void dmn_model_busy(const struct dmn_model *m, double ret[PL_STAGE_MAX]);

/* models_stats.c */
double dmn_model_fps(const struct dmn_model *m, uint64_t now_ns);
/** dmn_model_latency() - p50, p95, p99 and max of the newest answers in ms; zeros before the first.
 */
void dmn_model_latency(const struct dmn_model *m, double ret[4]);
void dmn_model_account(struct dmn_model *m, const struct dmn_record *r);
/** dmn_model_tick() - what happens once a second: rates, memory, what was learned. */
void dmn_model_tick(struct dmn_model *m, uint64_t now_ns);

/* models_json.c */
json_t *dmn_model_json(const struct dmn_model *m);        /* of Models and Load */
json_t *dmn_model_status_json(const struct dmn_model *m); /* of Status */
json_t *dmn_model_units_json(const struct dmn_model *m);
json_t *dmn_model_warnings_json(const struct dmn_model *m);
/** dmn_model_plan_text() - the present plan; @ret has PL_PLAN_TEXT_MAX bytes. */
void dmn_model_plan_text(const struct dmn_model *m, char *ret);
