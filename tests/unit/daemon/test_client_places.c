/* SPDX-License-Identifier: Apache-2.0 */
/* Places of a socket, who may change something, and a control socket while memory is short. */
#include <pwd.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"
#include "daemon/control/methods.h"
#include "daemon/service/users.h"
#include "ipc/listen.h"
#include "tests/harness.h"

#define NO_USER 4000000u

static bool no_memory;
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    return no_memory ? NULL : __real_calloc(count, bytes);
}

static bool has_link_user;
int __wrap_getpwnam_r(const char *name, struct passwd *user, char *entry, size_t bytes,
                      struct passwd **ret);
int __wrap_getpwnam_r(const char *name, struct passwd *user, char *entry, size_t bytes,
                      struct passwd **ret)
{
    bool found = has_link_user && strcmp(name, "piped-link") == 0;

    user->pw_uid = NO_USER;
    *ret = found ? user : NULL;
    return 0;
}

TEST(places_are_kept)
{
    const struct ipc_places p = {.most = 4, .of_user = 2, .kept = 1};

    T_EQ(ipc_place_for(&p, 0, 0, false), IPC_PLACE_FREE);
    T_EQ(ipc_place_for(&p, 2, 2, false), IPC_PLACE_NONE_OF_USER);
    T_EQ(ipc_place_for(&p, 3, 1, false), IPC_PLACE_FREE);
    T_EQ(ipc_place_for(&p, 4, 0, false), IPC_PLACE_NONE);
    T_EQ(ipc_place_for(&p, 4, 4, true), IPC_PLACE_FREE);
    T_EQ(ipc_place_for(&p, 5, 0, true), IPC_PLACE_NONE);
    T_EQ(ipc_place_for(&p, 9, 9, false), IPC_PLACE_NONE_OF_USER); /* after a reload */
}

TEST(who_may_change_something)
{
    struct dmn_users nobody, root;
    struct ucred other = {.uid = NO_USER, .gid = NO_USER};
    int fds[2];

    T_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    dmn_users_look_up("no-such-group", &nobody);
    T_TRUE(!nobody.has_admin);
    dmn_users_look_up("", &nobody);
    T_TRUE(!nobody.has_admin);
    dmn_users_look_up("root", &root);
    T_TRUE(root.has_admin);
    T_EQ(root.admin, 0);
    T_TRUE(dmn_users_may_change(&nobody, &(struct ucred){.uid = 0}, -1));
    T_TRUE(dmn_users_may_change(&nobody, &(struct ucred){.uid = geteuid(), .gid = 12345}, -1));
    T_TRUE(!dmn_users_may_change(&nobody, &other, -1));
    T_TRUE(!dmn_users_may_change(&nobody, &(struct ucred){.uid = NO_USER, .gid = 0}, -1));
    T_TRUE(!dmn_users_may_change(&root, &other, -1));
    T_TRUE(dmn_users_may_change(&root, &(struct ucred){.uid = NO_USER, .gid = 0}, -1));
    T_TRUE(!dmn_users_keep_place(&nobody, NO_USER));
    T_TRUE(dmn_users_keep_place(&nobody, 0));
    T_TRUE(dmn_users_keep_place(&(struct dmn_users){.has_link = true, .link = NO_USER}, NO_USER));
    close(fds[0]);
    close(fds[1]);
}

struct fixture {
    uv_loop_t loop;
    struct dmn_config *config;
    struct dmn_machine machine;
    struct dmn_users users;
    struct dmn_loop_turns turns;
    struct dmn_control control;
    char path[64];
};

