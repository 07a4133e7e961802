/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets and their files: permissions, files of others, sockets made again, clients. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc/listen.h"
#include "tests/harness.h"

static char folder[] = "/tmp/piped-listen-XXXXXX";
static char path[64];

static int connect_to(const char *to)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", to);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void make_folder(void)
{
    if (!path[0]) {
        T_TRUE(mkdtemp(folder) != NULL);
        snprintf(path, sizeof(path), "%s/s.sock", folder);
    }
}

static void take(void *ctx, int client, const struct ucred *peer)
{
    int *count = ctx;

    *count += peer->pid == getpid() && peer->uid == geteuid();
    close(client);
}

TEST(the_mode_is_as_asked_whatever_the_umask_is)
{
    static const mode_t modes[] = {0660, 0606, 0, 0777};
    mode_t before = umask(0777);
    struct ipc_socket_file f = {0};
    struct stat st;

    make_folder();
    for (int i = 0; i < 4; i++) {
        int fd = ipc_listen(path, modes[i], IPC_NO_GROUP, &f);

        T_LE(0, fd);
        T_EQ(lstat(path, &st), 0);
        T_EQ(st.st_mode & 07777, modes[i]);
        T_TRUE(ipc_socket_file_there(&f));
        ipc_socket_file_remove(&f);
        T_TRUE(!f.path && access(path, F_OK) < 0);
        close(fd);
    }
    umask(before);
}

TEST(only_our_own_file_is_removed)
{
    struct ipc_socket_file mine = {0}, theirs = {0};
    int a, b;

    make_folder();
    a = ipc_listen(path, 0600, IPC_NO_GROUP, &mine);
    T_EQ(ipc_listen(path, 0600, IPC_NO_GROUP, &theirs), -EADDRINUSE);
    T_EQ(unlink(path), 0);
    T_TRUE(!ipc_socket_file_there(&mine));
    b = ipc_listen(path, 0600, IPC_NO_GROUP, &theirs);
    T_LE(0, b);
    T_TRUE(!ipc_socket_file_there(&mine) && ipc_socket_file_there(&theirs));
    ipc_socket_file_remove(&mine);
    T_EQ(access(path, F_OK), 0);
    ipc_socket_file_remove(&theirs);
    T_TRUE(access(path, F_OK) < 0);
    ipc_socket_file_remove(&theirs); /* again: nothing */
    T_TRUE(ipc_socket_file_there(&theirs));
    close(a);
    close(b);
}

TEST(what_is_in_the_way_is_replaced_only_if_stale)
{
    struct ipc_socket_file f = {0};
    FILE *file;
    int fd;

    make_folder();
    fd = ipc_listen(path, 0600, IPC_NO_GROUP, &f);
    close(fd); /* as a crash: the file is left */
    free(f.path);
    fd = ipc_listen(path, 0600, IPC_NO_GROUP, &f);
    T_LE(0, fd);
    ipc_socket_file_remove(&f);
    close(fd);
    file = fopen(path, "w");
    T_TRUE(file != NULL);
    fclose(file);
    T_EQ(ipc_listen(path, 0600, IPC_NO_GROUP, &f), -EEXIST);
    T_EQ(unlink(path), 0);
    T_EQ(ipc_listen("/nonexistent/s.sock", 0600, IPC_NO_GROUP, &f), -ENOENT);
}

TEST(a_socket_made_again_loses_no_client)
{
    struct ipc_socket_file f = {0}, other = {0};
    int fd, by, early[3], late, count = 0;
    struct ucred peer;

    make_folder();
    fd = ipc_listen(path, 0600, IPC_NO_GROUP, &f);
    for (int i = 0; i < 3; i++) {
        early[i] = connect_to(path);
        T_LE(0, early[i]);
    }
    T_EQ(unlink(path), 0);
    by = ipc_listen(path, 0600, IPC_NO_GROUP, &other);
    T_EQ(ipc_listen_again(fd, &f, 0600, IPC_NO_GROUP, take, &count), -EADDRINUSE);
    T_EQ(count, 0);
    T_TRUE(!ipc_socket_file_there(&f));
    ipc_socket_file_remove(&other);
    close(by);
    T_EQ(ipc_listen_again(fd, &f, 0600, IPC_NO_GROUP, take, &count), 0);
    T_EQ(count, 3);
    T_TRUE(ipc_socket_file_there(&f));
    late = connect_to(path);
    T_EQ(ipc_accept(fd, &by, &peer), 0);
    close(by);
    for (int i = 0; i < 3; i++) {
        close(early[i]);
    }
    close(late);
    ipc_socket_file_remove(&f);
    close(fd);
}

TEST(clients_wait_while_no_descriptor_is_free)
{
    struct ipc_socket_file f = {0};
    struct rlimit limit, none;
    struct ucred peer;
    int fd, client, accepted;

    make_folder();
    fd = ipc_listen(path, 0600, IPC_NO_GROUP, &f);
    client = connect_to(path);
    T_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)client + 1; /* the lowest that was free */
    T_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    accepted = ipc_accept(fd, &accepted, &peer);
    T_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    T_EQ(accepted, -EMFILE);
    T_EQ(ipc_accept(fd, &accepted, &peer), 0);
    T_EQ(peer.pid, getpid());
    close(accepted);
    T_EQ(ipc_accept(fd, &accepted, &peer), IPC_E_NOBODY);
    T_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    accepted = ipc_accept(fd, &accepted, &peer); /* the kernel says EMFILE all the same */
    T_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    T_EQ(accepted, IPC_E_NOBODY);
    close(client);
    ipc_socket_file_remove(&f);
    close(fd);
}

TEST(groups_are_found_and_judged)
{
    gid_t group = 7;

    T_EQ(ipc_group_find("", &group), 0);
    T_EQ(group, IPC_NO_GROUP);
    T_EQ(ipc_group_allowed(group), 0);
    T_EQ(ipc_group_find("no-such-group-here", &group), -ESRCH);
    T_EQ(ipc_group_allowed(getegid()), 0);
    if (ipc_group_find("root", &group) == 0) {
        T_EQ(group, 0);
        T_EQ(ipc_group_allowed(0), geteuid() == 0 || getegid() == 0 ? 0 : -EPERM);
    }
    if (path[0]) {
        rmdir(folder);
    }
}

TEST_MAIN()
