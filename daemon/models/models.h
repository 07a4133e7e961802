/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/models.h - the loaded models, each with its own pipeline
 *
 * Owns the lists of models, and for each its sources, network, pipeline and measurements. A
 * finished load becomes a model (daemon/models/loading.h). An unloaded model can no longer be found
 * by name; it answers the frames it has admitted, drains, and is freed.
 *
 * This room knows no clients, no reasons for plans and no protocols. It returns frames through
 * struct dmn_frame_owner and reports events to listeners. Threads: the loop thread.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/models/done.h"
#include "daemon/models/loading.h"
#include "daemon/models/serving.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "pipeline/pipeline.h"
#include "pipeline/seats.h"

struct dmn_adapt_model;
struct dmn_arrival;
struct dmn_clients;
struct dmn_config_model;
struct dmn_elsewhere;
struct dmn_hot_swap;
struct dmn_machine;
struct dmn_models;
struct dmn_planning;
struct dmn_work;

/* ---- a model that serves: its sources, network, pipeline and measurements ---- */

#define DMN_RATE_SAMPLES 6u /* seconds over which fps is measured */

struct dmn_model_stats {
    /* clients' frames, counted by daemon/frames/ */
    uint64_t admitted, answered, dropped, failed;
    uint64_t due, late; /* that had a deadline by the model's wishes; of these, answered later */
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
    struct dmn_wishes wishes; /* dmn_model_wish() sets them */
    bool latest, from_config;
    struct dmn_kept_choice choice;
    bool quantised;           /* by examples, which its segments on other boards would not be */
    struct mdl_model *model;  /* owned */
    struct krn_net *net;      /* owned */
    struct pl_client client;  /* of the seats, by which its teams take turns with others' */
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
    /* of memory, rates.c: epoch of the last call, since when, and epoch of the last trim */
    uint32_t settling_epoch, settled_epoch;
    uint64_t settling_ns;
    struct dmn_model_stats stats;
    /* State of the rooms above; this room does not look into it. */
    struct dmn_clients *clients;     /* frames/ */
    struct dmn_planning *planning;   /* plans/; never NULL while the model serves */
    struct dmn_adapt_model *adapt;   /* adapt/; NULL: not watched */
    struct dmn_elsewhere *elsewhere; /* boards/; NULL: its pipeline computes every frame */
};

/* ---- the models ---- */

/* The owner of a frame: pl_frame.owner of every frame in a model's pipeline. Embedded in the
 * submitter's struct for the frame. */
struct dmn_frame_owner {
    /* The frame came out of @m's pipeline, which takes it back after this call. */
    void (*collected)(struct dmn_frame_owner *owner, struct dmn_model *m, struct pl_frame *f);
};

/* Events of this room, on the loop thread, in this order for each model. Each function may be NULL.
 * No function may start or free a model. */
struct dmn_models_listener {
    void *ctx;
    /* The model is being made, and m->model is set: allocate what the listener keeps for it.
     * Return: 0; -errno: the model is not started. */
    int (*starting)(void *ctx, struct dmn_model *m);
    /* It serves. @cause, @detail: for people. */
    void (*started)(void *ctx, struct dmn_model *m, enum dmn_cause cause, const char *detail);
    /* A frame came out of its pipeline; its owner has already been called. */
    void (*collected)(void *ctx, struct dmn_model *m, const struct pl_frame *f);
    /* Its pipeline may have room for frames. */
    void (*room)(void *ctx, struct dmn_model *m);
    /* Return: how many frames the listener holds for it until there is room. */
    size_t (*waiting)(void *ctx, const struct dmn_model *m);
    /* It is unloaded and empty. Return: true to delay its end. */
    bool (*busy)(void *ctx, const struct dmn_model *m);
    /* Once a second while it serves. */
    void (*second)(void *ctx, struct dmn_model *m, uint64_t now_ns);
    /* @by, whose frames look the same, replaces it: move to @by what is kept for @m. */
    void (*replaced)(void *ctx, struct dmn_model *m, struct dmn_model *by);
    /* Its unloading began; it can no longer be found by name. */
    void (*unloading)(void *ctx, struct dmn_model *m);
    /* It ends now; the pipeline can still be read. */
    void (*ending)(void *ctx, struct dmn_model *m);
    /* Its pipeline is gone or was never made: free what starting() allocated, if anything. */
    void (*gone)(void *ctx, struct dmn_model *m);
    struct dmn_models_listener *next; /* in the list */
};

