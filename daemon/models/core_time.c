/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/core_time.h"

#include "base/base.h"

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

int dmn_core_time_read(int cpu, struct dmn_core_time *ret)
{
    FILE *f = fopen("/proc/stat", "re");
    char line[512], name[24] = "cpu ";
    unsigned long long t[COLUMNS];
    int error = -ENOENT;

    if (cpu >= 0) {
        snprintf(name, sizeof(name), "cpu%d ", cpu);
    }
    while (f && error && fgets(line, sizeof(line), f) && strncmp(line, "cpu", 3) == 0) {
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), "%llu %llu %llu %llu %llu %llu %llu %llu", &t[USER],
                   &t[NICE], &t[SYSTEM], &t[IDLE], &t[IOWAIT], &t[IRQ], &t[SOFTIRQ],
                   &t[STEAL]) == COLUMNS) {
            uint64_t tick_ns = BASE_NS_PER_S / (uint64_t)base_max(sysconf(_SC_CLK_TCK), 1L);

            ret->stolen_ns = t[STEAL] * tick_ns;
            ret->busy_ns =
                (t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ] + t[STEAL]) * tick_ns;
            error = 0;
        }
    }
    if (f) {
        fclose(f);
    }
    return error;
}
