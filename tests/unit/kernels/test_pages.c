/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for packed weights: alignment, stores, huge pages, NUMA nodes asked for and refused. */
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/base.h"
#include "kernels/common/pages.h"
#include "tests/harness.h"

#define MIB ((size_t)1 << 20)

static bool holds(const struct krn_pages *p)
{
    memset(p->at, 0x5a, p->bytes);
    for (size_t i = 0; i < p->bytes; i += 61) {
        if (((const uint8_t *)p->at)[i] != 0x5a) {
            return false;
        }
    }
    return (uintptr_t)p->at % 64 == 0;
}

TEST(pages_of_any_size)
{
    static const size_t bytes[] = {1, 64, 4095, 65535, 65536, 70000, 3 * MIB, 5 * MIB + 7};

    for (size_t i = 0; i < base_array_count(bytes); i++) {
        struct krn_pages p = {.at = NULL};

        T_EQ(krn_pages_new(bytes[i], 0, &p), 0);
        T_EQ(p.bytes, bytes[i]);
        T_TRUE(holds(&p));
        krn_pages_free(&p);
        T_TRUE(p.at == NULL && p.bytes == 0);
        krn_pages_free(&p);
    }
    struct krn_pages p = {.at = NULL};

    T_EQ(krn_pages_new(SIZE_MAX - 10, 0, &p), -ENOMEM);
}

/* Kilobytes of @key in smaps for the mapping that holds @at; -1: there is no such line. */
static long smaps_kb(const void *at, const char *key)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    unsigned long from, to;
    char line[512];
    bool inside = false;
    long kb = -1;

    while (f && kb < 0 && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2 && strchr(line, '-') < strchr(line, ' ')) {
            inside = (uintptr_t)at >= from && (uintptr_t)at < to;
        } else if (inside && strncmp(line, key, strlen(key)) == 0) {
            kb = atol(line + strlen(key) + 1);
        }
    }
    if (f) {
        fclose(f);
    }
    return kb;
}

TEST(a_store_gives_its_pages_back)
{
    struct krn_pages p[3] = {{.at = NULL}};
    struct krn_store s;
    void *second;
    long full;

    krn_store_init(&s, 12 * MIB, 0);
    T_TRUE(s.at != NULL && (uintptr_t)s.at % (2 * MIB) == 0);
    for (size_t i = 0; i < 3; i++) {
        krn_store_reserve(&s, 4 * MIB - 32, &p[i]);
        T_EQ(krn_pages_new(4 * MIB - 32, 0, &p[i]), 0);
        T_TRUE((uint8_t *)p[i].at >= s.at && (uint8_t *)p[i].at + p[i].bytes <= s.at + s.bytes);
        T_TRUE(holds(&p[i]));
    }
    second = p[1].at;
    full = smaps_kb(s.at, "Rss:");
    if (full < 0) {
        T_SKIP("there is no /proc/self/smaps");
    }
    /* The kernel must not make a huge page again of what is left of one. */
    (void)madvise(s.at, s.bytes, MADV_NOHUGEPAGE);
    krn_pages_free(&p[1]);
    T_LE(smaps_kb(s.at, "Rss:"), full - 3 * 1024);
    T_EQ(((uint8_t *)p[0].at)[p[0].bytes - 1], 0x5a);
    T_EQ(((uint8_t *)p[2].at)[0], 0x5a);
    T_EQ(krn_pages_new(4 * MIB - 32, 0, &p[1]), 0); /* at its place again */
    T_TRUE(p[1].at == second && holds(&p[1]));
    for (size_t i = 0; i < 3; i++) {
        krn_pages_free(&p[i]);
    }
    krn_store_deinit(&s);
}

TEST(a_store_that_is_full_or_small_leaves_it_to_others)
{
    struct krn_pages p = {.at = NULL};
    struct krn_store s;

    krn_store_init(&s, 4096, 0);
    T_TRUE(s.at == NULL);
    krn_store_reserve(&s, 64, &p);
    T_TRUE(p.slot == NULL);
    krn_store_deinit(&s);
    krn_store_init(&s, 2 * MIB, 0);
    krn_store_reserve(&s, 3 * MIB, &p);
    T_TRUE(p.slot == NULL);
    T_EQ(krn_pages_new(3 * MIB, 0, &p), 0);
    T_TRUE(holds(&p));
    krn_pages_free(&p);
    krn_store_deinit(&s);
}

static bool has_huge_pages(void)
{
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    char text[128] = "";
    bool has = f && fgets(text, sizeof(text), f) && !strstr(text, "[never]");

    if (f) {
        fclose(f);
    }
    return has;
}

