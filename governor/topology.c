/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/topology.h"
#include "base/base.h"
#include "governor/cpu_facts.h"
#include "governor/kernel_file.h"

#define POLICY_DIR "sys/devices/system/cpu/cpufreq/policy%d/"
/* Firmware gives equal cores capacities that differ by their best frequency: no other kind. */
#define CAPACITY_SAME 0.95
#define CAPACITY_FULL 1024u /* the kernel's SCHED_CAPACITY_SCALE */

/* Equal cores, wherever they are. */
struct kind {
    enum gov_core_type type;
    bool type_by_hwloc;
    uint32_t part, capacity, cache_level;
    uint64_t max_freq_khz;
    uint16_t lowest_cpu;
    size_t ep_count;
    char name[GOV_NAME_MAX];
};

/* What splits a kind into EPs; given up from the finest on when there are more than GOV_EP_MAX. */
enum detail { DETAIL_CACHE, DETAIL_NODE, DETAIL_KIND };

struct grouping {
    struct gov_machine_facts m;
    size_t kind_count;
    struct kind kinds[GOV_CPU_MAX]; /* fastest first */
    /* By index into m.cpus: */
    uint16_t kind_of[GOV_CPU_MAX], ep_of[GOV_CPU_MAX];
    int32_t place_of[GOV_CPU_MAX]; /* cores with the same number share a cache; -1: no difference */
};

static int likeness(const struct gov_cpu_facts *a, const struct gov_cpu_facts *b)
{
    if (a->type != b->type || a->part != b->part || a->cache_level != b->cache_level) {
        return 0;
    }
    return 1 + 2 * (a->cluster_id >= 0 && a->cluster_id == b->cluster_id) +
           (a->cache_id >= 0 && a->cache_id == b->cache_id);
}

/* A CPU whose capacity is missing or garbled takes that of its nearest neighbours; if it has none,
 * capacities say nothing about this machine. */
static void complete_capacities(struct gov_machine_facts *m)
{
    bool known = true;

    for (size_t i = 0; i < m->usable_count; i++) {
        struct gov_cpu_facts *f = &m->cpus[i];
        uint32_t capacity = f->capacity;

        for (size_t j = 0, best = 0; f->capacity == 0 && j < m->usable_count; j++) {
            size_t like = m->cpus[j].capacity ? (size_t)likeness(f, &m->cpus[j]) : 0;

            if (like > best) {
                best = like;
                capacity = m->cpus[j].capacity;
            }
        }
        f->capacity = capacity;
        known = known && capacity != 0;
    }
    for (size_t i = 0; !known && i < m->usable_count; i++) {
        m->cpus[i].capacity = 0;
    }
}

/* Rounds capacities up to the largest that is still the same. */
static void round_capacities(struct gov_machine_facts *m)
{
    uint32_t head, below = UINT32_MAX;

    do {
        head = 0;
        for (size_t i = 0; i < m->usable_count; i++) {
            if (m->cpus[i].capacity < below) {
                head = base_max(head, m->cpus[i].capacity);
            }
        }
        below = head;
        for (size_t i = 0; i < m->usable_count; i++) {
            uint32_t capacity = m->cpus[i].capacity;

            if (capacity <= head && capacity >= head * CAPACITY_SAME) {
                m->cpus[i].capacity = head;
            }
        }
    } while (head != 0);
}

/* A core whose caches are unknown is not told from the others by them. */
static void complete_cache_levels(struct gov_machine_facts *m)
{
    uint32_t deepest = 0;

    for (size_t i = 0; i < m->usable_count; i++) {
        deepest = base_max(deepest, m->cpus[i].cache_level);
    }
    for (size_t i = 0; i < m->usable_count; i++) {
        if (m->cpus[i].cache_level == 0) {
            m->cpus[i].cache_level = deepest;
        }
    }
}

/* Fastest first: frequency ranks kinds that something else has told apart. */
static int compare_kinds(const void *pa, const void *pb)
{
    const struct kind *a = pa, *b = pb;

    if (a->capacity != b->capacity) {
        return a->capacity > b->capacity ? -1 : 1;
    }
    if (a->type != b->type) {
        return a->type < b->type ? -1 : 1;
    }
    if (a->cache_level != b->cache_level) {
        return a->cache_level > b->cache_level ? -1 : 1;
    }
    if (a->max_freq_khz != b->max_freq_khz) {
        return a->max_freq_khz > b->max_freq_khz ? -1 : 1;
    }
    return a->lowest_cpu < b->lowest_cpu ? -1 : 1;
}

