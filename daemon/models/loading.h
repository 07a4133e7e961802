/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/loading.h - one load of a model: file, compilation, choice of primitives, packing
 *
 * The loop thread makes a load and turns it into a model (dmn_model_start()). In between, any one
 * thread may call dmn_load_run(), which uses nothing but the load.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/leaves/load_work.h"
#include "daemon/config/state_file.h"
#include "daemon/config/wishes.h"
#include "daemon/models/choosing.h"
#include "daemon/models/serving.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "model/quant/calibration.h"
#include "pipeline/plan.h"
#include "tuner/problem.h"

struct dmn_config;
struct dmn_models;
struct dmn_planner_ops;
struct dmn_planning;

/* Shows whether a model's files have changed since they were loaded. */
struct dmn_file_stamp {
    uint64_t device, inode, bytes, mtime_ns; /* all 0: the file does not exist */
};
struct dmn_stamp {
    struct dmn_file_stamp model, sidecar, calibration;
    uint64_t data; /* dmn_stamp_data(); 0 until the model is loaded */
};
/** dmn_stamp_read() - @path: the model's file; @calibration: its calibration file, or "". Return:
 * the stamps of these files and of the model's sidecar. */
struct dmn_stamp dmn_stamp_read(const char *path, const char *calibration);
/** dmn_stamp_data() - Return: a digest of the stamps of a model's data files, and of those that its
 * sidecar names; 0: it has none. @now: as they are now, else as they were when they were loaded. */
uint64_t dmn_stamp_data(const struct mdl_model *m, bool now);

#define DMN_BOARD_NAME_BYTES 32u /* with NUL */

/* What to load, borrowed during the call. name and path are set; the others may be NULL. */
struct dmn_load_source {
    const char *name, *path, *plan, *kernels, *calibration;
    const char *shapes;     /* of open dimensions, as text (model/open_shapes.h) */
    const char *preprocess; /* instead of the sidecar's, as JSON (mdl_sidecar.preprocess) */
    const char *primitives; /* dmn_choice_text() of the whole model, for a segment of it */
    const char *board;      /* of a segment: the board that it is computed for */
    const struct dmn_wishes *wishes; /* of the cores; NULL: none */
    bool latest;
    const struct dmn_config *config; /* whose limits hold; NULL: those of the one in force */
};

/* One load: inputs, then results. Plain data for one thread at a time. */
struct dmn_load {
    char name[64], board[DMN_BOARD_NAME_BYTES];
    char *path, *plan, *kernels, *calibration, *shapes; /* owned; calibration: a file, or "" */
    char *preprocess; /* owned; given; result: the sidecar's; NULL: it has none */
    struct dmn_wishes wishes;
    bool latest, from_config;
    bool may_fail;                  /* then the others of its arrival go on, without it */
    bool failed;                    /* result: it may, and did, with `error` */
    bool as_is;                     /* ignore earlier quantisation */
    struct mdl_calibration *ranges; /* owned; given, or read by the load: quantise with them */
    bool bad_calibration;           /* the load failed because of the calibration file */
    size_t weight_bytes_max, arena_bytes_max;
    size_t memory_max;       /* with more, the model is loaded asleep; 0: no bound */
    bool asleep;             /* result: its pipeline begins asleep */
    size_t threads;          /* that may share the work; 0: only the loading thread */
    struct mdl_model *model; /* results, owned until the model starts */
    struct krn_net *net;
    struct dmn_choose choose;
    struct pl_plan *first;         /* its first plan */
    struct dmn_origin origin;      /* of the first plan */
    struct dmn_planning *planning; /* owned: what plans/ keeps for the model; NULL: not prepared */
    struct json_t *kept;           /* owned: what the planner kept in earlier runs; NULL: nothing */
    const struct dmn_planner_ops *planner; /* who owns `planning`; NULL: no planner */
    char error[MDL_ERROR_MAX];             /* why the load failed */
    struct dmn_stamp stamp;
    uint64_t took_ns;
    struct mdl_progress progress; /* of the thread that works on it */
};

struct dmn_model;
/* Callbacks of the planner (plans/), which sets models->planner. */
struct dmn_planner_ops {
    /* Reads what was kept of a loaded model into l->kept. Any thread that owns the load; blocks.
     * @ctx: models->planner_ctx. */
    void (*read)(void *ctx, struct dmn_load *l);
    /* Prepares l->planning of a loaded model. Loop thread. @ctx: models->planner_ctx. @config: the
     * configuration to serve under. Return: 0, or -errno with l->error. */
    int (*prepare)(void *ctx, const struct dmn_config *config, struct dmn_load *l);
    /* Then finds its first plan. Any thread that owns the load. Return: 0, or -errno with
     * l->error. */
    int (*first)(struct dmn_load *l);
    /* Frees the planning of a load that did not become a model. Takes NULL. Return: NULL. */
    struct dmn_planning *(*forget)(struct dmn_planning *p);
    /* Return: a search or change of the plan of @m is in progress, so @m must not be replaced. */
    bool (*changing)(const struct dmn_model *m);
};

/** dmn_load_check() - Return: 0 if frames of @m can be carried and planned; -EBADMSG or -E2BIG,
 * with @ret_error. Pure. */
int dmn_load_check(const struct mdl_model *m, char ret_error[MDL_ERROR_MAX]);
/** dmn_piped_dtype() - Return: the type as clients know it: PIPED_F32 and others, which have the
 * numbers of the protocol. */
uint32_t dmn_piped_dtype(enum mdl_dtype of);
/** dmn_output_fits() - does the sidecar's key `output` fit the model? Clients decode, not the
 * daemon; but what no client can decode by is refused, by the same code. Return: 0: m->output fits,
 * or is NULL; else as piped_decoder_new(), with piped_last_error(). */
int dmn_output_fits(const struct mdl_model *m);
/** dmn_output_check() - @path: of the model's file, for the message. Threads: any; allocates.
 * Return: 0: it fits, or the sidecar has no such key; -EINVAL or -ENOMEM, with @ret_error. */
int dmn_output_check(const struct mdl_model *m, const char *path, char ret_error[MDL_ERROR_MAX]);
/**
 * dmn_load_file() - calls mdl_load() for @l->path with the right calibration
 *
 * It uses the first of these: @l->ranges, if given; none, with @l->as_is; the file @l->calibration,
 * whose errors fail the load (@l->bad_calibration); the saved calibration, whose errors only go to
 * l->choose.note, and then the model is not quantised. Sets @l->ranges to what was used.
 * Threads: the load's; blocks. Return: as mdl_load() and mdl_segment(), with l->error.
 */
int dmn_load_file(struct dmn_load *l, struct mdl_load_options *options);
/** dmn_quantised_keep() - saves @c as the calibration of model @name; NULL: removes the saved one.
 * @kept: must be given; its error is -ENOENT without a state folder. Threads: the loop thread; does
 * not block. */
void dmn_quantised_keep(const struct dmn_models *models, const char *name,
                        const struct mdl_calibration *c, struct dmn_state_kept kept);
/** dmn_load_run() - loads the model; blocks. l->choose.stop calls it off. Return: 0, or -errno with
 * l->error set. */
int dmn_load_run(struct dmn_load *l);
struct dmn_load *dmn_load_free(struct dmn_load *l);
