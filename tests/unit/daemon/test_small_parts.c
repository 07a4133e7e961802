/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts: arguments, history, pools, who may change something, log limits. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base.h"
#include "daemon/args.h"
#include "daemon/control/control.h"
#include "daemon/control/json.h"
#include "daemon/frames/mapped_memory.h"
#include "daemon/plans/history.h"
#include "daemon/service/log.h"
#include "tests/harness.h"

TEST(model_names_from_arguments)
{
    static const struct {
        const char *text, *name, *file;
    } cases[] = {
        {"a=/x/y.onnx", "a", "/x/y.onnx"},  {"/x/y.onnx", "y", "/x/y.onnx"},
        {"y.v2.onnx", "y.v2", "y.v2.onnx"}, {"/x=1/y.onnx", "y", "/x=1/y.onnx"},
        {"noext", "noext", "noext"},        {"=x", "", "x"},
        {"/x/.onnx", ".onnx", "/x/.onnx"},  {"a=b=c", "a", "b=c"},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        char name[64];

        T_STR(dmn_args_model_name(cases[i].text, name, sizeof(name)), cases[i].file);
        T_STR(name, cases[i].name);
    }
}

TEST(history_keeps_the_newest)
{
    struct dmn_history h;
    json_t *list;

    T_EQ(dmn_history_init(&h, 4), 0);
    list = dmn_history_json(&h, NULL, 10);
    T_EQ(json_array_size(list), 0);
    json_decref(list);
    for (int i = 1; i <= 10; i++) {
        T_TRUE(dmn_history_add(&h, &(struct dmn_history_event){.model = i % 2 ? "odd" : "even",
                                                               .cause = DMN_CAUSE_REQUEST,
                                                               .origin = DMN_ORIGIN_EXACT,
                                                               .plan_after = "0-1@big",
                                                               .fps_before = -1,
                                                               .outcome = DMN_OUTCOME_SWITCHED}) !=
               NULL);
    }
    list = dmn_history_json(&h, NULL, 10);
    T_EQ(json_array_size(list), 4);
    T_EQ(json_integer_value(json_object_get(json_array_get(list, 0), "id")), 7);
    T_EQ(json_integer_value(json_object_get(json_array_get(list, 3), "id")), 10);
    T_TRUE(json_is_null(json_object_get(json_array_get(list, 0), "fps_before")));
    T_TRUE(json_is_null(json_object_get(json_array_get(list, 0), "plan_before")));
    json_decref(list);
    list = dmn_history_json(&h, "odd", 1);
    T_EQ(json_array_size(list), 1);
    T_EQ(json_integer_value(json_object_get(json_array_get(list, 0), "id")), 9);
    json_decref(list);
    dmn_history_deinit(&h);
}

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
    struct dmn_account account = {0};
    struct dmn_client_memory *memory = NULL;
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

        T_EQ(dmn_client_memory_map(fd, cases[i].said, &account, 32768, &text, &memory),
             cases[i].status);
        T_CONTAINS(text, cases[i].why);
        close(fd);
    }
    T_EQ(dmn_client_memory_map(file, 4096, &account, 32768, &text, &memory), IPC_INVALID_ARGUMENT);
    T_EQ(pipe2(fds, O_CLOEXEC), 0);
    T_EQ(dmn_client_memory_map(fds[0], 4096, &account, 32768, &text, &memory),
         IPC_INVALID_ARGUMENT);
    close(fds[0]);
    close(fds[1]);
    close(file);
    T_EQ(account.memory_bytes, 0);
}

TEST(client_memory_is_counted_and_shared)
{
    struct dmn_account account = {0};
    struct dmn_client_memory *memory = NULL;
    const char *text = NULL;
    int fd = sealed(4096, F_SEAL_SHRINK | F_SEAL_GROW);
    uint8_t *mine = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    T_EQ(dmn_client_memory_map(fd, 4096, &account, 4096, &text, &memory), IPC_OK);
    T_EQ(account.memory_bytes, 4096);
    close(fd);
    memory->map[100] = 7;
    T_EQ(mine[100], 7);
    memory->refs++;
    dmn_client_memory_unref(memory);
    T_EQ(account.memory_bytes, 4096);
    T_TRUE(dmn_client_memory_unref(memory) == NULL);
    T_EQ(account.memory_bytes, 0);
    munmap(mine, 4096);
}

TEST(who_may_change_something)
{
    T_TRUE(dmn_control_may_change(0, 0, ""));
    T_TRUE(dmn_control_may_change(geteuid(), 12345, ""));
    T_TRUE(!dmn_control_may_change(4000000, 4000000, ""));
    T_TRUE(!dmn_control_may_change(4000000, 0, ""));
    T_TRUE(!dmn_control_may_change(4000000, 4000000, "no-such-group"));
    T_TRUE(dmn_control_may_change(4000000, 0, "root")); /* its primary group is the group */
}

TEST(log_limit_counts_what_it_holds_back)
{
    struct dmn_log_limit limit = {0};
    uint64_t now = 1000;
    int allowed = 0;

    for (int i = 0; i < 100; i++) {
        allowed += dmn_log_allowed(&limit, now + (uint64_t)i);
    }
    T_EQ(allowed, 10);
    T_EQ(limit.suppressed, 90);
    T_TRUE(dmn_log_allowed(&limit, now + 11 * BASE_NS_PER_S));
    T_EQ(limit.suppressed, 0);
}

TEST_MAIN()
