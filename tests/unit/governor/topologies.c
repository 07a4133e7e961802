/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/unit/governor/topologies.h"

const struct gov_topology *read_topology(const struct tree *t)
{
    static struct gov_topology topology;

    memset(&topology, 0x5a, sizeof(topology));
    if (gov_topology_read(t->root, &topology) != 0) {
        abort();
    }
    return &topology;
}

const struct gov_topology *read_tree(const char *description)
{
    tree_auto struct tree t = tree_new(description);

    return read_topology(&t);
}

const char *eps_text(const struct gov_topology *t)
{
    static char text[8192];
    size_t used = 0;

    text[0] = '\0';
    for (size_t e = 0; e < t->ep_count; e++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:", e ? " " : "",
                                 t->eps[e].name);
        for (size_t i = 0; i < t->eps[e].cpu_count; i++) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", i ? "," : "",
                                     t->eps[e].cpus[i]);
        }
    }
    return text;
}

const struct gov_cpu *cpu_of(const struct gov_topology *t, unsigned number)
{
    static const struct gov_cpu none = {.why = "no such CPU"};

    for (size_t i = 0; i < t->cpu_count; i++) {
        if (t->cpus[i].cpu == number) {
            return &t->cpus[i];
        }
    }
    return &none;
}
