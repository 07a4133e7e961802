/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/hotplug.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "governor/allowed.h"
#include "governor/uevent.h"

/* A flood of other devices' events must not keep the loop; the rest waits for its next round. */
#define EVENTS_AT_ONCE 64u
/* A core that goes leaves the affinity some time before the list of those online, and one that
 * comes is in that list before. So what only the affinity shows is believed to be the cpuset's when
 * it still holds after this time, and not that soon after these very cores changed in the list. */
#define DOUBT_NS (250 * BASE_NS_PER_MS)
#define RECENT_NS (2 * BASE_NS_PER_S)

struct dmn_hotplug {
    struct dmn_daemon *daemon; /* borrowed */
    uv_poll_t poll;
    bool polling;
    int fd;                            /* owned; -1: no uevents */
    struct gov_cpuset online, allowed; /* empty: unknown */
    bool online_known, allowed_known;
    uint64_t online_ns;      /* last change of the list; 0: none yet */
    struct gov_cpuset moved; /* that changed in it of late */
    uint64_t doubt_ns;       /* since when only the affinity differs; 0: it does not */
    bool begun;              /* what there is was looked at once */
    uint64_t changes;
    dmn_hotplug_fn on_change;
};

static void list(const struct gov_cpuset *set, char *ret, size_t bytes)
{
    uint16_t cpus[PL_CPU_MAX];
    size_t count = 0;

    for (int32_t cpu = gov_cpuset_next(set, 0); cpu >= 0 && count < PL_CPU_MAX;
         cpu = gov_cpuset_next(set, (size_t)cpu + 1)) {
        cpus[count++] = (uint16_t)cpu;
    }
    dmn_cpu_list_format(cpus, count, ret, bytes);
}

/* @a without @b. Return: how many. */
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

    list(&c->gone, went, sizeof(went));
    list(&c->back, came, sizeof(came));
    snprintf(c->text, sizeof(c->text), "%s%s%s%s%s%s%s", gone ? gone > 1 ? "cores " : "core " : "",
             went, gone ? " went" : "", gone && back ? ", " : "",
             back ? back > 1 ? "cores " : "core " : "", came, back ? " came back" : "");
}

/* The list of cores online is another one: which of them changed is remembered for a while. */
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

/* Are all of these cores ones that the list of those online showed to change of late. */
static bool by_list(const struct dmn_hotplug *h, const struct dmn_hotplug_change *c,
                    uint64_t now_ns)
{
    struct gov_cpuset others;

    return h->online_ns && now_ns < h->online_ns + RECENT_NS &&
           difference(&c->gone, &h->moved, &others) + difference(&c->back, &h->moved, &others) == 0;
}

/* Is it too early to say what changed the affinity? Without a timer: the sampler asks again. */
static bool in_doubt(struct dmn_hotplug *h, uint64_t now_ns)
{
    h->doubt_ns = h->doubt_ns ? h->doubt_ns : now_ns;
    return now_ns < h->doubt_ns + DOUBT_NS;
}

bool dmn_hotplug_check(struct dmn_daemon *d)
{
    return dmn_hotplug_check_at(d, base_now_ns());
}

bool dmn_hotplug_check_at(struct dmn_daemon *d, uint64_t now_ns)
{
    struct dmn_hotplug *h = d->hotplug;
    struct dmn_hotplug_change change = {.cause = "cpuset"};
    struct gov_cpuset online, before, allowed;
    size_t gone, back;

    if (!h) {
        return false;
    }
    before = usable(h);
    /* What cannot be read now stays as it was: no news is no change. */
    if (gov_sysfs_cpulist(d->sysfs_root, &online, "sys/devices/system/cpu/online") == 0 &&
        gov_cpuset_next(&online, 0) >= 0) {
        note_online(h, &online, now_ns);
    }
    allowed = h->allowed;
    h->allowed_known |= gov_allowed_cpus(d->sysfs_root, &h->allowed) == 0;
    change.usable = usable(h);
    gone = difference(&before, &change.usable, &change.gone);
    back = difference(&change.usable, &before, &change.back);
    if (!h->begun || gone + back == 0 || gov_cpuset_next(&change.usable, 0) < 0) {
        h->begun = true;
        h->doubt_ns = 0;
        return false;
    }
    if (by_list(h, &change, now_ns)) {
        change.cause = "hotplug";
    } else if (in_doubt(h, now_ns)) {
        h->allowed = allowed; /* looked at again */
        return false;
    }
    h->doubt_ns = 0;
    h->changes++;
    describe(&change, gone, back);
    dmn_log_limited(LOG_NOTICE, (struct dmn_log_fields){0}, "%s: %s", change.cause, change.text);
    if (h->on_change) {
        h->on_change(d, &change);
    }
    return true;
}

