/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/serving.h - where a plan is from, and why it changed
 *
 * The names appear in the history, in status and in the state files. Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>

#include "tuner/adapt/decide.h"
#include "tuner/search/search.h"

enum dmn_from {
    DMN_FROM_NOBODY, /* "none": there is no plan */
    DMN_FROM_SEARCH, /* named after its algorithm */
    DMN_FROM_USER,   /* "manual" */
    DMN_FROM_CONFIG, /* "config" */
    DMN_FROM_SAVED,  /* "saved": from an earlier run, or from an earlier state of the machine */
    DMN_FROM_MIX,    /* "mix": one plan for all models (daemon/plans/mix.h) */
};

/* The origin of a plan. */
struct dmn_origin {
    enum dmn_from from;
    const struct tun_algorithm *algorithm; /* for DMN_FROM_SEARCH, else NULL; static */
};
#define DMN_ORIGIN_EXACT ((struct dmn_origin){.from = DMN_FROM_SEARCH, .algorithm = &tun_exact})

/** dmn_origin_name() - Return: static. */
const char *dmn_origin_name(struct dmn_origin o);
/** dmn_origin_find() - finds an origin by name. Return: DMN_FROM_NOBODY for an unknown name. */
struct dmn_origin dmn_origin_find(const char *name);
/** dmn_origin_pinned() - Return: a user set the plan, by hand or in the configuration. */
bool dmn_origin_pinned(struct dmn_origin o);

/* Why a plan changed or was reviewed: the causes of decisions, with the values of enum tun_cause,
 * and the requests of users. */
enum dmn_cause {
    DMN_CAUSE_NONE = TUN_CAUSE_NONE,
    DMN_CAUSE_GPIO = TUN_CAUSE_GPIO,
    DMN_CAUSE_MEASURED = TUN_CAUSE_MEASURED, /* or primitives, since their choice was not sure */
    DMN_CAUSE_START = TUN_CAUSE_COUNT,
    DMN_CAUSE_REQUEST,
    DMN_CAUSE_CONFIG,
    DMN_CAUSE_OPTIMISE,
    DMN_CAUSE_QUANTISE,
    DMN_CAUSE_UPGRADE, /* of piped, its libraries, or what else its primitives were measured for */
    DMN_CAUSE_LINK,    /* between boards */
    DMN_CAUSE_BOARD,   /* came or went */
    DMN_CAUSE_MODELS,  /* came, went, or wish something else */
    DMN_CAUSE_COUNT
};
/** dmn_cause_of() - the cause of a decision as enum dmn_cause. */
static inline enum dmn_cause dmn_cause_of(enum tun_cause cause)
{
    return (enum dmn_cause)cause;
}
/** dmn_cause_name() - Return: static. */
const char *dmn_cause_name(enum dmn_cause cause);
