/* SPDX-License-Identifier: Apache-2.0 */
/* Which plans a search has measured: a hash of indices of its log. */

#include "tuner/search/search_private.h"

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

            hash = mix(hash,
                       ((uint64_t)group->ep << 32 | (uint64_t)group->width << 16 | group->count) +
                           1 + group->also[0].width);
        }
    }
    return hash;
}

/* The slot of a plan, or the free one where it belongs; slot_room is a power of two, never full. */
static size_t slot_of(const struct tun_search *s, const struct pl_plan *plan)
{
    size_t at = hash_plan(plan) & (s->slot_room - 1);

    while (s->slots[at] && !pl_plan_equal(&s->log[s->slots[at] - 1].plan, plan)) {
        at = (at + 1) & (s->slot_room - 1);
    }
    return at;
}

void tun_seen_add(struct tun_search *s, size_t index)
{
    size_t at = slot_of(s, &s->log[index].plan);

    s->slots[at] = s->slots[at] ? s->slots[at] : index + 1;
}

int tun_seen_reserve(struct tun_search *s)
{
    size_t room = s->slot_room ? 2 * s->slot_room : 64;

    if (2 * (s->count + 1) <= s->slot_room) {
        return 0;
    }
    free(s->slots);
    s->slots = calloc(room, sizeof(*s->slots));
    s->slot_room = s->slots ? room : 0;
    for (size_t i = 0; s->slots && i < s->count; i++) {
        tun_seen_add(s, i);
    }
    return s->slots ? 0 : -ENOMEM;
}

size_t tun_search_seen(const struct tun_search *s, const struct pl_plan *plan)
{
    return s->slot_room == 0 ? SIZE_MAX : s->slots[slot_of(s, plan)] - 1;
}