/* A huge page over the border would take memory for what is never written. */
TEST(what_may_stay_empty_takes_nothing)
{
    struct krn_pages own = {.at = NULL}, maybe = {.at = NULL};
    struct krn_store s;
    long kb;

    krn_store_init(&s, MIB, 3 * MIB);
    T_TRUE(s.at != NULL);
    krn_store_reserve(&s, MIB, &own);
    krn_store_reserve(&s, 3 * MIB, &maybe);
    T_TRUE(maybe.slot == s.at + MIB);
    T_EQ(krn_pages_new(MIB, 0, &own), 0);
    T_TRUE(holds(&own));
    kb = smaps_kb(s.at, "Rss:");
    if (kb < 0) {
        T_SKIP("there is no /proc/self/smaps");
    }
    T_EQ(kb, 1024);
    T_EQ(krn_pages_new(3 * MIB, 0, &maybe), 0);
    T_TRUE(holds(&maybe));
    krn_pages_free(&own);
    krn_pages_free(&maybe);
    krn_store_deinit(&s);
}

TEST(large_ones_are_in_huge_pages)
{
    struct krn_pages p = {.at = NULL};
    long huge;

    if (!has_huge_pages()) {
        T_SKIP("this kernel has no transparent huge pages");
    }
    T_EQ(krn_pages_new(8 * MIB, 0, &p), 0);
    T_TRUE(holds(&p));
    huge = smaps_kb(p.at, "AnonHugePages:");
    krn_pages_free(&p);
    if (huge == 0) {
        T_SKIP("no huge page was free");
    }
    T_LE(2048, huge);
}

/* Of what lies side by side in huge pages, one half is asked for on a node: they stay whole. */
TEST(placing_breaks_no_huge_page)
{
    struct krn_store s;
    long before, after;
    int r;

    if (!has_huge_pages()) {
        T_SKIP("this kernel has no transparent huge pages");
    }
    krn_store_init(&s, 8 * MIB, 0);
    T_TRUE(s.at != NULL);
    memset(s.at, 1, s.bytes);
    before = smaps_kb(s.at, "AnonHugePages:");
    r = krn_store_near(&s, s.at + 100, s.at + 5 * MIB, 1);
    after = smaps_kb(s.at, "AnonHugePages:") + smaps_kb(s.at + s.bytes - 1, "AnonHugePages:");
    krn_store_deinit(&s);
    if (before < 8192 || r < 0) {
        T_SKIP("no huge pages were free, or memory cannot be placed here");
    }
    T_LE(8192, after); /* more where the two halves are one mapping again */
}

/* The policy of the page at @at; -1: cannot be asked. */
static int policy(void *at, unsigned long *ret_nodes)
{
    unsigned long nodes[16] = {0}; /* as many as the kernel may have */
    int mode = -1;

    if (syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof(nodes), at, MPOL_F_ADDR) < 0) {
        return -1;
    }
    *ret_nodes = nodes[0];
    return mode;
}

TEST(nodes_are_asked_for)
{
    struct krn_pages p = {.at = NULL};
    unsigned long nodes = 0;
    int r;

    T_EQ(krn_pages_new(MIB, 0, &p), 0);
    T_TRUE(holds(&p));
    T_EQ(krn_pages_near(&p, 0), 0);
    r = krn_pages_near(&p, 1);
    if (r == -ENOSYS || r == -EPERM || policy(p.at, &nodes) < 0) {
        krn_pages_free(&p);
        T_SKIP("memory cannot be placed here");
    }
    T_EQ(r, 0);
    T_EQ(policy(p.at, &nodes), MPOL_PREFERRED);
    T_EQ(nodes, 1);
    T_EQ(((uint8_t *)p.at)[MIB - 1], 0x5a);
    T_LT(krn_pages_near(&p, (uint64_t)1 << 63), 0); /* a node that is not there */
    T_TRUE(holds(&p));
    krn_pages_free(&p);
    T_EQ(krn_pages_new(MIB, 1, &p), 0);
    T_EQ(policy(p.at, &nodes), MPOL_PREFERRED);
    krn_pages_free(&p);
    T_EQ(krn_pages_new(100, 1, &p), 0); /* of the heap: it is left where it is */
    T_EQ(krn_pages_near(&p, 1), 0);
    krn_pages_free(&p);
}

/* From here on this process may not place memory. */
static bool forbid_placing(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = base_array_count(code), .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int without_placing(void)
{
    struct krn_pages p = {.at = NULL};
    bool good;

    if (!forbid_placing()) {
        return 77;
    }
    if (krn_pages_new(3 * MIB, 1, &p) != 0) {
        return 1;
    }
    good = krn_pages_near(&p, 1) == -EPERM && holds(&p);
    krn_pages_free(&p);
    return good ? 0 : 1;
}

TEST(where_it_is_forbidden_memory_serves_as_well)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        _exit(without_placing());
    }
    T_TRUE(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        T_SKIP("no system call can be forbidden here");
    }
    T_EQ(WEXITSTATUS(status), 0);
}

TEST_MAIN()
