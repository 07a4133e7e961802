/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base.h"
#include "daemon/frames.h"

/* Only a memfd can be sealed, so seals also tell that no file system of the client's is behind it
 * that could stall a page fault; hugetlbfs is refused because its faults may raise SIGBUS. */
enum ipc_status dmn_pool_new(int fd, uint64_t bytes, struct dmn_account *account,
                             size_t account_max, const char **ret_text, struct dmn_pool **ret)
{
    const int needed = F_SEAL_SHRINK | F_SEAL_GROW;
    struct dmn_pool *p;
    struct statfs fs;
    struct stat st;
    size_t total;
    int seals;

    if (bytes == 0 || bytes > IPC_POOL_BYTES_MAX) {
        *ret_text = "the pool's size is 0 or above the limit";
        return IPC_INVALID_ARGUMENT;
    }
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & needed) != needed) {
        *ret_text = "the pool is no memfd sealed with F_SEAL_SHRINK and F_SEAL_GROW";
        return IPC_INVALID_ARGUMENT;
    }
    if (seals & F_SEAL_WRITE) {
        *ret_text = "the pool is sealed against writing, answers could not be written";
        return IPC_INVALID_ARGUMENT;
    }
    if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0) {
        *ret_text = "the pool is no ordinary memfd";
        return IPC_INVALID_ARGUMENT;
    }
    if (st.st_size < 0 || (uint64_t)st.st_size != bytes) {
        *ret_text = "the memfd has another size than POOL says";
        return IPC_INVALID_ARGUMENT;
    }
    if (!base_add(account->pool_bytes, bytes, &total) || total > account_max) {
        *ret_text = "too much pool memory of this user";
        return IPC_RESOURCE_EXHAUSTED;
    }
    p = calloc(1, sizeof(*p));
    if (!p) {
        *ret_text = "out of memory";
        return IPC_RESOURCE_EXHAUSTED;
    }
    p->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p->map == MAP_FAILED) {
        free(p);
        *ret_text = "the pool cannot be mapped for reading and writing";
        return IPC_INVALID_ARGUMENT;
    }
    p->refs = 1;
    p->bytes = bytes;
    p->account = account;
    account->pool_bytes = total;
    *ret = p;
    return IPC_OK;
}

struct dmn_pool *dmn_pool_unref(struct dmn_pool *p)
{
    if (p && --p->refs == 0) {
        munmap(p->map, p->bytes);
        p->account->pool_bytes -= p->bytes;
        free(p);
    }
    return NULL;
}
