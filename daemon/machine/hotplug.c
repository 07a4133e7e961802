/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores this process may use, and when that changes.
 *
 * Two things are watched: the online cores, and the daemon's affinity, which a cpuset
 * (AllowedCPUs=, a container's limit) shrinks and widens. Both are polled in every adaptation
 * window (100 ms), else once a second by the daemon's tick. The kernel's uevents would report the
 * first at once, but they need netlink sockets, which the service's sandbox forbids.
 *
 * A change of both is hotplug; a change of the affinity alone is the cpuset's. */
#include "daemon/machine/machine.h"

#include "base/base.h"
#include "daemon/service/log.h"
#include "governor/kernel_file.h"

/* A core that goes leaves the affinity some time before it leaves the list of online cores; a core
 * that comes joins that list first. So a change of the affinity alone counts as the cpuset's only
 * if it lasts this long, and if the same cores did not just change in the list. */
#define UNCERTAIN_NS (250 * BASE_NS_PER_MS)
#define RECENT_NS (2 * BASE_NS_PER_S)

struct dmn_hotplug {
    struct gov_cpuset online, allowed; /* empty: unknown */
    bool online_known, allowed_known;
    uint64_t online_ns;       /* last change of the list; 0: none yet */
    struct gov_cpuset moved;  /* cores that changed in it recently */
    uint64_t uncertain_ns;    /* since when only the affinity differs; 0: it does not */
    bool begun;               /* the first look is done */
    dmn_hotplug_fn on_change; /* NULL: no listener */
    void *ctx;
};

/* @ret: @a without @b. Return: its size. */
static size_t difference(const struct gov_cpuset *a, const struct gov_cpuset *b,
                         struct gov_cpuset *ret)
{
    size_t count = 0;

    for (size_t i = 0; i < base_array_count(a->bits); i++) {
        ret->bits[i] = a->bits[i] & ~b->bits[i];
        count += (size_t)__builtin_popcountll(ret->bits[i]);
    }
    return count;
}

static struct gov_cpuset usable(const struct dmn_hotplug *h)
{
    struct gov_cpuset set = h->online;

    for (size_t i = 0; i < base_array_count(set.bits); i++) {
        if (!h->online_known) {
            set.bits[i] = h->allowed.bits[i];
        } else if (h->allowed_known) {
            set.bits[i] &= h->allowed.bits[i];
        }
    }
    return set;
}

static void describe(struct dmn_hotplug_change *c, size_t gone, size_t back)
{
    char went[72] = "", came[72] = "";

    dmn_cpuset_text(&c->gone, went, sizeof(went));
    dmn_cpuset_text(&c->back, came, sizeof(came));
    snprintf(c->text, sizeof(c->text), "%s%s%s%s%s%s%s", gone ? gone > 1 ? "cores " : "core " : "",
             went, gone ? " went" : "", gone && back ? ", " : "",
             back ? back > 1 ? "cores " : "core " : "", came, back ? " came back" : "");
}

/* The list of online cores changed: remembers the changed cores for a while. */
static void note_online(struct dmn_hotplug *h, const struct gov_cpuset *online, uint64_t now_ns)
{
    struct gov_cpuset gone, back;

    if (h->online_known &&
        difference(&h->online, online, &gone) + difference(online, &h->online, &back) > 0) {
        bool recent = h->online_ns && now_ns < h->online_ns + RECENT_NS;

        for (size_t i = 0; i < base_array_count(gone.bits); i++) {
            h->moved.bits[i] = (recent ? h->moved.bits[i] : 0) | gone.bits[i] | back.bits[i];
        }
        h->online_ns = now_ns;
    }
    h->online = *online;
    h->online_known = true;
}

/* Return: all these cores changed recently in the list of online cores. */
static bool by_list(const struct dmn_hotplug *h, const struct dmn_hotplug_change *c,
                    uint64_t now_ns)
{
    struct gov_cpuset others;

    return h->online_ns && now_ns < h->online_ns + RECENT_NS &&
           difference(&c->gone, &h->moved, &others) + difference(&c->back, &h->moved, &others) == 0;
}

/* Return: it is too early to say what changed the affinity. Needs no timer: the sampler asks
 * again. */
static bool uncertain(struct dmn_hotplug *h, uint64_t now_ns)
{
    h->uncertain_ns = h->uncertain_ns ? h->uncertain_ns : now_ns;
    return now_ns < h->uncertain_ns + UNCERTAIN_NS;
}

bool dmn_hotplug_check(struct dmn_machine *m, uint64_t now_ns)
{
    struct dmn_hotplug *h = m->hotplug;
    struct dmn_hotplug_change change = {.cause = "cpuset"};
    struct gov_cpuset online, before, allowed;
    size_t gone, back;

    if (!h) {
        return false;
    }
    before = usable(h);
    /* what cannot be read counts as unchanged */
    if (gov_sysfs_cpulist(m->sysfs_root, &online, "sys/devices/system/cpu/online") == 0 &&
        gov_cpuset_next(&online, 0) >= 0) {
        note_online(h, &online, now_ns);
    }
    allowed = h->allowed;
    h->allowed_known |= gov_allowed_cpus(m->sysfs_root, &h->allowed) == 0;
    change.usable = usable(h);
    gone = difference(&before, &change.usable, &change.gone);
    back = difference(&change.usable, &before, &change.back);
    if (!h->begun || gone + back == 0 || gov_cpuset_next(&change.usable, 0) < 0) {
        h->begun = true;
        h->uncertain_ns = 0;
        return false;
    }
    if (by_list(h, &change, now_ns)) {
        change.cause = "hotplug";
    } else if (uncertain(h, now_ns)) {
        h->allowed = allowed; /* read again */
        return false;
    }
    h->uncertain_ns = 0;
    describe(&change, gone, back);
    dmn_log_limited(LOG_NOTICE, (struct dmn_log_fields){0}, "%s: %s", change.cause, change.text);
    if (h->on_change) {
        h->on_change(h->ctx, &change);
    }
    return true;
}

int dmn_hotplug_start(struct dmn_machine *m)
{
    m->hotplug = calloc(1, sizeof(*m->hotplug));
    if (!m->hotplug) {
        return -ENOMEM;
    }
    dmn_hotplug_check(m, base_now_ns()); /* what is there now is not a change */
    return 0;
}

void dmn_hotplug_stop(struct dmn_machine *m)
{
    free(base_take(m->hotplug));
}

void dmn_hotplug_listen(struct dmn_machine *m, dmn_hotplug_fn fn, void *ctx)
{
    if (m->hotplug) {
        m->hotplug->on_change = fn;
        m->hotplug->ctx = ctx;
    }
}
