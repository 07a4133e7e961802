/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/choosing.h - which primitive runs each operator of a model on each kind of core
 *
 * A choice is read from its file or measured when the model is loaded. It is part of a load (struct
 * dmn_load): the loop fills in the inputs, the load's thread runs it, and the loop passes the
 * measured times to the tuner. There is one file per model. It was measured for one machine: its
 * CPU, its set of libraries and its table of primitives. If these have changed, as after an
 * upgrade, the model serves at once by what still fits, and measures again once it serves
 * (choosing_again.c). So it does if the times leave doubt about which primitives are best, as where
 * others took the cores while it measured.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/int8cal/examples.h"
#include "kernels/kernels.h"
#include "kernels/select/choose.h"
#include "kernels/select/measure_at_once.h"
#include "pipeline/plan.h"
#include "tuner/problem.h"

struct dmn_machine;
struct dmn_models;

#define DMN_CHOOSE_FRONT_MAX 16u

struct dmn_choose_kind {
    char name[KRN_KIND_NAME_MAX];
    int cpu;     /* the core that is measured */
    size_t same; /* index of the first kind with the same cores; its own index if it is the first */
    uint64_t class; /* dmn_choose_classes(); set by the load */
};

/* A choice may lose this share of its time before it counts as unsure. */
#define DMN_CHOOSE_DOUBT 0.01

/* Measurements to remove doubt. */
struct dmn_choose_tries {
    unsigned all, calm; /* calm: little disturbed them */
};

/* What a model that serves keeps of its choice, for segments of it. Beside it, the net says which
 * primitives were chosen. */
struct dmn_kept_choice {
    bool special;         /* measured, or named by a user: other loads may choose otherwise */
    const char *outdated; /* static; as in struct dmn_choose */
    double doubt;         /* as in struct dmn_choose */
    struct krn_choose_options wanted;
    struct dmn_choose_tries tries;
    uint64_t tried_ns; /* when the last one ended */
    size_t count;
    struct {
        char name[PL_EP_NAME_MAX];
        uint64_t class;
        double *op_ns;          /* [op_count], owned; NULL: not known */
        double *op_sigma_ns;    /* [op_count], owned: its uncertainty; NULL: not known */
        bool *op_unsure;        /* [op_count], owned; NULL: not known */
        struct krn_times times; /* owned; empty unless there is doubt */
    } kind[PL_EP_MAX];          /* only kinds that are the first with their cores */
};

struct dmn_choose {
    enum krn_pack pack; /* of the net */
    /* inputs */
    size_t kind_count;
    struct dmn_choose_kind kinds[PL_EP_MAX];
    unsigned ms; /* longest time for measuring a kind; 0: use the static order */
    char *given; /* owned; dmn_choice_text() of the whole model, for a segment of it; NULL: none */
    bool anew;   /* measure even if there is a saved choice */
    bool again;  /* measure what is unsure of known[]; needs anew */
    /* owned; what a choice that is measured again has to beat; empty: nothing */
    struct krn_choice now[PL_EP_MAX];
    struct dmn_choose_tries tries; /* measuring adds this one */
    /* owned; times from before, and after measuring all times */
    struct krn_times known[PL_EP_MAX];
    bool wants_front;
    struct krn_examples *examples; /* borrowed; inexact primitives are judged by them; NULL: none */
    double agreement_min;          /* share of examples, 0..1, classed as by exact primitives */
    struct krn_choose_options options;
    /* Writer: loop. Calls off the load: measuring and all else. Relaxed: orders nothing else */
    _Atomic bool stop;
    char *folder; /* owned; holds the file; NULL: choices are not saved */
    /* results; only for kinds that are the first with their cores */
    bool chosen;   /* false: static order */
    bool measured; /* false: read from the file */
    /* Static: what has changed since the choice in the file was made, and so it is to be measured
     * again; NULL: nothing. */
    const char *outdated;
    /* What the choice may lose, as a share of its time, since its times are uncertain; 0: less than
     * DMN_CHOOSE_DOUBT. */
    double doubt;
    struct krn_chosen of[PL_EP_MAX];
    /* What several frames at once gain, by op: krn_measure_at_once(); owned; NULL: not known. */
    double (*at_once[PL_EP_MAX])[KRN_AT_ONCE];
    struct krn_chosen front[DMN_CHOOSE_FRONT_MAX]; /* of the first kind, fastest first */
    size_t front_count;
    double agreement; /* measured on the examples; 0: there were none */
    uint64_t took_ns;
    char note[MDL_ERROR_MAX]; /* a warning about the choice, or "" */
};

