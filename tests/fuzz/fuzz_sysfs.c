/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a machine with any content: what the governor and the daemon read from them stays in
 * its bounds. The bytes change one file after another, let time pass, and have everything read
 * again, as when cores, clocks and limits change under a running daemon. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "daemon/machine/cgroup_limits.h"
#include "daemon/machine/machine.h"
#include "governor/machine_state.h"
#include "governor/sensors.h"
#include "governor/topology.h"
#include "tests/fuzz/replay.h"
#include "tests/fuzz/sysfs_tree.h"

#define STEPS_MAX 64u

/* What an input reads with. */
struct reader {
    const char *root;
    struct gov_sensors *sensors;
    struct dmn_machine machine;
    uint64_t now_ns;
    struct gov_snapshot snapshot;
    struct gov_topology topology;
};

static bool ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static bool is_share(double x, double most)
{
    return !gov_known(x) || (x >= 0 && x <= most);
}

static bool is_answer(enum gov_answer a)
{
    return a == GOV_MAYBE || a == GOV_NO || a == GOV_YES;
}

static void check_policies(const struct gov_snapshot *s)
{
    MUST(s->policy_count <= GOV_POLICY_MAX && s->cpu_count <= GOV_CPU_MAX);
    for (size_t i = 0; i < s->policy_count; i++) {
        const struct gov_policy *p = &s->policies[i];

        MUST(i == 0 || p->number > s->policies[i - 1].number);
        MUST(p->cpu_count <= s->cpu_count && ends(p->governor, sizeof(p->governor)));
        MUST(is_share(p->pressure, 1) && is_answer(p->by_heat));
        MUST(p->limit_khz <= p->max_khz && p->limit_khz <= p->firmware_khz);
    }
    for (size_t i = 0; i < s->cpu_count; i++) {
        const struct gov_cpu_now *c = &s->cpus[i];

        MUST(c->cpu < GOV_CPU_NUMBER_MAX && (i == 0 || c->cpu > s->cpus[i - 1].cpu));
        MUST(c->policy >= -1 && c->policy < (int)s->policy_count);
    }
}

static void check_heat(const struct gov_snapshot *s)
{
    MUST(s->zone_count <= GOV_ZONE_MAX && s->cooling_count <= GOV_COOLING_MAX);
    for (size_t i = 0; i < s->zone_count; i++) {
        const struct gov_zone *z = &s->zones[i];

        MUST(ends(z->type, sizeof(z->type)) && is_answer(z->past_passive));
        MUST(z->trip_count <= GOV_TRIP_MAX);
        for (size_t t = 0; t < z->trip_count; t++) {
            MUST(z->trip_type[t] >= GOV_TRIP_OTHER && z->trip_type[t] <= GOV_TRIP_CRITICAL);
        }
    }
    for (size_t i = 0; i < s->cooling_count; i++) {
        MUST(ends(s->cooling[i].type, sizeof(s->cooling[i].type)));
    }
    MUST(is_answer(s->throttled));
}

static void check_rest(const struct gov_snapshot *s)
{
    MUST(is_share(s->psi_cpu.some_avg10, 100) && is_share(s->psi_memory.some_avg10, 100));
    MUST(s->cgroup.version >= 0 && s->cgroup.version <= 2);
    MUST(!gov_known(s->cgroup.quota_cpus) || s->cgroup.quota_cpus > 0);
    MUST(s->energy_count <= GOV_ENERGY_MAX);
    for (size_t i = 0; i < s->energy_count; i++) {
        const struct gov_energy_source *e = &s->energy[i];

        MUST(ends(e->name, sizeof(e->name)) && e->state <= GOV_ENERGY_GONE);
        MUST(!gov_known(e->joules) || (e->joules >= 0 && isfinite(e->joules)));
    }
    MUST(!gov_known(s->joules) || (s->joules >= 0 && isfinite(s->joules)));
}

