/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/json/mapping_json.h - plans, or which device computes what, as AutoDiCE's mapping.json
 *
 *     {"nx1_cpu012345": ["conv1", "conv2"], "nx1_gpu": ["conv3"], "nx2_gpu": ["fc"]}
 *
 * A key is DEVICE_RESOURCE, a value the layers that run there. AutoDiCE documents the format by its
 * programs (tools/distributed/vertical/interface.py) and examples, so this is assumed:
 *
 *  - The device ends at the first underscore and is the board's name; with one board it is any one
 *    name. Exported, that is "host".
 *  - The resource is "gpu", or "cpu" or "arm" and one digit a core. Cores are numbered from 0 over
 *    the board's EPs in their order, without those whose name contains "gpu"; such an EP is "gpu".
 *    So AutoDiCE can name ten cores of a board.
 *  - A key is one team; a layer has one key. A plan in which teams share a stage cannot be said.
 *  - "/4" behind a key says how many frames its team takes at once. AutoDiCE does not know that; a
 *    key without it is as AutoDiCE writes it.
 *  - Layers may come in any order and may be split finer than units: a name that is no unit's is
 *    passed over, but every unit must be named. A key may be empty.
 *
 * A mapping may leave a place and come back to it: the plan has a stage for each visit, and their
 * teams share the cores. Any thread.
 */
#pragma once

#include "tuner/json/json_reader.h"

/* Names of the units: [unit_count], distinct, borrowed. */
typedef const char *const *tun_unit_names;

/** tun_mapping_json() - Return: 0 with a new reference; -EINVAL with @ret_error, a sentence that
 * says what a mapping cannot; -ENOMEM. @plan: valid for @p. */
int tun_mapping_json(const struct tun_problem *p, const struct pl_plan *plan, tun_unit_names names,
                     char ret_error[TUN_ERROR_MAX], json_t **ret);

/* Who runs what, as a mapping says it, also where it has more stages than a plan may. */
struct tun_mapping_place { /* a key */
    struct pl_group team;
    uint32_t cores; /* which of the board's, one bit each; 0: not by number */
};
struct tun_mapping {
    size_t place_count;
    struct tun_mapping_place places[PL_EP_MAX * 10u]; /* in the order of the keys */
    uint16_t *place_of; /* [unit_count], index; the caller's, set before the call */
};
/** tun_mapping_places() - @ret: of use only without an error. */
void tun_mapping_places(struct tun_reader *r, const json_t *root, const struct tun_problem *p,
                        tun_unit_names names, struct tun_mapping *ret);

/** tun_mapping_plan() - the plan of a mapping of all units; written only without an error: it has
 * not more stages than a plan may. */
void tun_mapping_plan(struct tun_reader *r, const struct tun_mapping *m, size_t unit_count,
                      struct pl_plan *ret);
/** tun_mapping_read() - both: the plan of a mapping in JSON. */
void tun_mapping_read(struct tun_reader *r, const json_t *root, const struct tun_problem *p,
                      tun_unit_names names, struct pl_plan *ret);

/* ---- which device computes which layer ----
 *
 * The same format, but only devices count: which of its cores compute a layer is decided by the
 * device. Written, a device has one key with all its cores, at most ten. Read, it may have several
 * keys, and a device that was left may be come back to. */

struct tun_device {
    const char *name; /* borrowed */
    size_t cores;     /* 0: unknown */
};

/** tun_devices_json() - @of: [unit_count], index of the unit's device. Return: 0 with a new
 * reference; -EINVAL with @ret_error, a sentence; -ENOMEM. */
int tun_devices_json(const struct tun_device *devices, size_t count, const uint16_t *of,
                     tun_unit_names names, size_t unit_count, char ret_error[TUN_ERROR_MAX],
                     json_t **ret);

/** tun_devices_read() - @ret: [unit_count]; of use only without an error. */
void tun_devices_read(struct tun_reader *r, const json_t *root, const struct tun_device *devices,
                      size_t count, tun_unit_names names, size_t unit_count, uint16_t *ret);
