/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the cores stream memory: measured, and entered into the models' problems. */
#include "daemon/machine/machine.h"
#include "daemon/models/process_memory.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/profile.h"
#include "daemon/service/log.h"
#include "governor/bandwidth.h"
#include "pipeline/plan_move.h"

#define MS 24u           /* of one measurement */
#define CACHES 4         /* arrays hold so many times the last-level cache, as STREAM asks */
#define CACHE (8u << 20) /* if the system does not say how large it is */
#define MOST (64u << 20) /* a first start waits for it; of a server's cache cores have a part */
#define FREE_SHARE 8u    /* and at most this part of the free memory */
#define EQUAL 0.9        /* EPs whose bandwidths differ by less have equal ones */

static double measure(const uint16_t *cpus, size_t count)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    uint64_t bytes = CACHES * (uint64_t)(cache > 0 ? cache : CACHE);
    double ret = 0;

    bytes = base_min(base_min(bytes, (uint64_t)MOST), dmn_memory_free() / FREE_SHARE) / count;
    return gov_bandwidth_measure(cpus, count, (size_t)bytes, MS, &ret) == 0 ? ret : 0;
}

void dmn_streams_measure(struct dmn_streams *s)
{
    uint16_t all[PL_CPU_MAX];
    size_t count = 0;

    for (size_t e = 0; e < s->on.count; e++) {
        const struct pl_ep *ep = &s->on.eps[e];

        for (size_t i = 0; i < ep->cpu_count && count < PL_CPU_MAX; i++) {
            all[count++] = ep->cpus[i];
        }
        s->one[e] = measure(ep->cpus, 1);
        s->all[e] =
            ep->cpu_count > 1 ? base_max(s->one[e], measure(ep->cpus, ep->cpu_count)) : s->one[e];
        s->machine = base_max(s->machine, s->all[e]);
    }
    if (s->on.count > 1) { /* one EP is the machine; more EPs stream no less than one of them */
        s->machine = base_max(s->machine, measure(all, count));
    }
}

/* Return: the index of the EP that is called @name, or of which that is a part; else how many. */
static size_t find(const struct dmn_streams *s, const char *name)
{
    size_t e = 0, length = pl_ep_base(name);

    while (e < s->on.count &&
           (strlen(s->on.eps[e].name) != length || strncmp(s->on.eps[e].name, name, length) != 0)) {
        e++;
    }
    return e;
}

void dmn_streams_enter(const struct dmn_streams *s, struct tun_problem *p)
{
    double most = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        size_t e = find(s, p->eps[k].name);

        p->eps[k].gbytes = e < s->on.count ? s->one[e] : 0;
        p->eps[k].gbytes_max = e < s->on.count ? s->all[e] : 0;
        most = base_max(most, p->eps[k].gbytes);
    }
    p->gbytes_max = s->machine;
    for (size_t k = 0; k < p->ep_count; k++) {
        double part = most > 0 && p->eps[k].gbytes > 0 ? p->eps[k].gbytes / most : 1;

        p->eps[k].bandwidth = part > EQUAL ? 1 : part;
    }
}

void dmn_streams_take(struct dmn_plans *plans, const struct dmn_streams *s)
{
    if (!(s->machine > 0)) {
        return;
    }
    plans->profile->streams = *s;
    for (struct dmn_model *m = plans->models->models; m; m = m->next) {
        dmn_streams_enter(s, &m->planning->problem);
    }
    for (size_t e = 0; e < s->on.count; e++) {
        dmn_log(LOG_INFO,
                "memory: a core of %s streams %.1f GB/s, all of them %.1f, all cores %.1f",
                s->on.eps[e].name, s->one[e], s->all[e], s->machine);
    }
}
