/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the cause of a change, in the order of tuner/adapt/decide.h. */

#include "base/base.h"
#include "tuner/adapt/correct.h"
#include "tuner/adapt/decide.h"
#include "tuner/adapt/levels.h"

#define THROTTLED 0.1 /* share of the cgroup's periods that says that its quota is felt */
#define PRESSED 0.25  /* share of the time in which tasks waited; above it, others are in the way */
#define WAITED 0.25   /* share of a change that has to be waiting to be called contention */

static const struct {
    const char *name;
    bool felt;
} causes[TUN_CAUSE_COUNT] = {
    [TUN_CAUSE_NONE] = {"none", false},
    [TUN_CAUSE_GOVERNOR] = {"governor", false},
    [TUN_CAUSE_FREQUENCY] = {"frequency", false},
    [TUN_CAUSE_THERMAL] = {"thermal", false},
    [TUN_CAUSE_CONTENTION] = {"contention", true},
    [TUN_CAUSE_HOTPLUG] = {"hotplug", false},
    [TUN_CAUSE_CPUSET] = {"cpuset", false},
    [TUN_CAUSE_THROUGHPUT] = {"throughput", true},
    [TUN_CAUSE_GPIO] = {"gpio", false},
    [TUN_CAUSE_MEASURED] = {"measured", false},
};

const char *tun_cause_name(enum tun_cause cause)
{
    return causes[(unsigned)cause < TUN_CAUSE_COUNT ? cause : TUN_CAUSE_NONE].name;
}

bool tun_cause_felt(enum tun_cause cause)
{
    return (unsigned)cause < TUN_CAUSE_COUNT && causes[cause].felt;
}

static bool cores_moved(const struct tun_record *r, size_t *ret_ep)
{
    for (size_t k = 0; k < r->problem.ep_count; k++) {
        if (r->eps[k].cores != r->problem.eps[k].cores) {
            *ret_ep = k;
            return true;
        }
    }
    return false;
}

static enum tun_cause clock_cause(const struct tun_record *r, size_t *ret_ep)
{
    double most = 0;

    for (size_t k = 0; k < r->problem.ep_count; k++) {
        const struct tun_ep_now *n = &r->eps[k];

        if (tun_clock_moved(n->khz, n->khz_before) && fabs(log(n->khz / n->khz_before)) > most) {
            most = fabs(log(n->khz / n->khz_before));
            *ret_ep = k;
        }
    }
    if (most == 0) {
        return TUN_CAUSE_NONE;
    }
    if (r->eps[*ret_ep].thermal) {
        return TUN_CAUSE_THERMAL;
    }
    return r->eps[*ret_ep].governor_changed ? TUN_CAUSE_GOVERNOR : TUN_CAUSE_FREQUENCY;
}

/* Was a team kept from its cores. Service s, CPU share c: the share of a change by exp(level) that
 * is waiting is (rise of 1 - c) / (1 - exp(-level)) at first order. */
static bool contended(const struct tun_record *r, const struct tun_team_now *t, bool *ret_quota)
{
    *ret_quota = r->felt.throttled > THROTTLED;
    return *ret_quota || (isfinite(t->waiting) ? t->waiting > WAITED * (1 - exp(-t->level))
                                               : r->felt.pressure > PRESSED);
}

/* The team that moved most says what it was. */
static enum tun_cause level_cause(const struct tun_record *r, size_t *ret_ep, bool *ret_quota)
{
    const struct tun_team_now *most = NULL;
    const struct tun_ep_now *k;

    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        if (tun_team_moved(t) && (!most || t->firm > most->firm ||
                                  (t->firm == most->firm && fabs(t->level) > fabs(most->level)))) {
            most = t;
        }
    }
    if (!most) {
        return TUN_CAUSE_NONE;
    }
    *ret_ep = tun_group_of(r, most)->ep;
    k = &r->eps[*ret_ep];
    if (most->level > 0 && contended(r, most, ret_quota)) {
        return TUN_CAUSE_CONTENTION;
    }
    if (k->thermal) {
        return TUN_CAUSE_THERMAL;
    }
    if (k->contended && most->level < 0) {
        return TUN_CAUSE_CONTENTION;
    }
    if (k->governor_changed) {
        return TUN_CAUSE_GOVERNOR;
    }
    return k->limit_changed ? TUN_CAUSE_FREQUENCY : TUN_CAUSE_THROUGHPUT;
}

/* The cause of a change of the machine that was not watched. */
static enum tun_cause unwatched_cause(const struct tun_record *r)
{
    return r->events & TUN_EVENT_THERMAL     ? TUN_CAUSE_THERMAL
           : r->events & TUN_EVENT_GOVERNOR  ? TUN_CAUSE_GOVERNOR
           : r->events & TUN_EVENT_FREQUENCY ? TUN_CAUSE_FREQUENCY
                                             : TUN_CAUSE_NONE;
}

enum tun_cause tun_attribute(const struct tun_record *r, size_t *ret_ep, bool *ret_quota)
{
    enum tun_cause cause;

    *ret_ep = SIZE_MAX;
    if ((r->events & TUN_EVENT_CPUSET) != 0) {
        cores_moved(r, ret_ep);
        return TUN_CAUSE_CPUSET;
    }
    if ((r->events & TUN_EVENT_HOTPLUG) != 0) {
        cores_moved(r, ret_ep);
        return TUN_CAUSE_HOTPLUG;
    }
    if ((r->events & TUN_EVENT_PARTS) != 0) {
        return TUN_CAUSE_CONTENTION;
    }
    if ((r->events & (TUN_EVENT_BUTTON | TUN_EVENT_POWER)) != 0) {
        return TUN_CAUSE_GPIO;
    }
    cause = clock_cause(r, ret_ep);
    cause = cause == TUN_CAUSE_NONE ? unwatched_cause(r) : cause;
    cause = cause == TUN_CAUSE_NONE ? level_cause(r, ret_ep, ret_quota) : cause;
    if (cause != TUN_CAUSE_NONE) {
        return cause;
    }
    return r->events & TUN_EVENT_PROBE   ? TUN_CAUSE_CONTENTION
           : r->events & TUN_EVENT_COSTS ? TUN_CAUSE_MEASURED
                                         : TUN_CAUSE_THROUGHPUT;
}
