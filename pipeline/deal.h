/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/deal.h - which team of a stage gets the next frame
 *
 * The one where it is expected to finish first. Pure functions on plain data; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_deal_view {
    uint32_t pending;  /* frames dealt to the team and not yet passed on: queued and held */
    double service_ns; /* measured, 0: not yet */
    double rate;       /* prior: speed of its EP x width; above 0 */
    double held_ns;    /* how long it has held its present frame; 0: holds none */
};

/**
 * pl_deal_pick() - the team where one more frame would finish first
 * @views: @count of them, at least 1
 *
 * finish = (pending + 1) * service. A frame held for longer than service counts as much as it has
 * taken so far, so that a team that got stuck is left alone before it finishes. A team without a
 * measure gets work / rate, work being the mean of service * rate over the measured teams (1 if
 * there is none). Ties: fewer pending, then lower index. Return: its index.
 */
size_t pl_deal_pick(const struct pl_deal_view *views, size_t count);

/**
 * pl_deal_shares() - frames in flight that keep every team of a stage busy
 * sum over teams of slowest / service, each at least 1 and at most 16: while the slowest team holds
 * one frame the others must have that many, for all of them are answered after it. Equal teams: one
 * each.
 */
size_t pl_deal_shares(const struct pl_deal_view *views, size_t count);