static void stop_poll(struct dmn_hotplug *h)
{
    if (h->polling) {
        uv_poll_stop(&h->poll);
    }
    base_close_fd(&h->fd);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct dmn_hotplug *h = poll->data;
    bool look = false;
    int outcome = status < 0 ? status : 0;

    (void)events;
    for (size_t i = 0; i < EVENTS_AT_ONCE && outcome >= 0; i++) {
        struct gov_uevent e;

        outcome = gov_uevent_read(h->fd, &e);
        if (outcome == GOV_UEVENT_E_NONE) {
            break;
        }
        look |=
            outcome == GOV_UEVENT_E_LOST ||
            (outcome == 0 && (e.kind == GOV_UEVENT_CPU_ONLINE || e.kind == GOV_UEVENT_CPU_OFFLINE));
    }
    if (outcome < 0) {
        dmn_log(LOG_WARNING, "no more uevents: %s; cores are polled", strerror(-outcome));
        stop_poll(h);
    }
    if (look) {
        dmn_hotplug_check(h->daemon);
    }
}

int dmn_hotplug_start(struct dmn_daemon *d)
{
    struct dmn_hotplug *h = calloc(1, sizeof(*h));
    int outcome;

    if (!h) {
        return -ENOMEM;
    }
    h->daemon = d;
    h->fd = -1;
    d->hotplug = h;
    outcome = gov_uevent_open(&h->fd);
    if (outcome == 0) {
        outcome = uv_poll_init(&d->loop, &h->poll, h->fd);
        h->polling = outcome == 0;
        h->poll.data = h;
    }
    if (h->polling) {
        outcome = uv_poll_start(&h->poll, UV_READABLE, on_event);
    }
    if (outcome) {
        base_close_fd(&h->fd);
        dmn_log(LOG_INFO, "no uevents of the kernel here (%s): cores are polled",
                outcome > 0 ? "not allowed" : strerror(-outcome));
    }
    dmn_hotplug_check(d); /* what is there now is no change */
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void dmn_hotplug_stop(struct dmn_daemon *d)
{
    struct dmn_hotplug *h = base_take(d->hotplug);

    if (!h) {
        return;
    }
    stop_poll(h);
    if (h->polling) {
        uv_close((uv_handle_t *)&h->poll, on_closed);
    } else {
        free(h);
    }
}

void dmn_hotplug_listen(struct dmn_daemon *d, dmn_hotplug_fn fn)
{
    if (d->hotplug) {
        d->hotplug->on_change = fn;
    }
}

static json_t *set_json(const struct gov_cpuset *set, bool is_known)
{
    char text[512];

    if (!is_known) {
        return json_null();
    }
    list(set, text, sizeof(text));
    return json_string(text);
}

json_t *dmn_hotplug_json(const struct dmn_daemon *d)
{
    const struct dmn_hotplug *h = d->hotplug;

    if (!h) {
        return json_null();
    }
    return json_pack("{s:b, s:o, s:o, s:I}", "uevents", h->fd >= 0, "online",
                     set_json(&h->online, h->online_known), "allowed",
                     set_json(&h->allowed, h->allowed_known), "changes", (json_int_t)h->changes);
}
