/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/search/seen.h"

#include "base/base.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 29);
}

static uint64_t hash_plan(const struct pl_plan *p)
{
    uint64_t hash = p->stage_count;

    for (size_t s = 0; s < p->stage_count; s++) {
        const struct pl_stage_plan *stage = &p->stages[s];

        hash = mix(hash, stage->last_unit);
        for (size_t g = 0; g < stage->group_count; g++) {
            const struct pl_group *group = &stage->groups[g];

            hash =
                mix(hash,
                    ((uint64_t)group->ep << 32 | (uint64_t)group->width << 16 | group->count) + 1);
        }
    }
    return hash;
}

/* The slot of a plan, or the free one where it belongs; room is a power of two, never full. */
static size_t slot_of(const struct tun_seen *s, const struct tun_trial *log,
                      const struct pl_plan *plan)
{
    size_t at = hash_plan(plan) & (s->room - 1);

    while (s->slots[at] && !pl_plan_equal(&log[s->slots[at] - 1].plan, plan)) {
        at = (at + 1) & (s->room - 1);
    }
    return at;
}

int tun_seen_reserve(struct tun_seen *s, const struct tun_trial *log)
{
    struct tun_seen grown = {.room = s->room ? 2 * s->room : 64};

    if (2 * (s->count + 1) <= s->room) {
        return 0;
    }
    grown.slots = calloc(grown.room, sizeof(*grown.slots));
    if (!grown.slots) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->room; i++) {
        if (s->slots[i]) {
            tun_seen_add(&grown, log, s->slots[i] - 1);
        }
    }
    free(s->slots);
    *s = grown;
    return 0;
}

void tun_seen_add(struct tun_seen *s, const struct tun_trial *log, size_t index)
{
    size_t at = slot_of(s, log, &log[index].plan);

    if (!s->slots[at]) {
        s->slots[at] = index + 1;
        s->count++;
    }
}

size_t tun_seen_find(const struct tun_seen *s, const struct tun_trial *log,
                     const struct pl_plan *plan)
{
    return s->room == 0 ? SIZE_MAX : s->slots[slot_of(s, log, plan)] - 1;
}

void tun_seen_deinit(struct tun_seen *s)
{
    free(s->slots);
    *s = (struct tun_seen){0};
}