/** dmn_choose_init() - sets the inputs from the cores and the configuration. @folder: where choices
 * are saved; NULL: nowhere. Return: 0 or -ENOMEM. */
int dmn_choose_init(struct dmn_choose *c, const struct dmn_machine *machine, const char *folder);
void dmn_choose_deinit(struct dmn_choose *c);

/**
 * dmn_choose_net() - reads or measures the choice of each kind, then builds the network with it
 *
 * With c->wants_front it measures the front and builds no network. If measuring fails it uses the
 * static order and says so in c->note. Threads: the load's. Blocks for about c->ms per kind at
 * most. Return and @ret_error: as krn_net_new().
 */
int dmn_choose_net(struct dmn_choose *c, const struct mdl_model *m, const char *name,
                   char ret_error[MDL_ERROR_MAX], struct krn_net **ret);

#define DMN_CHOOSE_SIGMA 0.1 /* of the next one's predictions */
/** dmn_choose_costs() - enters the times of the chosen primitives into @p as predictions for one
 * core, and what several frames at once gain. A measured choice drops saved costs, which may be of
 * other primitives; a choice from the file keeps them. */
void dmn_choose_costs(const struct dmn_choose *c, const struct mdl_model *m, struct tun_problem *p);

/** dmn_choose_classes() - sets each kind's class, before dmn_choose_net(). Threads: the load's.
 */
void dmn_choose_classes(struct dmn_choose *c);

/** dmn_choose_keep() - copies what a served model keeps. @special: as in the struct. Times that no
 * memory is left for are missing. @ret: the caller's, dmn_kept_choice_deinit(). */
void dmn_choose_keep(const struct dmn_choose *c, bool special, struct dmn_kept_choice *ret);
void dmn_kept_choice_deinit(struct dmn_kept_choice *k);

/**
 * dmn_choice_text() - the primitives that run ops @first_op..@end_op - 1, as text for other boards
 * @net: of the model that keeps @k. @ret: printable ASCII
 *
 * For each kind of cores, separated by ";": its class, the names of its primitives, and for each op
 * their numbers in that list, "OWN+FUSED:NANOSECONDS", such as
 * "00c0ffee00c0ffee conv_f32__a,copy_f32__b 0:51200 1". A kind for which there is no room is left
 * out; @ret may be "". Threads: the loop thread.
 */
void dmn_choice_text(const struct dmn_kept_choice *k, const struct krn_net *net, size_t first_op,
                     size_t end_op, char *ret, size_t bytes);
/** dmn_choice_digest() - Return: a number for the names of all chosen primitives. */
uint32_t dmn_choice_digest(const struct dmn_kept_choice *k, const struct krn_net *net);

/* choosing_again.c */
/** dmn_choose_again_tick() - once a second while the daemon serves: begins if it is time. Threads:
 * the loop thread. */
void dmn_choose_again_tick(struct dmn_models *models, uint64_t now_ns);
/** dmn_choose_patience_ns() - Return: for how long an unsure choice that was measured again @tries
 * times waits for a quiet machine before it is measured on a busy one: twice as long each time, and
 * twice within the first minute. Pure. */
uint64_t dmn_choose_patience_ns(unsigned tries);
