/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/answer_trace.h - a trace's records of clients' frames (trace_record.h)
 *
 * Threads: the loop thread, which also reads the ring.
 */
#pragma once

#include "daemon/frames/stream.h"

/** dmn_trace_answered() - records the answer of @r, if a trace is on; describes its stream first if
 * this trace does not know it. */
void dmn_trace_answered(struct dmn_stream *s, const struct dmn_record *r);