static bool is_kind(const struct kind *k, const struct gov_cpu_facts *f)
{
    return k->type == f->type && k->part == f->part && k->capacity == f->capacity &&
           k->cache_level == f->cache_level;
}

/* The kernel scales capacities so that the fastest core of the machine has CAPACITY_FULL. Where all
 * that may be used is slower, "big" belongs to cores that are offline or outside the CPU set. */
static bool fastest_is_left_out(const struct grouping *g)
{
    bool left_out = false;

    for (size_t i = g->m.usable_count; i < g->m.cpu_count; i++) {
        left_out |=
            g->m.cpus[i].state == GOV_CPU_OFFLINE || g->m.cpus[i].state == GOV_CPU_FORBIDDEN;
    }
    return left_out && g->kinds[0].capacity > 0 &&
           g->kinds[0].capacity < CAPACITY_FULL * CAPACITY_SAME;
}

static void find_kinds(struct grouping *g)
{
    for (size_t i = 0; i < g->m.usable_count; i++) {
        const struct gov_cpu_facts *f = &g->m.cpus[i];
        size_t k = 0;

        while (k < g->kind_count && !is_kind(&g->kinds[k], f)) {
            k++;
        }
        if (k == g->kind_count) {
            g->kinds[g->kind_count++] = (struct kind){.type = f->type,
                                                      .type_by_hwloc = f->type_by_hwloc,
                                                      .part = f->part,
                                                      .capacity = f->capacity,
                                                      .cache_level = f->cache_level,
                                                      .lowest_cpu = f->cpu};
        }
        g->kinds[k].max_freq_khz = base_max(g->kinds[k].max_freq_khz, f->max_freq_khz);
    }
    qsort(g->kinds, g->kind_count, sizeof(g->kinds[0]), compare_kinds);
    for (size_t i = 0; i < g->m.usable_count; i++) {
        while (!is_kind(&g->kinds[g->kind_of[i]], &g->m.cpus[i])) {
            g->kind_of[i]++;
        }
    }
    bool big_is_here = !fastest_is_left_out(g);
    size_t mids = 0;
    for (size_t k = 0; k < g->kind_count; k++) {
        if (k == 0 && big_is_here) {
            strcpy(g->kinds[k].name, "big");
        } else if (k == g->kind_count - 1) {
            strcpy(g->kinds[k].name, "little");
        } else if (++mids == 1) {
            strcpy(g->kinds[k].name, "mid");
        } else {
            snprintf(g->kinds[k].name, GOV_NAME_MAX, "mid%u", (unsigned)mids);
        }
    }
}

/* What tells the places of one kind apart: the deepest cache; where that is unknown, the cluster;
 * then the package. Places of one core each (virtual machines) tell nothing. */
static void find_places(struct grouping *g, size_t kind)
{
    static const size_t sources[] = {offsetof(struct gov_cpu_facts, cache_id),
                                     offsetof(struct gov_cpu_facts, cluster_id),
                                     offsetof(struct gov_cpu_facts, package_id)};

    for (size_t s = 0; s < base_array_count(sources); s++) {
        bool known = true, shared = false;

        for (size_t i = 0; i < g->m.usable_count; i++) {
            if (g->kind_of[i] != kind) {
                continue;
            }
            memcpy(&g->place_of[i], (char *)&g->m.cpus[i] + sources[s], sizeof(int32_t));
            known = known && g->place_of[i] >= 0;
            for (size_t j = 0; j < i; j++) {
                shared = shared || (g->kind_of[j] == kind && g->place_of[i] == g->place_of[j]);
            }
        }
        if (known && shared) {
            return;
        }
        for (size_t i = 0; i < g->m.usable_count; i++) {
            g->place_of[i] = g->kind_of[i] == kind ? -1 : g->place_of[i];
        }
        if (known) {
            return;
        }
    }
}

static bool same_ep(const struct grouping *g, size_t i, size_t j, enum detail detail)
{
    return g->kind_of[i] == g->kind_of[j] &&
           (detail > DETAIL_NODE || g->m.cpus[i].node == g->m.cpus[j].node) &&
           (detail > DETAIL_CACHE || g->place_of[i] == g->place_of[j]);
}

