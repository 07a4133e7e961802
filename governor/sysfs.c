/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "base/base.h"
#include "governor/sysfs.h"

/* Reads at most @size bytes. Return: their count, or -1. */
static ssize_t read_file(const char *root, char *buffer, size_t size, const char *format,
                         va_list args)
{
    char path[PATH_MAX];
    base_autoclose int fd = -1;
    struct stat st;
    size_t used = 0;
    int n = snprintf(path, sizeof(path), "%s/", root);

    if (n < 0 || (size_t)n >= sizeof(path)) {
        return -1;
    }
    size_t room = sizeof(path) - (size_t)n;
    int m = vsnprintf(path + n, room, format, args);
    if (m < 0 || (size_t)m >= room) {
        return -1;
    }
    /* O_NONBLOCK so that a pipe or device in place of the file cannot hold us in open(). */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return -1;
    }
    while (used < size) {
        ssize_t got = read(fd, buffer + used, size - used);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    return (ssize_t)used;
}

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

/* One trimmed line out of a whole file; *ret may be empty. Return: 0 or GOV_SYSFS_E_UNKNOWN. */
static int read_line(const char *root, char *ret, size_t size, const char *format, va_list args)
{
    char buffer[GOV_SYSFS_TEXT_MAX + 1];
    ssize_t count = read_file(root, buffer, sizeof(buffer), format, args);

    if (count < 0 || (size_t)count == sizeof(buffer)) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    return gov_line_parse(buffer, (size_t)count, ret, size);
}

int gov_sysfs_text(const char *root, char *ret, size_t size, const char *format, ...)
{
    char text[GOV_SYSFS_TEXT_MAX];
    va_list args;

    va_start(args, format);
    int r = read_line(root, text, base_min(size, sizeof(text)), format, args);
    va_end(args);
    if (r != 0 || text[0] == '\0') {
        return GOV_SYSFS_E_UNKNOWN;
    }
    memcpy(ret, text, strlen(text) + 1);
    return 0;
}

int gov_sysfs_u64(const char *root, uint64_t min, uint64_t max, uint64_t *ret, const char *format,
                  ...)
{
    char text[32];
    va_list args;

    va_start(args, format);
    int r = read_line(root, text, sizeof(text), format, args);
    va_end(args);
    return r != 0 ? GOV_SYSFS_E_UNKNOWN : gov_u64_parse(text, min, max, ret);
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

int gov_cpulist_parse(const char *text, struct gov_cpuset *ret)
{
    struct gov_cpuset set = {0};
    long floor = 0;

    while (*text) {
        long first = parse_cpu(&text), last = first;

        if (first >= 0 && *text == '-') {
            text++;
            last = parse_cpu(&text);
        }
        if (first < floor || last < first) {
            return GOV_SYSFS_E_UNKNOWN;
        }
        for (long cpu = first; cpu <= last; cpu++) {
            gov_cpuset_add(&set, (size_t)cpu);
        }
        floor = last + 1;
        if (*text == ',' && text[1]) {
            text++;
        } else if (*text) {
            return GOV_SYSFS_E_UNKNOWN;
        }
    }
    *ret = set;
    return 0;
}

int gov_sysfs_cpulist(const char *root, struct gov_cpuset *ret, const char *format, ...)
{
    char text[GOV_SYSFS_TEXT_MAX];
    va_list args;

    va_start(args, format);
    int r = read_line(root, text, sizeof(text), format, args);
    va_end(args);
    return r != 0 ? GOV_SYSFS_E_UNKNOWN : gov_cpulist_parse(text, ret);
}

void gov_policy_cpus(const char *root, unsigned policy, struct gov_cpuset *ret)
{
    char text[GOV_SYSFS_TEXT_MAX], *save = NULL;

    memset(ret, 0, sizeof(*ret));
    gov_cpuset_add(ret, policy);
    if (gov_sysfs_text(root, text, sizeof(text),
                       "sys/devices/system/cpu/cpufreq/policy%u/related_cpus", policy) != 0) {
        return;
    }
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        struct gov_cpuset set;

        if (gov_cpulist_parse(word, &set) == 0) {
            for (size_t i = 0; i < base_array_count(set.bits); i++) {
                ret->bits[i] |= set.bits[i];
            }
        }
    }
}

void gov_cpulist_format(const uint16_t *cpus, size_t count, char *ret, size_t bytes)
{
    size_t used = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < count && used < bytes; i++) {
        size_t first = i;

        while (i + 1 < count && cpus[i + 1] == cpus[i] + 1) {
            i++;
        }
        used += (size_t)(i > first ? snprintf(ret + used, bytes - used, "%s%u-%u", first ? "," : "",
                                              cpus[first], cpus[i])
                                   : snprintf(ret + used, bytes - used, "%s%u", first ? "," : "",
                                              cpus[i]));
    }
}
