/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/json/devices_json.h - which device computes which layer, as AutoDiCE's mapping.json
 *
 * The format of tuner/json/mapping_json.h, but only devices count: which of its cores compute a
 * layer is decided by the device. Written, a device has one key with all its cores, at most ten.
 * Read, it may have several keys, and a device that was left may be come back to. Any thread.
 */
#pragma once

#include "tuner/json/mapping_json.h"

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
