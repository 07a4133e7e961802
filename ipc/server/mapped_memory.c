/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/server/mapped_memory.h"

#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define SLOTS 64u
#define SPARE_BYTES ((size_t)4 << 20)

struct ipc_guarded {
    _Atomic uintptr_t begin; /* 0: a free slot. Written by the thread that serves */
    _Atomic size_t bytes;
    _Atomic bool lost; /* written by handlers; cleared while the slot is free */
};

/* Blocks are added in front and never freed, because a handler may walk them at any time. */
struct block {
    struct block *next;
    struct ipc_guarded slots[SLOTS];
};

static struct {
    bool running;
    int fd;
    int spare; /* memfd of SPARE_BYTES */
    struct sigaction before;
    _Atomic(struct block *) blocks;
} guard;

static struct ipc_guarded *find(uintptr_t at)
{
    for (struct block *b = atomic_load(&guard.blocks); b; b = b->next) {
        for (size_t i = 0; i < SLOTS; i++) {
            uintptr_t begin = atomic_load(&b->slots[i].begin);

            if (begin && at >= begin && at - begin < atomic_load(&b->slots[i].bytes)) {
                return &b->slots[i];
            }
        }
    }
    return NULL;
}

/* Puts the spare memory in place of all of it, again and again. Some kernels give each page that is
 * read a page of its own, so fresh anonymous memory would cost as much as the pool. */
static bool replace(uintptr_t begin, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += SPARE_BYTES) {
        if (mmap((void *)(begin + at), base_min(bytes - at, SPARE_BYTES), PROT_READ | PROT_WRITE,
                 MAP_FIXED | MAP_SHARED, guard.spare, 0) == MAP_FAILED) {
            return false;
        }
    }
    return true;
}

/* Two threads may do this at once for one pool, to the same end. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    struct ipc_guarded *g = find((uintptr_t)info->si_addr);
    int error = errno;

    if (g) {
        atomic_store(&g->lost, true);
    }
    if (!g || !replace(atomic_load(&g->begin), atomic_load(&g->bytes))) {
        sigaction(number, &guard.before, NULL); /* not ours: it faults again */
    }
    errno = error;
}

static int start(void)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM};
    struct sigaction handler = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int error;

    guard.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (guard.fd < 0) {
        return -errno;
    }
    guard.spare = memfd_create("piped-spare", MFD_CLOEXEC);
    if (guard.spare >= 0 && ftruncate(guard.spare, SPARE_BYTES) == 0 &&
        ioctl(guard.fd, UFFDIO_API, &api) == 0 && sigaction(SIGBUS, &handler, &guard.before) == 0) {
        return 0;
    }
    error = -errno;
    close(guard.fd);
    if (guard.spare >= 0) {
        close(guard.spare);
    }
    return error;
}

int ipc_pool_guard_start(void)
{
    int error = guard.running ? 0 : start();

    guard.running |= error == 0;
    return error;
}

static struct ipc_guarded *free_slot(void)
{
    struct block *b;

    for (b = atomic_load(&guard.blocks); b; b = b->next) {
        for (size_t i = 0; i < SLOTS; i++) {
            if (!atomic_load(&b->slots[i].begin)) {
                return &b->slots[i];
            }
        }
    }
    b = calloc(1, sizeof(*b));
    if (!b) {
        return NULL;
    }
    b->next = atomic_load(&guard.blocks);
    atomic_store(&guard.blocks, b);
    return &b->slots[0];
}

/* Guards the mapping of a memfd, whole pages. @ret: NULL: pools are not guarded. Return: 0; else
 * -errno. */
static int guard_add(void *map, size_t bytes, struct ipc_guarded **ret)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = base_align_up(bytes, page);
    struct uffdio_register r = {.range = {.start = (uintptr_t)map, .len = whole},
                                .mode = UFFDIO_REGISTER_MODE_MISSING};
    struct ipc_guarded *g;

    *ret = NULL;
    if (!guard.running) {
        return 0;
    }
    g = free_slot();
    if (!g) {
        return -ENOMEM;
    }
    if (ioctl(guard.fd, UFFDIO_REGISTER, &r) < 0) {
        return -errno;
    }
    atomic_store(&g->lost, false);
    atomic_store(&g->bytes, whole);
    atomic_store(&g->begin, (uintptr_t)map);
    *ret = g;
    return 0;
}

/* ---- the memory of a client ---- */

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
    if (guard_add(m->map, bytes, &m->guarded) < 0) {
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
        if (m->guarded) {
            atomic_store(&m->guarded->begin, 0);
        }
        *m->total -= m->bytes;
        free(m);
    }
    return NULL;
}

bool ipc_memory_lost(const struct ipc_memory *m)
{
    return m && m->guarded && atomic_load_explicit(&m->guarded->lost, memory_order_relaxed);
}
