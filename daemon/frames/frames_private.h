/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/frames_private.h - a frame's way from its message to the pipeline and back; only
 * for daemon/frames
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/stream.h"
#include "ipc/server/connection.h"

/* handlers.c: for the connections of struct dmn_peer */
extern const struct ipc_server_ops dmn_handlers;

/* preparing.c */
/** dmn_preparing_init() - nothing waits; starts no thread. */
void dmn_preparing_init(struct dmn_frames *f);
/** dmn_preparing_deinit() - call after dmn_preparing_stop() and the end of every stream. */
void dmn_preparing_deinit(struct dmn_frames *f);
/** dmn_preparing_start() - starts the thread. Without one, huge images are refused. */
void dmn_preparing_start(struct dmn_frames *f);
/** dmn_prepare_frame() - all bytes of @r, READING, have arrived: prepares it if it needs that, else
 * does dmn_submit_frame(). */
void dmn_prepare_frame(struct dmn_record *r);

/* submit.c */
/** dmn_submit_frame() - all bytes of @r, READING, have arrived: deadline and policy decide whether
 * it waits; then the pipeline is filled. */
void dmn_submit_frame(struct dmn_record *r);
/** dmn_submit_waiting() - puts waiting frames into the pipeline while it has room. */
void dmn_submit_waiting(struct dmn_clients *w);
