/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/handlers.h"

#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/frames/frame_ring.h"
#include "daemon/frames/opening.h"
#include "daemon/frames/preparing.h"

static void welcome(const struct ipc_conn *c, struct ipc_welcome *ret)
{
    const struct dmn_config *config = *dmn_peer_of(c)->frames->config;

    ret->features = IPC_FEATURE_F16 | IPC_FEATURE_DESCRIBED;
    ret->streams_max = (uint32_t)dmn_config_int(config, DMN_KEY_LIMIT_STREAMS);
    ret->pool_bytes_max = IPC_POOL_BYTES_MAX;
    snprintf(ret->server, sizeof(ret->server), "piped " PIPED_VERSION);
}

static void greeted(struct ipc_conn *c)
{
    if (dmn_peer_of(c)->frames->draining) { /* it greeted too late for dmn_frames_drain_begin() */
        ipc_conn_event(c, 0, IPC_EVENT_DRAINING, 0);
    }
}

static void frame(void *record)
{
    dmn_prepare_frame(record);
}

static void finished(struct ipc_stream *s)
{
    dmn_stream_free(dmn_stream_of(s));
}

static bool over(const struct ipc_conn *c)
{
    return dmn_loop_over(dmn_peer_of(c)->frames->turns);
}

const struct ipc_server_ops *dmn_handlers(void)
{
    static const struct ipc_server_ops ops = {.welcome = welcome,
                                              .greeted = greeted,
                                              .open = dmn_open_stream,
                                              .memory = dmn_open_memory,
                                              .room = dmn_stream_room,
                                              .take = dmn_stream_take,
                                              .frame = frame,
                                              .cancel = dmn_stream_cancel,
                                              .answer = dmn_stream_answer,
                                              .finished = finished,
                                              .orphaned = dmn_stream_orphan,
                                              .backlog_max = dmn_peer_backlog_max,
                                              .failed = dmn_peer_failed,
                                              .over = over};

    return &ops;
}
