/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/sysfs.h"
#include "base/base.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int gov_line_parse(const char *bytes, size_t count, char *ret, size_t size)
{
    const char *begin = bytes, *end = bytes + count;

    while (begin < end && is_space(*begin)) {
        begin++;
    }
    while (end > begin && is_space(end[-1])) {
        end--;
    }
    if ((size_t)(end - begin) >= size) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    for (const char *c = begin; c < end; c++) {
        if (*c < ' ' || *c > '~') {
            return GOV_SYSFS_E_UNKNOWN;
        }
    }
    memcpy(ret, begin, (size_t)(end - begin));
    ret[end - begin] = '\0';
    return 0;
}

int gov_u64_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    char *end;

    /* strtoull would take a sign and wrap. */
    if (text[0] < '0' || text[0] > '9') {
        return GOV_SYSFS_E_UNKNOWN;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &end, hex ? 16 : 10);
    if (errno != 0 || *end != '\0' || value < min || value > max) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    *ret = value;
    return 0;
}

/* A number of at most four digits at *text, which is moved behind it. Return: it, or -1. */
static long parse_cpu(const char **text)
{
    long value = 0;
    const char *c = *text;

    for (; *c >= '0' && *c <= '9'; c++) {
        value = value * 10 + (*c - '0');
        if (value >= (long)GOV_CPU_NUMBER_MAX) {
            return -1;
        }
    }
    if (c == *text) {
        return -1;
    }
    *text = c;
    return value;
}

bool gov_cpulist_range(const char **text, size_t *ret_first, size_t *ret_last)
{
    long first = parse_cpu(text), last = first;

    if (first >= 0 && **text == '-') {
        ++*text;
        last = parse_cpu(text);
    }
    if (first < 0 || last < first || (**text && (**text != ',' || !(*text)[1]))) {
        return false;
    }
    *text += **text == ',';
    *ret_first = (size_t)first;
    *ret_last = (size_t)last;
    return true;
}

int gov_cpulist_parse(const char *text, struct gov_cpuset *ret)
{
    struct gov_cpuset set = {0};
    size_t first, last, floor = 0;

    while (*text) {
        if (!gov_cpulist_range(&text, &first, &last) || first < floor) {
            return GOV_SYSFS_E_UNKNOWN;
        }
        for (; first <= last; first++) {
            gov_cpuset_add(&set, first);
        }
        floor = first;
    }
    *ret = set;
    return 0;
}

void gov_cpulist_format(const uint16_t *cpus, size_t count, char *ret, size_t bytes)
{
    ret[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t first = i;

        while (i + 1 < count && cpus[i + 1] == cpus[i] + 1) {
            i++;
        }
        base_append(ret, bytes, "%s%u", first ? "," : "", cpus[first]);
        if (i > first) {
            base_append(ret, bytes, "-%u", cpus[i]);
        }
    }
}