static void set_up(struct fixture *f)
{
    char error[DMN_CONFIG_ERROR_MAX];
    struct ipc_socket_file file = {0};
    int fd;

    memset(f, 0, sizeof(*f));
    T_EQ(dmn_config_load(NULL, false, error, &f->config), 0);
    T_EQ(uv_loop_init(&f->loop), 0);
    T_EQ(dmn_work_new(&f->loop, "test", 1, false, &f->machine.awaited), 0);
    f->machine.loop = &f->loop;
    f->machine.config = &f->config;
    f->control.machine = &f->machine;
    f->control.users = &f->users;
    dmn_loop_turns_init(&f->turns);
    f->control.turns = &f->turns;
    snprintf(f->path, sizeof(f->path), "/tmp/piped-places-%d.sock", (int)getpid());
    fd = ipc_listen(f->path, 0600, IPC_NO_GROUP, &file);
    T_TRUE(fd >= 0);
    T_EQ(dmn_control_start(&f->control, fd, &file), 0);
}

static void take_down(struct fixture *f)
{
    dmn_control_stop_accepting(&f->control);
    dmn_control_close_all(&f->control);
    dmn_work_stop(f->machine.awaited);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(&f->loop), 0);
    dmn_work_free(f->machine.awaited);
    dmn_loop_turns_deinit(&f->turns);
    dmn_config_free(f->config);
}

static void turn(struct fixture *f, uv_run_mode mode)
{
    uv_run(&f->loop, dmn_loop_may_wait(&f->turns) == 0 ? UV_RUN_NOWAIT : mode);
    dmn_loop_turn(&f->turns);
}

static int client(const struct fixture *f)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(to.sun_path, f->path, sizeof(f->path));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        base_close_fd(&fd);
    }
    return fd;
}

/* Return: bytes that the client gets: 0 is the end. */
static ssize_t wait_for(struct fixture *f, int fd)
{
    char bytes[256];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) < 0 && errno == EAGAIN) {
        turn(f, UV_RUN_ONCE);
    }
    return n;
}

TEST(a_control_socket_serves_again_after_memory_was_short)
{
    static const char call[] = "{\"method\":\"a.b\"}";
    struct fixture f;
    int refused, served;

    set_up(&f);
    refused = client(&f);
    T_TRUE(refused >= 0);
    no_memory = true;
    while (f.control.acceptor.open && recv(refused, &(char){0}, 1, MSG_DONTWAIT) < 0) {
        turn(&f, UV_RUN_NOWAIT);
    }
    no_memory = false;
    served = client(&f);
    T_TRUE(served >= 0);
    T_EQ(send(served, call, sizeof(call), MSG_NOSIGNAL), sizeof(call));
    T_TRUE(wait_for(&f, served) > 0);
    close(refused);
    close(served);
    take_down(&f);
}

static int dispatched;
static void dispatch(struct dmn_call *c)
{
    dispatched++;
}

/* A package that is installed later makes the user. */
TEST(the_user_of_links_is_found_when_it_calls)
{
    struct dmn_control_conn conn = {.fd_count = 0};
    struct dmn_call c = {.conn = &conn};
    struct fixture f;

    set_up(&f);
    c.control = &f.control;
    dispatched = 0;
    has_link_user = false;
    T_TRUE(dmn_link_search(&c, dispatch));
    while (dispatched == 0) {
        turn(&f, UV_RUN_ONCE);
    }
    T_TRUE(!dmn_users_is_link(&f.users, NO_USER));
    T_TRUE(!dmn_link_search(&c, dispatch)); /* it was asked just now */
    f.control.link_search.again_ns = 0;
    has_link_user = true;
    T_TRUE(dmn_link_search(&c, dispatch));
    while (dispatched == 1) {
        turn(&f, UV_RUN_ONCE);
    }
    T_TRUE(dmn_users_is_link(&f.users, NO_USER));
    f.control.link_search.again_ns = 0;
    T_TRUE(!dmn_link_search(&c, dispatch)); /* nothing is left to ask */
    f.users.has_link = false;
    dmn_work_stop(f.machine.awaited); /* as while the daemon ends */
    T_TRUE(dmn_link_search(&c, dispatch));
    T_EQ(dispatched, 3);
    take_down(&f);
}

TEST_MAIN()
