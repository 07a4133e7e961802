/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/server/pool_guard.h"

#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/base.h"

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

int ipc_pool_guard_add(void *map, size_t bytes, struct ipc_guarded **ret)
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

void ipc_pool_guard_remove(struct ipc_guarded *g)
{
    if (g) {
        atomic_store(&g->begin, 0);
    }
}

bool ipc_pool_guard_lost(const struct ipc_guarded *g)
{
    return g && atomic_load_explicit(&g->lost, memory_order_relaxed);
}
