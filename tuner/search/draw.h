/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/draw.h - plans drawn at random from a space of tuner/search/plan_space.h
 *
 * Every plan of the space has the same probability, up to the rounding of doubles. Only files of
 * tuner/ include it.
 */
#pragma once

#include "tuner/search/places.h"
#include "tuner/search/random.h"
#include "tuner/search/search.h"

struct tun_draw;
/** tun_draw_new() - @space: not DEFAULT. @p: borrowed until free. Return: 0 or -ENOMEM. */
int tun_draw_new(const struct tun_problem *p, enum tun_space space, struct tun_draw **ret);
/** tun_draw_next() - a plan; where nearly all of ALL pass what a plan can hold
 * (tuner/search/plan_space.h), the cores are shared by stage count as tun_slots() does. */
void tun_draw_next(const struct tun_draw *d, struct tun_random *r, struct pl_plan *ret);
struct tun_draw *tun_draw_free(struct tun_draw *d);
