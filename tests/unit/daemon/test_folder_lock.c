/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a folder, and what it does to the files of the state directory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/config/state_file.h"
#include "daemon/service/folders.h"
#include "tests/harness.h"

static char folder[] = "/tmp/piped-lock-XXXXXX";

static const char *at(const char *name)
{
    static char path[2][64];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
    return path[turn];
}

/* A process that holds the lock until its end is asked for. */
struct holder {
    pid_t pid;
    int end;
};

static void hold(const char *name, struct holder *ret)
{
    int told[2], end[2], fd = -1;
    struct holder h = {0};
    pid_t unused;
    char byte = 0;

    T_EQ(pipe(told), 0);
    T_EQ(pipe(end), 0);
    h.pid = fork();
    if (h.pid == 0) {
        close(end[1]);
        byte = dmn_folder_lock(folder, name, &fd, &unused) == 0;
        (void)!write(told[1], &byte, 1);
        (void)!read(end[0], &byte, 1);
        _exit(0);
    }
    T_EQ(read(told[0], &byte, 1), 1);
    T_EQ(byte, 1);
    close(told[0]);
    close(told[1]);
    close(end[0]);
    h.end = end[1];
    *ret = h;
}

static void release(struct holder h)
{
    close(h.end);
    T_EQ(waitpid(h.pid, NULL, 0), h.pid);
}

TEST(one_process_at_a_time)
{
    struct holder h = {0};
    pid_t holder = 1;
    int fd = -1;

    T_TRUE(mkdtemp(folder) != NULL);
    hold("a.lock", &h);
    T_EQ(dmn_folder_lock(folder, "a.lock", &fd, &holder), -EADDRINUSE);
    T_EQ(holder, h.pid);
    T_EQ(fd, -1);
    release(h);
    T_EQ(dmn_folder_lock(folder, "a.lock", &fd, &holder), 0);
    T_LE(0, fd);
    T_EQ(dmn_folder_lock(folder, "a.lock", &fd, &holder), 0); /* it has it already */
    close(fd);
}

TEST(a_file_that_is_gone_locks_nothing)
{
    struct holder h = {0};
    pid_t holder;
    int fd = -1, before;

    T_EQ(dmn_folder_lock(folder, "a.lock", &fd, &holder), 0);
    before = fd;
    T_EQ(unlink(at("a.lock")), 0);
    hold("a.lock", &h);
    T_EQ(dmn_folder_lock(folder, "a.lock", &fd, &holder), -EADDRINUSE);
    T_EQ(fd, before);
    release(h);
    T_EQ(dmn_folder_lock(folder, "a.lock", &fd, &holder), 0);
    close(fd);
    fd = -1;
    T_EQ(unlink(at("a.lock")), 0);
    T_EQ(symlink("elsewhere", at("a.lock")), 0);
    T_EQ(dmn_folder_lock(folder, "a.lock", &fd, &holder), -ELOOP);
    T_EQ(unlink(at("a.lock")), 0);
}

TEST(nothing_is_written_in_a_directory_that_another_keeps)
{
    struct holder h = {0};
    char path[DMN_STATE_PATH_MAX];
    json_t *root = NULL;
    pid_t holder;

    hold("state.lock", &h);
    T_TRUE(dmn_state_file_path(DMN_STATE_SAVED, folder, "", "", path));
    T_TRUE(!dmn_state_taken());
    T_EQ(dmn_state_lock(folder, &holder), -EADDRINUSE);
    T_EQ(holder, h.pid);
    T_TRUE(dmn_state_taken());
    T_EQ(dmn_state_file_write(DMN_STATE_SAVED, path, NULL, json_object()), -EBUSY);
    T_TRUE(access(path, F_OK) < 0);
    release(h);
    T_EQ(dmn_state_lock(folder, &holder), 0);
    T_EQ(dmn_state_file_write(DMN_STATE_SAVED, path, NULL, json_object()), 0);
    T_EQ(dmn_state_file_read(DMN_STATE_SAVED, path, NULL, &root), 0);
    json_decref(root);
    T_EQ(dmn_state_lock(folder, &holder), 0);
    dmn_state_unlock();
    T_STR(dmn_state_why(-EBUSY), "another daemon keeps the state directory");
    T_EQ(unlink(path), 0);
    T_EQ(unlink(at("state.lock")), 0);
    T_EQ(rmdir(folder), 0);
}

TEST_MAIN()
