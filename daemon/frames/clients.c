/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/clients.h"

#include <assert.h>

struct dmn_clients *dmn_clients_new(struct dmn_model *m)
{
    struct dmn_clients *w = calloc(1, sizeof(*w));
    struct ipc_description *d = w ? ipc_description_new(m->model->output) : NULL;

    if (!d) {
        free(w);
        return NULL;
    }
    w->model = m;
    ipc_description_hold(&w->description, d);
    dmn_admission_init(&w->admission);
    return w;
}

struct dmn_clients *dmn_clients_free(struct dmn_clients *w)
{
    if (w) {
        assert(LIST_EMPTY(&w->streams));
        dmn_admission_deinit(&w->admission);
        ipc_description_hold(&w->description, NULL);
    }
    free(w);
    return NULL;
}

void dmn_clients_count(struct dmn_clients *w, const struct dmn_frame_end *e)
{
    struct dmn_model_stats *counts = &w->model->stats;

    switch (e->status) {
    case IPC_OK:
        counts->answered++;
        break;
    case IPC_DROPPED:
    case IPC_DEADLINE_EXCEEDED:
    case IPC_CANCELLED:
    case IPC_RESOURCE_EXHAUSTED:
        counts->dropped++;
        break;
    default:
        counts->failed++;
    }
    dmn_client_stats_answered(&w->stats, e);
}
