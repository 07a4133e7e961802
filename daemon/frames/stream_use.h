/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/stream_use.h - for how long a stream had how many unanswered frames
 *
 * It tells a client that waits for its answers from one that has nothing to send, and from one that
 * keeps its slots: which sends three quarters of the frames that its credits allow, or more,
 * without ever having read all answers meanwhile. (Not all of them: the Python client keeps two
 * slots back, for the answer at hand and the frame that is filled.)
 *
 * Threads: the loop thread.
 */
#pragma once

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "ipc/server/frame_rules.h"

struct dmn_stream_use {
    uint64_t at_ns;      /* of the last change of the number of unanswered frames; 0: none yet */
    uint64_t some_ns;    /* time with an unanswered frame */
    uint64_t more_ns;    /* with at least two */
    uint64_t full_ns;    /* with as many as the credits allow */
    uint64_t fills;      /* how often it sent ipc_flow_burst() without having read all answers */
    uint32_t unfinished; /* frames since the last of these, or since it had read all answers */
};

/** dmn_stream_use_until() - counts the time up to @now_ns. Call before @flow changes. */
static inline void dmn_stream_use_until(struct dmn_stream_use *u, const struct ipc_flow *flow,
                                        uint64_t now_ns)
{
    uint64_t passed = u->at_ns ? now_ns - base_min(u->at_ns, now_ns) : 0;

    u->at_ns = now_ns;
    u->some_ns += flow->unanswered > 0 ? passed : 0;
    u->more_ns += flow->unanswered > 1 ? passed : 0;
    u->full_ns += flow->unanswered >= flow->credits ? passed : 0;
}

/** dmn_stream_use_frame() - counts a frame that @flow has just taken. @fd: the client's socket; it
 * is asked only where all earlier frames are answered. */
static inline void dmn_stream_use_frame(struct dmn_stream_use *u, const struct ipc_flow *flow,
                                        int fd)
{
    int bytes = 0;
    bool finished = flow->unanswered == 1 && ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes == 0;

    u->unfinished = finished ? 1 : u->unfinished + 1;
    if (u->unfinished >= ipc_flow_burst(flow->credits)) {
        u->fills++;
        u->unfinished = 0;
    }
}