/* A configured model that does not serve, and why. */
struct dmn_failed_model {
    STAILQ_ENTRY(dmn_failed_model) linked;
    const char *name, *path, *error; /* in texts */
    char texts[];
};
STAILQ_HEAD(dmn_failed_models, dmn_failed_model);

/* The room's state. */
struct dmn_models {
    struct dmn_model *models;  /* serving, in order of loading */
    struct dmn_model *leaving; /* unloaded, still draining */
    struct dmn_models_listener *listeners;
    LIST_HEAD(, dmn_arrival) arrivals;       /* loads in progress */
    struct dmn_failed_models failed;         /* configured, but not serving */
    struct dmn_hot_swap *hot_swap;           /* in progress, or NULL */
    uint64_t choose_again_ns;                /* choosing_again.c: not before */
    uint64_t choose_seen_ns, choose_busy_ns; /* choosing_again.c: of all cores, when it looked */
    bool stopping;                           /* start nothing new */
    /* set before the first load; all borrowed */
    const struct dmn_planner_ops *planner;
    void *planner_ctx;
    struct dmn_machine *machine;
    struct pl_seats *seats;  /* of its cores; NULL: teams share them as the kernel likes */
    const char *state_dir;   /* NULL: nothing is saved */
    struct dmn_work *disk;   /* one thread, writes there; NULL: nothing may wait, as in tests */
    void (*wake)(void *arg); /* becomes pl_options.notify */
    void *wake_arg;
    size_t frame_bytes_max; /* limit for a frame's inputs, and for its outputs */
};

/* Every model, with those that leave, which come last; a step looks only at the model that it is
 * given. */
static inline struct dmn_model *dmn_model_first(const struct dmn_models *models)
{
    return models->models ? models->models : models->leaving;
}
static inline struct dmn_model *dmn_model_next(const struct dmn_model *m)
{
    return m->next || m->leaving ? m->next : m->of->leaving;
}

/** dmn_models_listen() - adds @l, which must live as long as @models, behind earlier listeners. */
void dmn_models_listen(struct dmn_models *models, struct dmn_models_listener *l);
struct dmn_model *dmn_model_find(const struct dmn_models *models, const char *name);
/** dmn_model_loaded() - Return: the model of this name that was loaded then; NULL: it is gone, and
 * another one may have its name. */
struct dmn_model *dmn_model_loaded(const struct dmn_models *models, const char *name,
                                   uint64_t loaded_ns);
#define DMN_MODEL_MISSING_BYTES (MDL_ERROR_MAX + 128u)
/** dmn_model_missing() - writes why there is no model @name: it could not be loaded, or the name is
 * misspelt. "": no model is loaded. Return: @ret. */
const char *dmn_model_missing(const struct dmn_models *models, const char *name, char *ret,
                              size_t bytes);
/** dmn_failed_add() - adds a model, behind the others. Texts are copied. Return: 0, -ENOMEM. */
int dmn_failed_add(struct dmn_failed_models *f, const char *name, const char *path,
                   const char *error);
