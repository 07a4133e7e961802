/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/preparing.h - huge images become a model's input beside its pipeline
 *
 * An image of more than DMN_KEY_LIMIT_SLICE_MPIXELS, or of a third of it while another user has a
 * stream of the model, would keep a team busy for so long that every frame behind it is late. Such
 * a frame is PREPARING first: a thread of its own makes its input, slice by slice, into
 * the record's buffer. Then it goes to the pipeline as a tensor.
 * Users take turns between slices, as frames do (admission.h), and the time counts against the
 * user's share of the model.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/stream.h"

/** dmn_preparing_init() - nothing waits; starts no thread. */
void dmn_preparing_init(struct dmn_frames *f);
/** dmn_preparing_deinit() - call after dmn_preparing_stop() and the end of every stream. */
void dmn_preparing_deinit(struct dmn_frames *f);
/** dmn_preparing_start() - starts the thread. Without one, huge images are refused. */
void dmn_preparing_start(struct dmn_frames *f);
/** dmn_preparing_stop() - ends the thread; PREPARING frames are answered "unavailable". Call before
 * models are destroyed. Waits for one slice. A second call does nothing. */
void dmn_preparing_stop(struct dmn_frames *f);

/** dmn_prepare_frame() - all bytes of @r, READING, have arrived: prepares it if it needs that, else
 * does dmn_submit_frame(). */
void dmn_prepare_frame(struct dmn_record *r);
