/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory.h"

#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base.h"
#include "daemon/daemon.h"

#define SETTLED_NS (10 * BASE_NS_PER_S) /* a plan that serves that long stays for a while */
/* Larger pieces are mappings of their own and go back when they are freed. Without a fixed limit
 * the allocator raises it to the largest that was freed, and keeps those below. */
#define MAPPED_FROM_BYTES (128 << 10)
#define HEAPS_MAX 2

void dmn_memory_setup(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, MAPPED_FROM_BYTES);
    (void)mallopt(M_ARENA_MAX, HEAPS_MAX);
}

/* Were addresses written into its code when it was loaded? Those would be lost with the pages. */
static bool has_changed_code(const struct dl_phdr_info *info)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const ElfW(Dyn) *d = (const ElfW(Dyn) *)(info->dlpi_addr + h->p_vaddr);

        for (; h->p_type == PT_DYNAMIC && d->d_tag != DT_NULL; d++) {
            if (d->d_tag == DT_TEXTREL ||
                (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL) != 0)) {
                return true;
            }
        }
    }
    return false;
}

/* Pages of code and constants are clean and come back from the file when they are read. */
static int drop_code(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    (void)arg;
    for (size_t i = 0; i < info->dlpi_phnum && !has_changed_code(info); i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t first = base_align_up(info->dlpi_addr + h->p_vaddr, page);
        uintptr_t end = (info->dlpi_addr + h->p_vaddr + h->p_filesz) & ~(page - 1);

        if (h->p_type == PT_LOAD && !(h->p_flags & PF_W) && end > first) {
            (void)madvise((void *)first, end - first, MADV_DONTNEED);
        }
    }
    return 0;
}

void dmn_memory_trim(void)
{
    (void)malloc_trim(0);
    dl_iterate_phdr(drop_code, NULL);
}

void dmn_memory_settle(struct dmn_model *m, uint64_t now_ns)
{
    uint32_t epoch = pl_epoch(m->pipe);

    if (m->settling_epoch != epoch || m->retune || pl_switching(m->pipe)) {
        m->settling_epoch = epoch;
        m->settling_ns = now_ns;
    } else if (m->settled_epoch != epoch && now_ns - m->settling_ns >= SETTLED_NS) {
        m->settled_epoch = epoch;
        krn_net_trim(m->net);
        (void)malloc_trim(0);
    }
}

struct totals {
    uint64_t weights, packed, arenas, resident, peak;
};

static uint64_t status_bytes(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoull(at + strlen(key), NULL, 10) << 10 : 0;
}

static struct totals totals(const struct dmn_daemon *d)
{
    struct totals t = {0};
    FILE *f = fopen("/proc/self/status", "re");
    char text[4096];
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

    text[n] = '\0';
    if (f) {
        fclose(f);
    }
    t.resident = status_bytes(text, "VmRSS:");
    t.peak = status_bytes(text, "VmHWM:");
    for (const struct dmn_model *m = d->models; m; m = m->next) {
        t.weights += m->model->weight_bytes;
        t.packed += krn_net_packed_bytes(m->net);
        t.arenas += pl_arena_bytes(m->pipe);
    }
    return t;
}

static json_t *known(uint64_t bytes)
{
    return bytes ? json_integer((json_int_t)bytes) : json_null();
}

json_t *dmn_memory_json(const struct dmn_daemon *d)
{
    struct totals t = totals(d);

    return json_pack("{s:o, s:o, s:I, s:I, s:I}", "resident_bytes", known(t.resident), "peak_bytes",
                     known(t.peak), "weight_bytes", (json_int_t)t.weights, "packed_bytes",
                     (json_int_t)t.packed, "arena_bytes", (json_int_t)t.arenas);
}

void dmn_memory_metrics(FILE *to, const struct dmn_daemon *d)
{
    struct totals t = totals(d);

    fprintf(to,
            "# HELP piped_resident_bytes Memory of the process, files' pages included.\n"
            "# TYPE piped_resident_bytes gauge\npiped_resident_bytes %llu\n"
            "# HELP piped_packed_bytes Weights as they are packed.\n"
            "# TYPE piped_packed_bytes gauge\npiped_packed_bytes %llu\n"
            "# HELP piped_arena_bytes Arenas that frames were ever in.\n"
            "# TYPE piped_arena_bytes gauge\npiped_arena_bytes %llu\n",
            (unsigned long long)t.resident, (unsigned long long)t.packed,
            (unsigned long long)t.arenas);
}
