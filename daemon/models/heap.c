/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/heap.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>

#include "base/base.h"

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