static void sample(struct reader *r)
{
    uint64_t before = r->snapshot.sequence;

    gov_sensors_sample(r->sensors, r->now_ns, &r->snapshot);
    MUST(r->snapshot.sequence == before + 1 && r->snapshot.at_ns == r->now_ns);
    check_policies(&r->snapshot);
    check_heat(&r->snapshot);
    check_rest(&r->snapshot);
}

static void check_eps(const struct gov_topology *t)
{
    struct gov_cpuset seen = {{0}};
    size_t used = 0, in_eps = 0;

    MUST(t->ep_count > 0 && t->ep_count <= GOV_EP_MAX && t->cpu_count <= GOV_CPU_MAX);
    for (size_t i = 0; i < t->ep_count; i++) {
        const struct gov_ep *e = &t->eps[i];

        MUST(e->cpu_count > 0 && e->cpu_count <= GOV_CPU_MAX && e->capacity <= 1024);
        MUST(e->speed > 0 && e->speed <= 1 && e->name[0] && ends(e->name, sizeof(e->name)));
        MUST(ends(e->governor, sizeof(e->governor)) && ends(e->why, sizeof(e->why)));
        for (size_t k = 0; k < e->cpu_count; k++, in_eps++) {
            MUST(e->cpus[k] < GOV_CPU_NUMBER_MAX && !gov_cpuset_has(&seen, e->cpus[k]));
            gov_cpuset_add(&seen, e->cpus[k]);
        }
        for (size_t k = 0; k < i; k++) {
            MUST(strcmp(e->name, t->eps[k].name) != 0);
        }
    }
    for (size_t i = 0; i < t->cpu_count; i++) {
        MUST(ends(t->cpus[i].why, sizeof(t->cpus[i].why)));
        MUST(!t->cpus[i].used || (t->cpus[i].online && t->cpus[i].ep < t->ep_count));
        used += t->cpus[i].used;
    }
    MUST(used == in_eps);
}

static void read_machine(struct reader *r)
{
    static struct dmn_config *defaults;
    static struct gov_machine_state state;
    char error[DMN_CONFIG_ERROR_MAX] = "";
    struct pl_ep_set eps;

    MUST(defaults || dmn_config_load(NULL, false, error, &defaults) == 0);
    if (dmn_eps_read(defaults, r->root, &r->topology, error, &eps) == 0) {
        MUST(eps.count > 0);
        dmn_eps_state(&eps, r->snapshot.sequence ? &r->snapshot : NULL, &r->topology, r->root,
                      &state);
        MUST(state.id != 0 && ends(state.eps, sizeof(state.eps)));
        MUST(ends(state.governors, sizeof(state.governors)));
        MUST(ends(state.limits, sizeof(state.limits)));
    } else {
        MUST(*error);
    }
    check_eps(&r->topology);
    gov_topology_update_freq(r->root, &r->topology);
    check_eps(&r->topology);
}

static void changed(void *ctx, const struct dmn_hotplug_change *c)
{
    struct reader *r = ctx;

    (void)r;
    MUST(gov_cpuset_next(&c->usable, 0) >= 0 && ends(c->text, sizeof(c->text)) && *c->text);
    MUST(gov_cpuset_next(&c->gone, 0) >= 0 || gov_cpuset_next(&c->back, 0) >= 0);
}

static void look(struct reader *r, uint8_t how)
{
    r->now_ns += how & 1 ? BASE_NS_PER_S : BASE_NS_PER_S / 5;
    if (how & 2) {
        r->now_ns -= base_min(r->now_ns, 10 * BASE_NS_PER_S);
    }
    sample(r);
    dmn_hotplug_check(&r->machine, r->now_ns);
    if (how & 4) {
        dmn_cgroup_limit(r->root, DMN_CGROUP_MEMORY);
        dmn_cgroup_limit(r->root, DMN_CGROUP_TASKS);
    }
    if (how & 8) {
        read_machine(r);
    }
}

