/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/submit.h - which frame goes into a model's pipeline, and when
 *
 * A complete frame waits in its stream's ring. When the pipeline may have room, waiting frames go
 * in, in the order of admission.h. A frame that comes back is DONE, and its connection is marked;
 * the last one of a stream without a connection frees the stream.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/stream.h"

/** dmn_submit_frame() - all bytes of @r, READING, have arrived: deadline and policy decide whether
 * it waits; then the pipeline is filled. */
void dmn_submit_frame(struct dmn_record *r);
/** dmn_submit_waiting() - puts waiting frames into the pipeline while it has room. */
void dmn_submit_waiting(struct dmn_clients *w);
