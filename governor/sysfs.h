/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/sysfs.h - what small files of the kernel say, parsed with suspicion: the answer is a
 * checked value or "unknown". Sets of CPUs. Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOV_SYSFS_TEXT_MAX 4096u /* bytes of the largest file that is taken seriously */
#define GOV_CPU_MAX 256u         /* CPUs that are told apart */
#define GOV_NAME_MAX 24u         /* of governors, kinds and EPs, terminated */
#define GOV_CPU_NUMBER_MAX 8192u /* kernel CPU numbers are below this (CONFIG_NR_CPUS of x86) */

struct gov_cpuset {
    uint64_t bits[GOV_CPU_NUMBER_MAX / 64];
};

enum { GOV_SYSFS_E_UNKNOWN = 1 };

/** gov_cpulist_range() - the first range of a CPU list, "0-3" or "8": moves *text to the next one.
 * Return: false: it is none, or what follows it is no list. */
bool gov_cpulist_range(const char **text, size_t *ret_first, size_t *ret_last);
/** gov_cpulist_parse() - a CPU list ("0-3,8,10-11"); an empty text is an empty set. Return: 0, or
 * GOV_SYSFS_E_UNKNOWN for anything but a list in rising order of numbers below GOV_CPU_NUMBER_MAX.
 */
int gov_cpulist_parse(const char *text, struct gov_cpuset *ret);
/** gov_cpulist_format() - kernel numbers in the order given as text, rising runs as "0-3"; cut
 * where @bytes are full. */
void gov_cpulist_format(const uint16_t *cpus, size_t count, char *ret, size_t bytes);

/** gov_line_parse() - @count bytes as one line of printable text, trimmed, into @ret. Return: 0, or
 * GOV_SYSFS_E_UNKNOWN if it has other bytes or more than @size - 1; an empty line is one. */
int gov_line_parse(const char *bytes, size_t count, char *ret, size_t size);
/** gov_u64_parse() - a decimal or 0x number in [@min, @max] and nothing else. Return: 0 or
 * GOV_SYSFS_E_UNKNOWN. */
int gov_u64_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

static inline bool gov_cpuset_has(const struct gov_cpuset *s, size_t cpu)
{
    return cpu < GOV_CPU_NUMBER_MAX && (s->bits[cpu / 64] >> (cpu % 64) & 1) != 0;
}
static inline void gov_cpuset_add(struct gov_cpuset *s, size_t cpu)
{
    if (cpu < GOV_CPU_NUMBER_MAX) {
        s->bits[cpu / 64] |= 1ull << (cpu % 64);
    }
}
/** gov_cpuset_next() - the lowest member that is at least @from, or -1. */
static inline int32_t gov_cpuset_next(const struct gov_cpuset *s, size_t from)
{
    for (size_t word = from / 64; word < GOV_CPU_NUMBER_MAX / 64; word++) {
        uint64_t bits = s->bits[word];

        if (word == from / 64) {
            bits &= ~0ull << (from % 64);
        }
        if (bits) {
            return (int32_t)(word * 64 + (size_t)__builtin_ctzll(bits));
        }
    }
    return -1;
}

/* Each member of a set, an int32_t @cpu, rising. */
#define gov_cpuset_foreach(cpu, set)                                                               \
    for (int32_t cpu = gov_cpuset_next(set, 0); cpu >= 0;                                          \
         cpu = gov_cpuset_next(set, (size_t)cpu + 1))
