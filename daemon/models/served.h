/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/served.h - a model that serves: its sources, network, pipeline and measurements
 *
 * Owned by struct dmn_models (models.h). Plain data. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/models/done.h"
#include "daemon/models/loading.h"
#include "daemon/models/serving.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "pipeline/pipeline.h"

struct dmn_adapt_model;
struct dmn_clients;
struct dmn_elsewhere;
struct dmn_models;
struct dmn_planning;

#define DMN_RATE_SAMPLES 6u /* seconds over which fps is measured */

struct dmn_model_stats {
    /* clients' frames, counted by daemon/frames/ */
    uint64_t admitted, answered, dropped, failed;
    uint64_t here;      /* of clients' frames, those that this board's pipeline computed */
    uint64_t collected; /* frames out of the pipeline, with synthetic ones */
    uint64_t last_ns;   /* when the last client's frame came out */
    /* of a frame's input, as it would go to other boards: moving average; 0: not known */
    uint64_t wire_bytes;
    struct {
        uint64_t at_ns, answered;
    } rate[DMN_RATE_SAMPLES]; /* one sample a second */
    size_t rate_at;
};

/* A sample of every team's busy time, for its share of the last second. */
struct dmn_busy {
    uint64_t at_ns;
    uint32_t epoch;
    uint64_t busy_ns[PL_TEAM_MAX];
};

struct dmn_model {
    struct dmn_model *next;
    struct dmn_models *of;
    char name[64], board[DMN_BOARD_NAME_BYTES]; /* board: that a segment is computed for; or "" */
    char *path, *config_plan, *kernels, *calibration, *shapes; /* owned */
    char *preprocess; /* owned: how pictures become the input, as JSON; NULL: nothing says so */
    bool latest, from_config;
    struct dmn_kept_choice choice;
    bool quantised;           /* by examples, which its segments on other boards would not be */
    struct mdl_model *model;  /* owned */
    struct krn_net *net;      /* owned */
    struct pl_pipeline *pipe; /* owned */
    uint64_t loaded_ns, load_took_ns;
    struct dmn_stamp stamp;
    /* areas of one frame: tensors back to back, each offset a multiple of 64 */
    size_t input_bytes, output_bytes;
    size_t in_offset[PL_FRAME_IO_MAX], out_offset[PL_FRAME_IO_MAX];
    uint32_t image_width, image_height; /* 0: input 0 is not an image */
    struct dmn_origin origin;           /* of the serving plan; written by plans/ */
    struct dmn_busy busy[2];            /* samples from one and two seconds ago */
    uint64_t period_ns;                 /* of a busy pipeline, for admission; 0: not known yet */
    size_t running;           /* clients' frames in the pipeline or elsewhere, counted by frames/ */
    bool leaving;             /* unloaded: no longer found by name */
    struct dmn_done unloaded; /* called when the model is gone */
    bool stalled;             /* has been logged as stalled */
    /* of dmn_memory_settle(): epoch of the last call, since when, and epoch of the last trim */
    uint32_t settling_epoch, settled_epoch;
    uint64_t settling_ns;
    struct dmn_model_stats stats;
    /* State of the rooms above; this room does not look into it. */
    struct dmn_clients *clients;     /* frames/ */
    struct dmn_planning *planning;   /* plans/; never NULL while the model serves */
    struct dmn_adapt_model *adapt;   /* adapt/; NULL: not watched */
    struct dmn_elsewhere *elsewhere; /* boards/; NULL: its pipeline computes every frame */
};