/* Reads an action's bytes. */
struct input {
    const uint8_t *at, *end;
};

static uint8_t byte(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

enum { HOW_REMOVE = 240, HOW_FOLDER, HOW_LINK, HOW_LONG, HOW_TEXT };

static const char *const texts[] = {
    "-1",
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "0-8191",
    "0-255",
    "1-3,5",
    "0,0",
    "max",
    "nan",
    "0x7fffffff",
    "-2147483648",
    "2147483647",
    "0::/",
    "1:cpu,cpuacct:/a\n",
    "passive",
    "hot",
    "Processor",
    "0::/a/../../b\n",
    "4:memory:/a\n",
    "some avg10=100.00 total=9",
    "some avg10=1e300 total=99999999999999999999",
    "Cpus_allowed_list:\t1\n",
    "1000 1",
    "1 0",
    "some avg10=-1 total=-1",
    "0-3\n",
    "2,0",
    "8191",
    "some avg10=250.00 total=9\n",
    "thermal-cpufreq-0",
    "0\n\n",
    "\n",
};

static void change(struct input *in, uint8_t path)
{
    static const char longest[8192] = "0123456789";
    uint8_t how = byte(in);
    size_t left = (size_t)(in->end - in->at), count;
    const char *text;

    switch (how) {
    case HOW_REMOVE:
        sysfs_remove(path);
        break;
    case HOW_FOLDER:
        sysfs_folder(path);
        break;
    case HOW_LINK:
        sysfs_link(path, byte(in));
        break;
    case HOW_LONG:
        sysfs_put(path, longest, 4000 + 16u * byte(in));
        break;
    case HOW_TEXT:
        text = texts[byte(in) % base_array_count(texts)];
        sysfs_put(path, text, strlen(text));
        break;
    default:
        count = base_min((size_t)how % 80, left);
        sysfs_put(path, in->at, count);
        in->at += count;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct reader r;
    struct input in = {data, data + bytes};

    r.root = sysfs_start();
    MUST(sysfs_paths() < 200);
    r.machine = (struct dmn_machine){.sysfs_root = r.root};
    r.now_ns = 100 * BASE_NS_PER_S;
    r.snapshot.sequence = 0;
    MUST(gov_sensors_new(r.root, &r.sensors) == 0 && dmn_hotplug_start(&r.machine) == 0);
    dmn_hotplug_listen(&r.machine, changed, &r);
    for (size_t i = 0; i < STEPS_MAX && in.at < in.end; i++) {
        uint8_t what = byte(&in);

        if (what >= 200) {
            look(&r, what);
        } else {
            change(&in, what);
        }
    }
    look(&r, 4 | 8);
    dmn_hotplug_stop(&r.machine);
    r.sensors = gov_sensors_free(r.sensors);
    sysfs_restore();
    return 0;
}

/* Each file gets some texts of the list, becomes a link and a folder, and goes, with a look after
 * each. What is gone is not looked for at once, so that comes last. */
size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    static const uint8_t last[] = {HOW_LINK, HOW_REMOVE, HOW_FOLDER};
    size_t path = index % sysfs_paths(), first = index / sysfs_paths() * 12, bytes = 0;

    if (first >= base_array_count(texts)) {
        return 0;
    }
    MUST(cap >= 4 * (12 + base_array_count(last)));
    for (size_t i = 0; i < 12 + base_array_count(last); i++) {
        data[bytes++] = (uint8_t)path;
        data[bytes++] = i < 12 ? HOW_TEXT : last[i - 12];
        if (data[bytes - 1] == HOW_TEXT || data[bytes - 1] == HOW_LINK) {
            data[bytes++] = (uint8_t)(first + i);
        }
        data[bytes++] = i % 6 == 5 ? 220 : 208; /* with its cores, or without */
    }
    return bytes;
}
