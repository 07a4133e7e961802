/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/unit/governor/probe.h"

#define STEP_NS (BASE_NS_PER_S / 5)

struct probe *probe_new(const struct tree *t)
{
    struct probe *p = calloc(1, sizeof(*p));

    if (!p || gov_sensors_new(t->root, &p->sensors) != 0) {
        abort();
    }
    p->now_ns = 100 * BASE_NS_PER_S;
    gov_sensors_sample(p->sensors, p->now_ns, &p->s);
    return p;
}

void probe_free(struct probe **p)
{
    gov_sensors_free((*p)->sensors);
    free(*p);
}

void probe_sample(struct probe *p, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        p->now_ns += STEP_NS;
        gov_sensors_sample(p->sensors, p->now_ns, &p->s);
    }
}

const struct gov_policy *probe_policy(const struct probe *p, uint32_t number)
{
    static const struct gov_policy none;

    for (size_t i = 0; i < p->s.policy_count; i++) {
        if (p->s.policies[i].number == number) {
            return &p->s.policies[i];
        }
    }
    return &none;
}

const struct gov_energy_source *probe_source(const struct probe *p, const char *name)
{
    static const struct gov_energy_source none = {.name = "none"};

    for (size_t i = 0; i < p->s.energy_count; i++) {
        if (strcmp(p->s.energy[i].name, name) == 0) {
            return &p->s.energy[i];
        }
    }
    return &none;
}