/* Numbers the EPs, fastest kind and lowest CPU first. Return: their count. */
static size_t number_eps(struct grouping *g, enum detail detail)
{
    size_t count = 0;

    for (size_t kind = 0; kind < g->kind_count; kind++) {
        g->kinds[kind].ep_count = 0;
        for (size_t i = 0; i < g->m.usable_count; i++) {
            size_t j = 0;

            if (g->kind_of[i] != kind) {
                continue;
            }
            while (j < i && !same_ep(g, i, j, detail)) {
                j++;
            }
            g->ep_of[i] = j < i ? g->ep_of[j] : (uint16_t)count++;
            g->kinds[kind].ep_count += j == i;
        }
    }
    return count;
}

static size_t find_eps(struct grouping *g)
{
    for (size_t kind = 0; kind < g->kind_count; kind++) {
        find_places(g, kind);
    }
    for (enum detail detail = DETAIL_CACHE; detail <= DETAIL_KIND; detail++) {
        size_t count = number_eps(g, detail);

        if (count <= GOV_EP_MAX) {
            return count;
        }
    }
    /* More kinds than any real machine has: the slowest ones go together. */
    for (size_t i = 0; i < g->m.usable_count; i++) {
        g->ep_of[i] = base_min(g->ep_of[i], (uint16_t)(GOV_EP_MAX - 1));
        g->kind_of[i] = g->ep_of[i];
    }
    strcpy(g->kinds[GOV_EP_MAX - 1].name, "little");
    g->kind_count = GOV_EP_MAX;
    return GOV_EP_MAX;
}

