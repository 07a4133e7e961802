/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/allowed.h"

#include <sched.h>

#include "base/base.h"
#include "governor/kernel_file.h"

bool gov_root_is_live(const char *root)
{
    return strcmp(root, "/") == 0 || root[0] == '\0';
}

/* Stage threads are pinned and would say less than the main thread. */
static int read_affinity(struct gov_cpuset *ret)
{
    /* the kernel's sets are arrays of unsigned long, the bits from the lowest on, as ours */
    struct gov_cpuset set = {0};

    _Static_assert(sizeof(unsigned long) == sizeof(set.bits[0]) ||
                       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
                   "the kernel's words and ours have the same bits");
    if (sched_getaffinity(getpid(), sizeof(set.bits), (cpu_set_t *)set.bits) < 0) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    *ret = set;
    return 0;
}

static int read_status(const char *root, struct gov_cpuset *ret)
{
    static const char key[] = "\nCpus_allowed_list:";
    struct gov_files files = {.root = root};
    struct gov_file file = {0};
    struct gov_cpuset set;
    char text[GOV_SYSFS_TEXT_MAX], list[GOV_SYSFS_TEXT_MAX];

    gov_file_set(&files, &file, "proc/self/status");
    int n = gov_file_read(&files, &file, text, sizeof(text));
    gov_file_close(&files, &file);
    char *at = n < 0 ? NULL : strstr(text, key);
    if (!at) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    at += strlen(key);
    if (gov_line_parse(at, strcspn(at, "\n"), list, sizeof(list)) != 0 ||
        gov_cpulist_parse(list, &set) != 0 || gov_cpuset_next(&set, 0) < 0) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    *ret = set;
    return 0;
}

int gov_allowed_cpus(const char *root, struct gov_cpuset *ret)
{
    return gov_root_is_live(root) ? read_affinity(ret) : read_status(root, ret);
}
