/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/process_memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>

#include "base/base.h"
#include "daemon/machine/cgroup_limits.h"

#define STEP_BYTES (16ull << 20)
#define FREE_PART 4u      /* of what is free, one part in so many for frames of batches */
#define STATUS_BYTES 4096 /* of /proc/self/status, at most */

/* Return: bytes; 0: unknown. */
static uint64_t available(const char *root)
{
    base_cleanup(dmn_file_close) FILE *f = dmn_file_in(root, "/proc/meminfo", "");
    unsigned long long kib;
    char line[128];

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            return kib << 10;
        }
    }
    return 0;
}

uint64_t dmn_memory_room(const char *root, uint64_t resident_bytes)
{
    uint64_t free_bytes = available(root), limit = dmn_cgroup_limit(root, DMN_CGROUP_MEMORY);
    uint64_t bytes = free_bytes ? base_min(free_bytes + resident_bytes, limit) : limit;

    return bytes == UINT64_MAX ? 0 : bytes / STEP_BYTES * STEP_BYTES;
}

uint64_t dmn_memory_free(void)
{
    uint64_t taken = dmn_process_memory().resident_bytes, room = dmn_memory_room("", taken);

    return room == 0 ? UINT64_MAX : room - base_min(taken, room);
}

size_t dmn_memory_batch(uint64_t free_bytes, uint64_t frame_bytes, size_t teams, size_t most)
{
    double each = 2.0 * (double)teams * (double)frame_bytes, may = (double)(free_bytes / FREE_PART);
    size_t batch = most;

    while (batch > 1 && free_bytes != UINT64_MAX && each * (double)batch > may) {
        batch /= 2;
    }
    return batch;
}

static uint64_t status_bytes(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoull(at + strlen(key), NULL, 10) << 10 : 0;
}

struct dmn_process_memory dmn_process_memory(void)
{
    base_cleanup(dmn_file_close) FILE *f = dmn_file_in("", "/proc/self/status", "");
    char text[STATUS_BYTES];

    text[f ? fread(text, 1, sizeof(text) - 1, f) : 0] = '\0';
    return (struct dmn_process_memory){
        .resident_bytes = status_bytes(text, "VmRSS:"),
        .peak_bytes = status_bytes(text, "VmHWM:"),
    };
}

/* Larger blocks are separate mappings and return to the system when freed. Without a fixed limit
 * the allocator raises it to the largest block freed, and keeps smaller ones. */
#define MAPPED_FROM_BYTES (128 << 10)
#define HEAPS_MAX 2

void dmn_memory_setup(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, MAPPED_FROM_BYTES);
    (void)mallopt(M_ARENA_MAX, HEAPS_MAX);
}

/* Return: relocation wrote addresses into its code, which would be lost with the pages. */
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

/* Pages of code and constants are clean; reading them brings them back from the file. */
static int drop_code(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

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
