/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "base/base.h"
#include "ipc/server/mapped_memory.h"

/* Only a memfd can be sealed, so seals also prove that no file system of the client's can stall a
 * page fault. hugetlbfs is refused because its faults may raise SIGBUS. */
enum ipc_status ipc_memory_map(int fd, uint64_t bytes, size_t *total, size_t total_max,
                               const char **ret_text, struct ipc_memory **ret)
{
    const int needed = F_SEAL_SHRINK | F_SEAL_GROW;
    struct ipc_memory *m;
    struct statfs fs;
    struct stat st;
    size_t sum;
    int seals;

    if (bytes == 0 || bytes > IPC_POOL_BYTES_MAX) {
        *ret_text = "the pool's size is 0 or above the limit";
        return IPC_INVALID_ARGUMENT;
    }
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & needed) != needed) {
        *ret_text = "the pool is not a memfd sealed with F_SEAL_SHRINK and F_SEAL_GROW";
        return IPC_INVALID_ARGUMENT;
    }
    if (seals & F_SEAL_WRITE) {
        *ret_text = "the pool is sealed against writing: answers cannot be written";
        return IPC_INVALID_ARGUMENT;
    }
    if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0) {
        *ret_text = "the pool is not an ordinary memfd";
        return IPC_INVALID_ARGUMENT;
    }
    if (st.st_size < 0 || (uint64_t)st.st_size != bytes) {
        *ret_text = "the size of the memfd is not the one that POOL says";
        return IPC_INVALID_ARGUMENT;
    }
    if (!base_add(*total, bytes, &sum) || sum > total_max) {
        *ret_text = "too much client memory";
        return IPC_RESOURCE_EXHAUSTED;
    }
    if ((uint64_t)st.st_blocks * 512 < bytes) {
        *ret_text = "the pool is not there in full; call posix_fallocate() before POOL";
        return IPC_INVALID_ARGUMENT;
    }
    m = calloc(1, sizeof(*m));
    if (!m) {
        *ret_text = "out of memory";
        return IPC_RESOURCE_EXHAUSTED;
    }
    m->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (m->map == MAP_FAILED) {
        free(m);
        *ret_text = "the pool cannot be mapped for reading and writing";
        return IPC_INVALID_ARGUMENT;
    }
    if (ipc_pool_guard_add(m->map, bytes, &m->guarded) < 0) {
        munmap(m->map, bytes);
        free(m);
        *ret_text = "the pool cannot be guarded: out of memory";
        return IPC_RESOURCE_EXHAUSTED;
    }
    m->refs = 1;
    m->bytes = bytes;
    m->total = total;
    *total = sum;
    *ret = m;
    return IPC_OK;
}

struct ipc_memory *ipc_memory_unref(struct ipc_memory *m)
{
    if (m && --m->refs == 0) {
        munmap(m->map, m->bytes);
        ipc_pool_guard_remove(m->guarded);
        *m->total -= m->bytes;
        free(m);
    }
    return NULL;
}
