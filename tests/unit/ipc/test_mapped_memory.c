/* SPDX-License-Identifier: Apache-2.0 */
/* Client memory: what is refused, what is counted. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc/mapped_memory.h"
#include "tests/harness.h"

static int sealed(size_t bytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) {
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

TEST_MAIN()
