/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/clients.h - what this room keeps for one model: its clients' streams, the waiting
 * frames, and the counts of answers
 *
 * Owned by the model as dmn_model.clients, from its start until its pipeline is gone.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/frames/admission.h"
#include "daemon/frames/frame_stats.h"
#include "daemon/models/models.h"
#include "ipc/description.h"

struct dmn_stream;

struct dmn_clients {
    struct dmn_model *model; /* its owner */
    struct dmn_admission admission;
    LIST_HEAD(, dmn_stream) streams; /* all, even without a connection; written by stream.c */
    struct dmn_client_stats stats;
    struct ipc_description *description; /* a reference */
};

/** dmn_clients_new() - for @m, whose m->model is set. Return: owned by the caller; NULL when out of
 * memory. */
struct dmn_clients *dmn_clients_new(struct dmn_model *m);
/** dmn_clients_free() - call when its streams are gone or detached. Takes NULL. Return: NULL. */
struct dmn_clients *dmn_clients_free(struct dmn_clients *w);
/** dmn_clients_count() - counts an answered frame, see dmn_client_stats_answered(). */
void dmn_clients_count(struct dmn_clients *w, const struct dmn_frame_end *e);
