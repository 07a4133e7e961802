/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/pipesim/network.h - the units of a network, and what a machine needs to know of them */
#pragma once

#include <stdbool.h>

#include "tuner/pipesim/data_files.h"

enum psim_layer { PSIM_CONV, PSIM_DEPTHWISE, PSIM_FC, PSIM_OTHER };

struct psim_unit { /* what a machine needs to say how long it takes */
    char name[64];
    enum psim_layer layer;
    double weight;      /* Pipe-search eq. 1, 2 */
    double macs, bytes; /* arithmetic; weights + activations read and written */
    double in_bytes;    /* crossing the border in front of it */
    double gemm_n, gemm_k, gemm_m;
    double weight_bytes, arena_bytes; /* as tun_unit's */
    bool light; /* a norm, an addition or an activation by itself (PSIM_NODES) */
};
struct psim_network {
    char name[64];
    size_t unit_count;
    struct psim_unit *units;          /* owned */
    double input_bytes, output_bytes; /* of a frame */
};

/* What counts as a unit: what piped serves; every convolution, pool and fully connected layer on
 * its own, as the papers count (VGG-16 has 21); every node of the network by itself: a
 * convolution, its batch norm, its addition and its activation are units of their own (ResNet-101
 * has 344). */
enum psim_counted { PSIM_UNITS, PSIM_LAYERS, PSIM_NODES };

/**
 * psim_network_load() - @name: of a network in model/networks (searched in $PIPESIM_NETWORKS, the
 * source tree the program was built from, the installed data) or a path to .json or .onnx
 * Return: 0 or -errno with @ret_error.
 */
int psim_network_load(const char *name, enum psim_counted counted, char ret_error[PSIM_ERROR_MAX],
                      struct psim_network *ret);
void psim_network_deinit(struct psim_network *n);
