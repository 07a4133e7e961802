/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/frames.h - clients' frames: the frames socket, its connections, and the frames that
 * wait for each model
 *
 * Owns connections, streams, client memory and the record of each frame, and for each model its
 * waiting frames and the counts of answers (dmn_model.clients). Uses models/: it listens for models
 * that come, go or have room, and puts frames into their pipelines. It reports no events; others
 * read it.
 *
 * The way of a frame: peer.c says when to read, ipc/server/connection.c cuts out its message and
 * finds the stream, handlers.c puts a record into its ring, preparing.c shrinks a huge image,
 * submit.c decides whether it waits, puts it into the pipeline and gets it back when it was
 * collected. handlers.c answers, ipc/server/connection.c writes.
 *
 * Each file uses only files later in this list: frames; handlers; preparing; submit;
 * stream; record, clients; peer; admission, travel, no_result. room.h holds what they
 * share.
 *
 * A record is answered only at its ring's head, so answers are in frame order whatever happened to
 * each frame (computed, late, dropped, refused). Every FRAME and INLINE gets a record or, if its
 * stream does not exist, an answer at once. Records come from the stream's free list: the frame
 * path allocates nothing.
 *
 * Everything that a client can grow is capped: streams and credits (records), client memory, inline
 * buffers, unread answers. While a ring is full or too many answers are unread, nothing is read
 * from that connection.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/frames/clients.h"
#include "daemon/frames/room.h"
#include "daemon/frames/stream.h"
#include "ipc/wire.h"

/** dmn_frames_init() - starts to listen to @models; opens no socket yet. All pointers are
 * borrowed. */
void dmn_frames_init(struct dmn_frames *f, uv_loop_t *loop, struct dmn_config *const *config,
                     struct dmn_models *models);
/** dmn_frames_deinit() - call after dmn_frames_close_all() and the loop's last turn. */
void dmn_frames_deinit(struct dmn_frames *f);
/** dmn_frames_start() - serves on listening socket @fd, which it owns from now on, until
 * dmn_acceptor_stop(). @file: of the socket, taken; removed at the end. Return: 0 or -errno. */
int dmn_frames_start(struct dmn_frames *f, int fd, struct ipc_socket_file *file);
/** dmn_frames_settle() - does what has become possible: answers, reads, writes. Called before the
 * loop waits. */
void dmn_frames_settle(struct dmn_frames *f);
/** dmn_frames_take_in() - reads what clients have sent so far, and settles. */
void dmn_frames_take_in(struct dmn_frames *f);
/** dmn_frames_drain_begin() - reads what was already sent, then refuses frames and tells every
 * client. */
void dmn_frames_drain_begin(struct dmn_frames *f);
/** dmn_frames_drained() - Return: every frame is answered and every answer written. */
bool dmn_frames_drained(const struct dmn_frames *f);
/** dmn_preparing_stop() - ends the thread that prepares images; the frames that it has are answered
 * "unavailable". Call before models are destroyed. Waits for one slice. A second call does
 * nothing. */
void dmn_preparing_stop(struct dmn_frames *f);
/** dmn_frames_close_all() - closes every connection, even with unwritten answers; the memory is
 * freed in the loop's next turn. */
void dmn_frames_close_all(struct dmn_frames *f);
/** dmn_frames_tick() - once a second: closes clients that do not read, by DMN_KEY_LIMIT_SLOW_S, and
 * those that do not greet, by DMN_KEY_LIMIT_HANDSHAKE_S. @held_ns: for how long the process did not
 * run since the last call, which does not count. */
void dmn_frames_tick(struct dmn_frames *f, uint64_t now_ns, uint64_t held_ns);

/** dmn_frames_trace() - records every answer to @ring from now on; NULL: no more. @ring: borrowed
 * until then; the loop thread reads it. */
void dmn_frames_trace(struct dmn_frames *f, struct pl_trace_ring *ring);

/** dmn_frames_plan_changed() - tells @m's clients of the new plan, and grants more credits if it is
 * deeper. */
void dmn_frames_plan_changed(struct dmn_model *m);
/** dmn_frames_in_flight() - Return: frames of @m's clients in a pipeline, elsewhere or being
 * prepared, also those that a model has whose place @m took. */
size_t dmn_frames_in_flight(const struct dmn_model *m);
