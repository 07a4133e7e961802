/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/dispatch.h"
#include "base/base.h"

#define SHARE_MAX 16.0
#define PATIENCE_MAX 64u
#define PATIENCE_PARTS 16u

/* service * rate is the same for all teams of a stage if the priors are right. Return: 0: no team
 * was measured. */
static double work_of(const struct pl_dispatch_view *views, size_t count)
{
    double sum = 0;
    size_t measured = 0;

    for (size_t i = 0; i < count; i++) {
        if (views[i].service_ns > 0) {
            sum += views[i].service_ns * views[i].rate;
            measured++;
        }
    }
    return measured > 0 ? sum / (double)measured : 0;
}

static double service_of(const struct pl_dispatch_view *v, double work)
{
    return v->service_ns > 0 ? v->service_ns : (work > 0 ? work : 1) / v->rate;
}

/* Return: the team is to be probed. */
static bool due(const struct pl_dispatch_view *v, double work)
{
    return v->patience > 0 && work > 0 && v->idle_ns > v->patience * service_of(v, work);
}

uint32_t pl_dispatch_patience(uint32_t patience, bool probe)
{
    uint32_t more = patience > PL_PATIENCE ? patience - PL_PATIENCE : 0;

    return probe ? base_min(patience + patience / 2, PATIENCE_MAX)
                 : patience - (more + PATIENCE_PARTS - 1) / PATIENCE_PARTS;
}

size_t pl_dispatch_pick(const struct pl_dispatch_view *views, size_t count, bool *ret_probe)
{
    double work = work_of(views, count), best_finish = 0;
    size_t best = 0, old = count;

    for (size_t i = 0; i < count; i++) {
        const struct pl_dispatch_view *v = &views[i];
        double service = service_of(v, work), finish;

        if (v->service_ns > 0) {
            service = base_max(service, v->held_ns);
        }
        old = old == count && due(v, work) ? i : old;
        finish = (v->pending + v->beside + 1.0) * service;
        if (i == 0 || finish < best_finish ||
            (finish == best_finish && v->pending < views[best].pending)) {
            best = i;
            best_finish = finish;
        }
    }
    *ret_probe = old < count && views[best].pending > 0;
    return *ret_probe ? old : best;
}

double pl_dispatch_slowest_ns(const struct pl_dispatch_view *views, size_t count)
{
    double slowest = 0;

    for (size_t i = 0; i < count; i++) {
        slowest = base_max(slowest, views[i].service_ns);
    }
    return slowest;
}

double pl_dispatch_passed(const struct pl_dispatch_view *views, size_t count, double ns)
{
    double frames = 0;

    for (size_t i = 0; i < count; i++) {
        frames += views[i].service_ns > 0
                      ? base_max(1.0, base_min(ns / views[i].service_ns, SHARE_MAX))
                      : 1;
    }
    return frames;
}

size_t pl_dispatch_shares(const struct pl_dispatch_view *views, size_t count)
{
    double work = work_of(views, count), slowest = 0;
    size_t shares = 0;

    for (size_t i = 0; i < count; i++) {
        slowest = base_max(slowest, service_of(&views[i], work));
    }
    for (size_t i = 0; i < count; i++) {
        /* 0.3: measurements of equal teams differ by some percent */
        shares += (size_t)base_min(slowest / service_of(&views[i], work) + 0.3, SHARE_MAX) *
                  base_max(views[i].batch, (size_t)1);
    }
    return shares;
}
