/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/trace.h"

#include "pipeline/fence.h"
#include "pipeline/team.h"

int pl_trace_new(size_t ring_bytes, size_t limit_bytes, struct pl_trace **ret)
{
    struct pl_trace *t;

    if (ring_bytes < PL_TRACE_RING_BYTES_MIN || ring_bytes > PL_TRACE_RING_BYTES_MAX ||
        (ring_bytes & (ring_bytes - 1)) != 0) {
        return -EINVAL;
    }
    t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return -ENOMEM;
    }
    t->ring_bytes = ring_bytes;
    t->limit_bytes = limit_bytes;
    *ret = t;
    return 0;
}

static void free_entry(struct pl_trace *t, struct pl_trace_entry *e)
{
    t->lost += pl_trace_lost(&e->ring);
    t->bytes -= t->ring_bytes;
    pl_trace_ring_deinit(&e->ring);
    free(e);
}

struct pl_trace *pl_trace_free(struct pl_trace *t)
{
    while (t != NULL && t->entries != NULL) {
        struct pl_trace_entry *e = t->entries;

        t->entries = e->next;
        free_entry(t, e);
    }
    free(t);
    return NULL;
}

void pl_trace_trim(struct pl_trace *t)
{
    for (struct pl_trace_entry **at = &t->entries; *at != NULL;) {
        struct pl_trace_entry *e = *at;

        if (e->ended && e->announced && pl_trace_waiting(&e->ring) == 0) {
            *at = e->next;
            free_entry(t, e);
        } else {
            at = &e->next;
        }
    }
}

uint64_t pl_trace_lost_all(const struct pl_trace *t)
{
    uint64_t lost = t->lost;

    for (const struct pl_trace_entry *e = t->entries; e != NULL; e = e->next) {
        lost += pl_trace_lost(&e->ring);
    }
    return lost;
}

void pl_trace_add_team(struct pl_trace *t, struct pl_team *team, const char *ep, uint32_t epoch,
                       uint32_t pipeline)
{
    struct pl_trace_entry *e = NULL;

    if (t->bytes + t->ring_bytes <= t->limit_bytes) {
        size_t bytes = base_align_up(sizeof(*e), BASE_CACHE_LINE_BYTES);

        e = aligned_alloc(BASE_CACHE_LINE_BYTES, bytes);
    }
    if (e == NULL || pl_trace_ring_init(&e->ring, t->ring_bytes) != 0) {
        free(e);
        t->untraced++;
        return;
    }
    e->ended = e->announced = false;
    e->team = (struct pl_trace_team){.track = ++t->tracks,
                                     .pipeline = pipeline,
                                     .epoch = epoch,
                                     .stage = team->stage,
                                     .width = team->width,
                                     .replica = team->replica,
                                     .first_unit = team->first_unit,
                                     .last_unit = team->last_unit};
    memcpy(e->team.cpus, team->cpus, sizeof(e->team.cpus));
    snprintf(e->team.ep, sizeof(e->team.ep), "%.*s", (int)PL_EP_NAME_MAX, ep);
    e->next = t->entries;
    t->entries = e;
    t->bytes += t->ring_bytes;
    t->most_bytes = base_max(t->most_bytes, t->bytes);
    team->trace_entry = e;
    atomic_store_explicit(&team->trace, &e->ring, memory_order_release);
}

bool pl_trace_drop_team(struct pl_team *team, bool joined)
{
    if (team->trace_entry == NULL) {
        return true;
    }
    atomic_store_explicit(&team->trace, NULL, memory_order_relaxed);
    pl_fence();
    if (!joined && atomic_load_explicit(&team->tracing, memory_order_acquire)) {
        return false;
    }
    base_take(team->trace_entry)->ended = true;
    return true;
}
