/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/dispatch.h - which team of a stage gets the next frame
 *
 * The team that is expected to finish it first. What a team was measured to take grows old while it
 * gets no frames, as happens to one that was slow: so now and then it gets one as a probe, the more
 * seldom the more probes were in vain. Pure functions on plain data; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_dispatch_view {
    uint32_t pending;  /* frames dispatched to the team and not yet passed on: queued and held */
    double service_ns; /* measured; 0: not measured yet */
    double rate;       /* prior: speed of its EP x width; above 0 */
    double held_ns;    /* time since it took its present frames, for each; 0: holds none */
    size_t batch;      /* frames that it takes at once, at most; 0 counts as 1 */
    double idle_ns;    /* since it was last given a frame; 0: it has one */
    uint32_t patience; /* service times that it may be idle for; 0: for ever */
    uint32_t beside;   /* teams of others that want its cores, too */
};
#define PL_PATIENCE 4u /* of a new team */

/**
 * pl_dispatch_pick() - picks the team where one more frame would finish first
 * @views: @count of them, at least 1
 *
 * finish = (pending + beside + 1) * service. A frame held for longer than service counts with the
 * time it has taken so far, so that a stuck team gets no more frames. The service of an unmeasured
 * team is taken as work / rate, where work is the mean of service * rate over the measured teams (1
 * if there is none). Ties: fewer pending, then lower index. But where the frame would have to wait,
 * a team that has been idle for `patience` service times gets it as a probe. @ret_probe: whether it
 * is one. Return: the team's index.
 */
size_t pl_dispatch_pick(const struct pl_dispatch_view *views, size_t count, bool *ret_probe);

/**
 * pl_dispatch_patience() - Return: the patience of a team that has got a frame
 * Half as much again after a probe, at most 64, and nearer to PL_PATIENCE by a sixteenth after
 * another frame. So probes of a team that stays slow cost less than 1 / 64, and one that was slow
 * for a while has its share again after half as long, or sooner.
 */
uint32_t pl_dispatch_patience(uint32_t patience, bool probe);

/**
 * pl_dispatch_shares() - Return: the frames in flight that keep every team of a stage busy
 * sum over teams of slowest / service, each at least 1 and at most 16, times batch: while the
 * slowest team holds one frame, the others need that many, since their answers wait for its answer.
 * Equal teams: one each.
 */
size_t pl_dispatch_shares(const struct pl_dispatch_view *views, size_t count);
/** pl_dispatch_slowest_ns() - Return: the longest measured service; 0: none is measured. */
double pl_dispatch_slowest_ns(const struct pl_dispatch_view *views, size_t count);
/** pl_dispatch_passed() - Return: frames that the teams pass in this time, each 1 to 16. */
double pl_dispatch_passed(const struct pl_dispatch_view *views, size_t count, double ns);