static bool name_taken(const struct gov_topology *t, size_t count, const char *name)
{
    for (size_t e = 0; e < count; e++) {
        if (strcmp(t->eps[e].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool one_ep_a_node(const struct gov_topology *t)
{
    for (size_t e = 0; e < t->ep_count; e++) {
        for (size_t other = 0; other < e; other++) {
            if (t->eps[e].node == t->eps[other].node) {
                return false;
            }
        }
        if (t->eps[e].node < 0) {
            return false;
        }
    }
    return t->ep_count > 1;
}

static void name_eps(const struct grouping *g, struct gov_topology *t)
{
    bool nodes = g->kind_count == 1 && one_ep_a_node(t);
    unsigned number = 0;

    for (size_t e = 0; e < t->ep_count; e++) {
        struct gov_ep *ep = &t->eps[e];
        char name[GOV_NAME_MAX];

        if (nodes) {
            snprintf(ep->name, sizeof(ep->name), "node%d", (int)ep->node);
            continue;
        }
        number = e > 0 && strcmp(ep->kind, t->eps[e - 1].kind) == 0 ? number + 1 : 0;
        do {
            /* "mid2" may be a kind of its own: then the second EP of "mid" is "mid3". */
            if (number == 0) {
                snprintf(name, sizeof(name), "%s", ep->kind);
            } else {
                snprintf(name, sizeof(name), "%.12s%u", ep->kind, number);
            }
        } while (name_taken(t, e, name) && ++number);
        memcpy(ep->name, name, sizeof(name));
    }
}

/* Does its part number tell it from every other kind? */
static bool part_is_its_own(const struct grouping *g, const struct kind *kind)
{
    for (size_t k = 0; k < g->kind_count; k++) {
        if (&g->kinds[k] != kind && g->kinds[k].part == kind->part) {
            return false;
        }
    }
    return kind->part != 0;
}

static void explain_ep(const struct grouping *g, const struct kind *kind, struct gov_ep *ep)
{
    if (g->kind_count == 1) {
        base_append(ep->why, sizeof(ep->why), "all cores are of one kind");
    } else if (kind->type != GOV_CORE_TYPE_UNKNOWN) {
        base_append(ep->why, sizeof(ep->why), "%s cores by %s",
                    kind->type == GOV_CORE_TYPE_PERFORMANCE ? "performance" : "efficient",
                    kind->type_by_hwloc ? "hwloc" : "cpu_core and cpu_atom");
    } else if (part_is_its_own(g, kind)) {
        base_append(ep->why, sizeof(ep->why), "core part 0x%x of MIDR_EL1",
                    (unsigned)(kind->part >> 4 & 0xfff));
    } else {
        base_append(ep->why, sizeof(ep->why), "told apart by %s",
                    kind->capacity ? "cpu_capacity" : "cache levels");
    }
    if (kind->capacity) {
        base_append(ep->why, sizeof(ep->why), ", capacity %u", (unsigned)kind->capacity);
    }
    if (g->kind_count > 1 && kind->cache_level < g->kinds[0].cache_level) {
        base_append(ep->why, sizeof(ep->why), ", no level %u cache",
                    (unsigned)g->kinds[0].cache_level);
    }
    if (kind->ep_count > 1) {
        base_append(ep->why, sizeof(ep->why), "; own cache or memory");
    }
}

/* As a first guess, until something was measured. */
static double guess_speed(const struct kind *kind, const struct kind *fastest)
{
    if (kind->capacity && fastest->capacity) {
        return (double)kind->capacity / fastest->capacity;
    }
    if (kind->max_freq_khz && kind->max_freq_khz < fastest->max_freq_khz) {
        return (double)kind->max_freq_khz / (double)fastest->max_freq_khz;
    }
    return 1.0;
}

static void fill_eps(const struct grouping *g, struct gov_topology *t)
{
    for (size_t i = 0; i < g->m.usable_count; i++) {
        const struct gov_cpu_facts *f = &g->m.cpus[i];
        const struct kind *kind = &g->kinds[g->kind_of[i]];
        struct gov_ep *ep = &t->eps[g->ep_of[i]];

        if (ep->cpu_count == 0) {
            memcpy(ep->kind, kind->name, sizeof(ep->kind));
            ep->capacity = kind->capacity;
            ep->node = f->node;
            ep->policy = f->policy;
            ep->speed = guess_speed(kind, &g->kinds[0]);
            explain_ep(g, kind, ep);
        } else if (ep->node != f->node) {
            ep->node = -1;
        }
        ep->cpus[ep->cpu_count++] = f->cpu;
    }
    name_eps(g, t);
}

static void fill_cpus(const struct grouping *g, struct gov_topology *t)
{
    for (size_t i = 0; i < g->m.cpu_count; i++) {
        const struct gov_cpu_facts *f = &g->m.cpus[i];
        struct gov_cpu *c = &t->cpus[i];

        c->cpu = f->cpu;
        c->online = f->state != GOV_CPU_OFFLINE;
        c->used = f->state == GOV_CPU_USABLE;
        switch (f->state) {
        case GOV_CPU_USABLE:
            c->ep = g->ep_of[i];
            base_append(c->why, sizeof(c->why), "core of %s%s", t->eps[c->ep].name,
                        f->isolated ? ", isolated from other programs" : "");
            break;
        case GOV_CPU_OFFLINE:
            base_append(c->why, sizeof(c->why), "offline");
            break;
        case GOV_CPU_FORBIDDEN:
            base_append(c->why, sizeof(c->why), "outside the CPU set of this process%s",
                        f->isolated ? " (isolated by the kernel)" : "");
            break;
        case GOV_CPU_SIBLING:
            base_append(c->why, sizeof(c->why),
                        "second thread of the core of CPU %u, one thread a core is used",
                        (unsigned)f->sibling_of);
            break;
        }
    }
}

static int compare_cpus(const void *pa, const void *pb)
{
    const struct gov_cpu *a = pa, *b = pb;

    return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

int gov_topology_read(const char *sysfs_root, struct gov_topology *ret)
{
    base_autofree struct grouping *g = calloc(1, sizeof(*g));

    if (!g) {
        return -ENOMEM;
    }
    memset(ret, 0, sizeof(*ret));
    gov_cpu_facts_read(sysfs_root, &g->m);
    complete_cache_levels(&g->m);
    complete_capacities(&g->m);
    round_capacities(&g->m);
    find_kinds(g);
    ret->ep_count = find_eps(g);
    ret->cpu_count = g->m.cpu_count;
    fill_eps(g, ret);
    fill_cpus(g, ret);
    qsort(ret->cpus, ret->cpu_count, sizeof(ret->cpus[0]), compare_cpus);
    gov_topology_update_freq(sysfs_root, ret);
    return 0;
}

void gov_topology_update_freq(const char *sysfs_root, struct gov_topology *t)
{
    const uint64_t khz_max = 100000000; /* 100 GHz: more is garbage */

    for (size_t e = 0; e < t->ep_count; e++) {
        struct gov_ep *ep = &t->eps[e];
        int policy = ep->policy;

        ep->governor[0] = '\0';
        ep->freq_khz = ep->max_freq_khz = 0;
        if (policy < 0) {
            continue;
        }
        /* On failure the "unknown" above stays. */
        (void)gov_sysfs_text(sysfs_root, ep->governor, sizeof(ep->governor),
                             POLICY_DIR "scaling_governor", policy);
        (void)gov_sysfs_u64(sysfs_root, 1, khz_max, &ep->freq_khz, POLICY_DIR "scaling_cur_freq",
                            policy);
        (void)gov_sysfs_u64(sysfs_root, 1, khz_max, &ep->max_freq_khz,
                            POLICY_DIR "cpuinfo_max_freq", policy);
    }
}
