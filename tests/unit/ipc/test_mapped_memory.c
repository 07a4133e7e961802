/* SPDX-License-Identifier: Apache-2.0 */
/* Client memory: what is refused, what is counted. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/server/mapped_memory.h"
#include "tests/harness.h"

static int sealed(size_t bytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) {
        perror("memfd");
        exit(1);
    }
    return fd;
}

TEST(client_memory_is_checked_before_it_is_mapped)
{
    size_t total = 0;
    struct ipc_memory *memory = NULL;
    const char *text = NULL;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fds[2];
    static const struct {
        int seals;
        size_t bytes, said;
        enum ipc_status status;
        const char *why;
    } cases[] = {
        {0, 4096, 4096, IPC_INVALID_ARGUMENT, "sealed"},
        {F_SEAL_GROW, 4096, 4096, IPC_INVALID_ARGUMENT, "sealed"},
        {F_SEAL_SHRINK, 4096, 4096, IPC_INVALID_ARGUMENT, "sealed"},
        {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, 4096, 4096, IPC_INVALID_ARGUMENT, "writing"},
        {F_SEAL_SHRINK | F_SEAL_GROW, 4096, 8192, IPC_INVALID_ARGUMENT, "size"},
        {F_SEAL_SHRINK | F_SEAL_GROW, 8192, 4096, IPC_INVALID_ARGUMENT, "size"},
        {F_SEAL_SHRINK | F_SEAL_GROW, 4096, 0, IPC_INVALID_ARGUMENT, "size"},
        {F_SEAL_SHRINK | F_SEAL_GROW, 4096, SIZE_MAX, IPC_INVALID_ARGUMENT, "size"},
        {F_SEAL_SHRINK | F_SEAL_GROW, 65536, 65536, IPC_RESOURCE_EXHAUSTED, "too much"},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        int fd = sealed(cases[i].bytes, cases[i].seals);

        T_EQ(ipc_memory_map(fd, cases[i].said, &total, 32768, &text, &memory), cases[i].status);
        T_CONTAINS(text, cases[i].why);
        close(fd);
    }
    T_EQ(ipc_memory_map(file, 4096, &total, 32768, &text, &memory), IPC_INVALID_ARGUMENT);
    T_EQ(pipe2(fds, O_CLOEXEC), 0);
    T_EQ(ipc_memory_map(fds[0], 4096, &total, 32768, &text, &memory), IPC_INVALID_ARGUMENT);
    close(fds[0]);
    close(fds[1]);
    close(file);
    T_EQ(total, 0);
}

TEST(client_memory_is_counted_and_shared)
{
    size_t total = 0;
    struct ipc_memory *memory = NULL;
    const char *text = NULL;
    int fd = sealed(4096, F_SEAL_SHRINK | F_SEAL_GROW);
    uint8_t *mine = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    T_EQ(ipc_memory_map(fd, 4096, &total, 4096, &text, &memory), IPC_OK);
    T_EQ(total, 4096);
    close(fd);
    memory->map[100] = 7;
    T_EQ(mine[100], 7);
    memory->refs++;
    ipc_memory_unref(memory);
    T_EQ(total, 4096);
    T_TRUE(ipc_memory_unref(memory) == NULL);
    T_EQ(total, 0);
    munmap(mine, 4096);
}

static blkcnt_t blocks(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? st.st_blocks : -1;
}

TEST(a_pool_with_holes_is_refused)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct ipc_memory *memory = NULL;
    const char *text = "";
    size_t total = 0;

    T_EQ(ftruncate(fd, 1 << 20), 0);
    T_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    T_EQ(ipc_memory_map(fd, 1 << 20, &total, 1 << 20, &text, &memory), IPC_INVALID_ARGUMENT);
    T_CONTAINS(text, "posix_fallocate");
    T_EQ(posix_fallocate(fd, 0, 1 << 20), 0);
    T_EQ(ipc_memory_map(fd, 1 << 20, &total, 1 << 20, &text, &memory), IPC_OK);
    ipc_memory_unref(memory);
    close(fd);
}

/* Reading and writing where a hole was punched allocates nothing in the memfd, hurts no other pool,
 * and is remembered. */
TEST(a_hole_punched_later_costs_nothing)
{
    enum { POOLS = 130, BYTES = 64 << 10 }; /* more than a block of slots */
    static struct ipc_memory *memory[POOLS];
    const char *text = "";
    size_t total = 0;
    int fd[POOLS];

    if (ipc_pool_guard_start() < 0) {
        T_SKIP("this kernel does not let us use userfaultfd");
    }
    for (int i = 0; i < POOLS; i++) {
        fd[i] = sealed(BYTES, F_SEAL_SHRINK | F_SEAL_GROW);
        T_EQ(ipc_memory_map(fd[i], BYTES, &total, SIZE_MAX, &text, &memory[i]), IPC_OK);
    }
    for (int i = 0; i < POOLS; i += 3) {
        memory[i]->map[5] = 1;
        T_EQ(fallocate(fd[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES / 2), 0);
        T_TRUE(!ipc_memory_lost(memory[i]));
        for (int at = 0; at < BYTES; at++) {
            (void)((volatile uint8_t *)memory[i]->map)[at];
        }
        memory[i]->map[BYTES / 4] = 1;
        T_TRUE(ipc_memory_lost(memory[i]));
        T_EQ(blocks(fd[i]), BYTES / 2 / 512);
    }
    for (int i = 0; i < POOLS; i++) {
        T_EQ(ipc_memory_lost(memory[i]), i % 3 == 0);
        memory[i]->map[BYTES - 1] = 9; /* pages that are there are the client's as ever */
        ipc_memory_unref(memory[i]);
        close(fd[i]);
    }
    fd[0] = sealed(BYTES, F_SEAL_SHRINK | F_SEAL_GROW);
    T_EQ(ipc_memory_map(fd[0], BYTES, &total, SIZE_MAX, &text, &memory[0]), IPC_OK);
    T_TRUE(!ipc_memory_lost(memory[0])); /* in a slot that was lost */
    ipc_memory_unref(memory[0]);
    close(fd[0]);
    T_EQ(total, 0);
}

TEST_MAIN()