/** dmn_failed_find() - Return: the model of this name; NULL: none. */
struct dmn_failed_model *dmn_failed_find(const struct dmn_failed_models *f, const char *name);
/** dmn_failed_remove() - forgets the model of this name, if there is one. */
void dmn_failed_remove(struct dmn_failed_models *f, const char *name);
/** dmn_failed_clear() - forgets all. */
void dmn_failed_clear(struct dmn_failed_models *f);
/** dmn_model_default() - Return: the model that requests without a name mean, or NULL. */
struct dmn_model *dmn_model_default(const struct dmn_models *models);
size_t dmn_model_count(const struct dmn_models *models);
/** dmn_model_unchanged() - Return: the files that @m was loaded from are those that are there now.
 * Blocks on the files. */
bool dmn_model_unchanged(const struct dmn_model *m);
/** dmn_config_source() - Return: the sources of a configured model, borrowed from @c. */
struct dmn_load_source dmn_config_source(const struct dmn_config_model *c);

/** dmn_load_from() - makes a load with the limits, cores and state folder of @models. Return:
 * owned; NULL: out of memory. */
struct dmn_load *dmn_load_from(const struct dmn_load_source *s, const struct dmn_models *models);
/** dmn_model_source() - Return: what @m was loaded from, borrowed from it. */
struct dmn_load_source dmn_model_source(const struct dmn_model *m);
/** dmn_model_plan_text() - writes the present plan. @ret: PL_PLAN_TEXT_MAX bytes. */
void dmn_model_plan_text(const struct dmn_model *m, char *ret);
/** dmn_model_depth() - Return: the frames in flight that keep its pipeline busy, or the place
 * elsewhere. */
size_t dmn_model_depth(const struct dmn_model *m);

/**
 * dmn_model_start() - turns a finished load into a serving model, the last in the list
 *
 * Takes what the load owns, on success. @cause: for the history. Return: 0; -EINVAL or -errno, with
 * @ret_error (MDL_ERROR_MAX bytes) set.
 */
int dmn_model_start(struct dmn_models *models, struct dmn_load *l, enum dmn_cause cause,
                    char *ret_error, struct dmn_model **ret);
/** dmn_model_wish() - what @m is to have of the cores from now on. */
void dmn_model_wish(struct dmn_model *m, const struct dmn_wishes *wishes);
/** dmn_model_unload() - admits no more frames. @done: called when the model is gone. */
void dmn_model_unload(struct dmn_model *m, struct dmn_done done);
/** dmn_model_replace() - moves the waiting frames and the clients of @m to @by, if the frames of
 * both look the same. Return: they were moved. */
bool dmn_model_replace(struct dmn_model *m, struct dmn_model *by);
/** dmn_model_destroy() - frees the model now; cancels frames in flight. */
void dmn_model_destroy(struct dmn_model *m);

/** dmn_model_collect() - takes every finished frame, then reports the room in the pipeline. */
void dmn_model_collect(struct dmn_model *m);
/** dmn_model_waiting() - Return: how many frames wait for room in its pipeline. */
size_t dmn_model_waiting(const struct dmn_model *m);
/** dmn_model_after() - goes on after a finished switch or an emptied pipeline; may free @m. */
void dmn_model_after(struct dmn_model *m);

/* rates.c */
double dmn_model_fps(const struct dmn_model *m, uint64_t now_ns);
/** dmn_model_team() - a consistent sample of team @i of the serving plan. Return: there is one. */
bool dmn_model_team(const struct dmn_model *m, size_t i, struct pl_team_stats *ret);
/* Memory of the process and of all its models. */
struct dmn_memory {
    uint64_t resident_bytes, peak_bytes; /* of the process; 0: unknown */
    uint64_t weight_bytes, packed_bytes, arena_bytes;
    uint64_t for_models_bytes; /* what models may take here: boards.memory_mib, or what they have
                                * and what is free; 0: unknown */
};
struct dmn_memory dmn_memory_now(const struct dmn_models *models);
/** dmn_model_tick() - once a second: rates, memory, listeners. */
void dmn_model_tick(struct dmn_model *m, uint64_t now_ns);
