/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/hop/hop.h - this board's places in routes, of any head
 *
 * A PLAN gives it a place: a segment to compute, and where its answers go: to a board of the next
 * hop, dealt by their shares, or from the last hop to the head. Errors go to the head. A board of
 * the next hop that cannot be reached ends the place; the head is told its fingerprint.
 *
 * Threads: the loop.
 */
#pragma once

#include "apps/link/common/link.h"

struct segment;

int hops_new(struct hops **ret);
struct hops *hops_free(struct hops *h);
/** hop_plan() - a PLAN of a head. */
link_take hop_plan;
/** hop_frame() - a FRAME; its bytes are copied. */
link_take hop_frame;
/** hop_cancel() - a CANCEL of the head: the frame is not computed, if that has not begun. */
link_take hop_cancel;
/** hop_error() - an ERROR of a board that was sent a frame and is not our route's. */
void hop_error(struct link *l, size_t from, const struct lnk_error *e);
/** hop_segment_changed() - it is READY or FAILED. */
void hop_segment_changed(struct link *l, struct segment *s);
void hop_peer_gone(struct link *l, size_t peer);
/** hop_go() - sends on what segments have computed. */
void hop_go(struct link *l);
