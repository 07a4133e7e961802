/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the control socket, before a daemon that is slow, hostile or gone. */
#include "ipc/control/control_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "ipc/listen.h"
#include "tests/harness.h"

#define BIG_BYTES (IPC_VARLINK_MESSAGE_MAX - 4096u) /* more than a socket takes at once */

static char folder[] = "/tmp/piped-control-XXXXXX";
static char path[64];
static struct ipc_socket_file file;
static int listening = -1;

/* Return: what the daemon has of a new connection; -1: there is none. */
static int begin(struct ipc_control *c)
{
    if (listening < 0 && mkdtemp(folder)) {
        snprintf(path, sizeof(path), "%s/c.sock", folder);
        listening = ipc_listen(path, 0600, IPC_NO_GROUP, &file);
    }
    *c = IPC_CONTROL_NULL;
    return ipc_control_connect(c, path, false) < 0 ? -1 : accept(listening, NULL, NULL);
}

static void end(struct ipc_control *c, int daemon)
{
    ipc_control_close(c);
    ipc_control_close(c);
    base_close_fd(&daemon);
}

static bool say(int daemon, const char *bytes, size_t count)
{
    return send(daemon, bytes, count, MSG_NOSIGNAL) == (ssize_t)count;
}

/* A literal with its NUL, and without. */
#define SAY(daemon, text) say(daemon, text, sizeof(text))
#define SAY_PART(daemon, text) say(daemon, text, sizeof(text) - 1)

/* Return: the number that the next reply has; -1: an error reply; else as ipc_control_next(), times
 * 1000. */
static int next(struct ipc_control *c)
{
    struct ipc_control_reply r;
    int rc = ipc_control_next(c, &r);

    if (rc == 0) {
        rc = r.error ? -1 : (int)json_integer_value(json_object_get(r.parameters, "n"));
        json_decref(r.message);
        return rc;
    }
    return 1000 * rc;
}

TEST(replies_in_any_pieces)
{
    static const char bytes[] = "{\"parameters\":{\"n\":1},\"continues\":true}\0"
                                "{\"error\":\"a.b.C\"}\0{\"parameters\":{\"n\":2}}";

    for (size_t piece = 1; piece <= sizeof(bytes); piece++) {
        struct ipc_control c;
        int daemon = begin(&c), got[3] = {0}, count = 0, n;

        T_LE(0, daemon);
        for (size_t i = 0; i < sizeof(bytes); i += piece) {
            T_TRUE(say(daemon, bytes + i, base_min(piece, sizeof(bytes) - i)));
            ipc_control_go(&c);
            T_TRUE(count > 0 || ipc_control_has_reply(&c) == (i + piece > strlen(bytes)));
            while ((n = next(&c)) < 1000 && count < 3) {
                got[count++] = n;
            }
            T_EQ(n, 1000 * IPC_CONTROL_E_NONE);
        }
        T_TRUE(count == 3 && got[0] == 1 && got[1] == -1 && got[2] == 2);
        T_TRUE(!ipc_control_has_reply(&c));
        end(&c, daemon);
    }
}

TEST(what_a_reply_says)
{
    static const struct {
        const char *text, *error;
        bool parameters, continues;
    } replies[] = {
        {"{}", NULL, false, false},
        {"{\"continues\":true}", NULL, false, true},
        {"{\"continues\":1,\"parameters\":{}}", NULL, true, false},
        {"{\"error\":\"a.B\",\"continues\":true}", "a.B", false, false},
        {"{\"error\":5,\"parameters\":{}}", "error", true, false},
        {"{\"error\":null}", "error", false, false},
    };
    struct ipc_control c;
    int daemon = begin(&c);

    for (size_t i = 0; i < base_array_count(replies); i++) {
        struct ipc_control_reply r;

        T_TRUE(say(daemon, replies[i].text, strlen(replies[i].text) + 1));
        T_EQ(ipc_control_wait(&c, 0, -1, &r), 0);
        T_STR(r.error ? r.error : "none", replies[i].error ? replies[i].error : "none");
        T_TRUE((r.parameters != NULL) == replies[i].parameters);
        T_EQ(r.continues, replies[i].continues);
        json_decref(r.message);
    }
    end(&c, daemon);
}

TEST(a_reply_without_end)
{
    static char bytes[4096];
    struct ipc_control c;
    int daemon = begin(&c), n = 0;

    memset(bytes, ' ', sizeof(bytes));
    T_TRUE(SAY(daemon, "{\"parameters\":{\"n\":7}}"));
    for (size_t i = 0; i <= IPC_VARLINK_MESSAGE_MAX; i += sizeof(bytes)) {
        T_TRUE(say(daemon, bytes, sizeof(bytes)));
        ipc_control_go(&c);
    }
    T_EQ(next(&c), 7); /* what came before it counts */
    T_EQ(next(&c), 1000 * IPC_CONTROL_E_TOO_BIG);
    T_TRUE(SAY(daemon, "\0{\"parameters\":{\"n\":8}}"));
    ipc_control_go(&c);
    n = next(&c);
    T_EQ(n, 1000 * IPC_CONTROL_E_TOO_BIG);
    end(&c, daemon);
}

TEST(what_is_no_reply)
{
    static const char *const bad[] = {"", "x", "[]", "{\"a\":1,\"a\":1}", "{\"parameters\":{"};

    for (size_t i = 0; i < base_array_count(bad); i++) {
        struct ipc_control c;
        int daemon = begin(&c);

        T_TRUE(say(daemon, bad[i], strlen(bad[i]) + 1));
        T_TRUE(SAY(daemon, "{\"parameters\":{\"n\":8}}"));
        ipc_control_go(&c);
        T_EQ(next(&c), 1000 * IPC_CONTROL_E_BAD);
        ipc_control_go(&c);
        T_EQ(next(&c), 1000 * IPC_CONTROL_E_BAD);
        end(&c, daemon);
    }
}

TEST(closed_within_a_reply)
{
    struct ipc_control c;
    int daemon = begin(&c);

    T_TRUE(SAY_PART(daemon, "{\"parameters\":{\"n\":1}}\0{\"par"));
    base_close_fd(&daemon);
    ipc_control_go(&c);
    T_EQ(next(&c), 1);
    T_EQ(next(&c), 1000 * IPC_CONTROL_E_NONE); /* the end did not show yet */
    ipc_control_go(&c);
    T_EQ(next(&c), 1000 * IPC_CONTROL_E_CLOSED);
    ipc_control_go(&c);
    T_EQ(next(&c), 1000 * IPC_CONTROL_E_CLOSED);
    end(&c, daemon);
}

/* The service that fails to start says why to whoever connects, and closes. */
TEST(the_reason_of_a_daemon_that_closed_before_the_call)
{
    struct ipc_control c;
    int daemon = begin(&c);
    struct ipc_control_reply r;

    T_TRUE(SAY(daemon, "{\"error\":\"io.piped.NotStarted\"}"));
    base_close_fd(&daemon);
    T_EQ(ipc_control_call(&c, "io.piped.Status", NULL, false, NULL, 0), 0);
    T_EQ(ipc_control_poll(&c).events, POLLIN);
    T_EQ(ipc_control_wait(&c, 0, -1, &r), 0);
    T_STR(r.error, IPC_VARLINK_NOT_STARTED);
    json_decref(r.message);
    T_EQ(ipc_control_wait(&c, 0, -1, &r), IPC_CONTROL_E_CLOSED);
    end(&c, daemon);
}

/* The kernel tells the client that the daemon left calls unread; what it said is there, too. */
TEST(the_reason_of_a_daemon_that_left_calls_unread)
{
    for (int calls = 1; calls <= 2; calls++) {
        struct ipc_control c;
        int daemon = begin(&c), rc;
        struct ipc_control_reply r;

        T_EQ(ipc_control_call(&c, "io.piped.Status", NULL, false, NULL, 0), 0);
        T_TRUE(SAY(daemon, "{\"error\":\"io.piped.NotStarted\"}"));
        base_close_fd(&daemon);
        if (calls == 2) {
            T_EQ(ipc_control_call(&c, "io.piped.Status", NULL, false, NULL, 0), 0);
        }
        T_EQ(ipc_control_wait(&c, 0, -1, &r), 0);
        T_STR(r.error, IPC_VARLINK_NOT_STARTED);
        json_decref(r.message);
        rc = ipc_control_wait(&c, 0, -1, &r);
        T_TRUE(rc == -ECONNRESET || rc == IPC_CONTROL_E_CLOSED);
        end(&c, daemon);
    }
}

/* Reads what the client writes, until @count messages are whole. Return: bytes; 0: too many. */
static size_t hear(struct ipc_control *c, int daemon, char *to, size_t bytes, size_t count)
{
    size_t got = 0;

    while (count > 0 && got < bytes) {
        ssize_t n;

        ipc_control_go(c);
        n = recv(daemon, to + got, base_min(bytes - got, 65536u), 0);
        for (ssize_t i = 0; i < n; i++) {
            count -= to[got + (size_t)i] == '\0';
        }
        got += n > 0 ? (size_t)n : 0;
    }
    return count == 0 ? got : 0;
}

TEST(calls_that_the_socket_does_not_take_at_once)
{
    static char text[BIG_BYTES], heard[2 * BIG_BYTES];
    json_t *parameters;
    struct ipc_control c;
    int daemon = begin(&c);
    size_t bytes;

    memset(text, 'x', sizeof(text) - 1);
    parameters = json_pack("{s:s}", "text", text);
    T_EQ(ipc_control_call(&c, "a.Big", parameters, false, NULL, 0), 0);
    T_EQ(ipc_control_poll(&c).events, POLLIN | POLLOUT);
    T_EQ(ipc_control_call(&c, "a.Small", NULL, true, NULL, 0), 0); /* behind what is left of it */
    T_EQ(ipc_control_call(&c, "a.WithFile", NULL, false, &daemon, 1), -EAGAIN);
    bytes = hear(&c, daemon, heard, sizeof(heard), 2);
    T_LT(sizeof(text), bytes);
    T_CONTAINS(heard, "\"a.Big\"");
    T_CONTAINS(heard + strlen(heard) + 1, "\"a.Small\"");
    T_CONTAINS(heard + strlen(heard) + 1, "\"more\":true");
    T_TRUE(strlen(heard) > sizeof(text));
    T_EQ(ipc_control_poll(&c).events, POLLIN);
    json_decref(parameters);
    end(&c, daemon);
}

TEST(what_cannot_be_called)
{
    struct ipc_control c = IPC_CONTROL_NULL;
    static const int fds[IPC_CONTROL_FDS_MAX + 1];
    json_t *parameters;
    int daemon;

    T_EQ(ipc_control_call(&c, "a.B", NULL, false, NULL, 0), -ENOTCONN);
    T_EQ(ipc_control_poll(&c).fd, -1);
    ipc_control_go(&c);
    T_EQ(next(&c), -1000 * ENOTCONN);
    daemon = begin(&c);
    T_EQ(ipc_control_call(&c, "a.B", NULL, false, fds, base_array_count(fds)), -EINVAL);
    parameters = json_pack("{s:o}", "text", json_stringn_nocheck("\xff", 1));
    T_EQ(ipc_control_call(&c, "a.B", parameters, false, NULL, 0), -ENOMEM);
    T_EQ(ipc_control_poll(&c).events, POLLIN);
    json_decref(parameters);
    end(&c, daemon);
}

/* Return: descriptors that came with the next bytes, which are closed; -1: not these. */
static int files_heard(int daemon, dev_t device, ino_t inode)
{
    char bytes[1024];
    union {
        char bytes[CMSG_SPACE(2 * IPC_CONTROL_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec part = {bytes, sizeof(bytes)};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *head;
    int count = 0, fd;

    if (recvmsg(daemon, &m, 0) <= 0 || !(head = CMSG_FIRSTHDR(&m))) {
        return 0;
    }
    for (size_t at = 0; at + sizeof(fd) <= head->cmsg_len - CMSG_LEN(0); at += sizeof(fd)) {
        struct stat st;

        memcpy(&fd, CMSG_DATA(head) + at, sizeof(fd));
        count += fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode ? 1 : -1000;
        base_close_fd(&fd);
    }
    return count;
}

TEST(descriptors_go_with_their_call)
{
    static const size_t counts[] = {1, 2, IPC_CONTROL_FDS_MAX, 0, 3};
    int fds[IPC_CONTROL_FDS_MAX], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct ipc_control c;
    int daemon = begin(&c);
    struct stat st;

    T_EQ(fstat(null, &st), 0);
    for (size_t i = 0; i < base_array_count(fds); i++) {
        fds[i] = null;
    }
    for (size_t i = 0; i < base_array_count(counts); i++) {
        T_EQ(ipc_control_call(&c, "a.B", NULL, false, fds, counts[i]), 0);
        T_EQ(files_heard(daemon, st.st_dev, st.st_ino), counts[i]);
    }
    fds[0] = -1;
    T_EQ(ipc_control_call(&c, "a.B", NULL, false, fds, 1), -EBADF);
    T_EQ(next(&c), -1000 * EBADF);
    base_close_fd(&null);
    end(&c, daemon);
}

TEST(waiting)
{
    struct ipc_control_reply r;
    struct ipc_control c;
    int daemon = begin(&c), pair[2];

    T_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    T_TRUE(SAY_PART(daemon, "{\"parame"));
    T_EQ(ipc_control_wait(&c, 1, -1, &r), IPC_CONTROL_E_LATE);
    T_EQ(ipc_control_wait(&c, 1, pair[0], &r), IPC_CONTROL_E_LATE);
    T_TRUE(SAY_PART(pair[1], "x"));
    T_EQ(ipc_control_wait(&c, 0, pair[0], &r), IPC_CONTROL_E_OTHER);
    T_TRUE(SAY(daemon, "ters\":{\"n\":1}}\0{}"));
    T_EQ(ipc_control_wait(&c, 1, pair[0], &r), 0); /* what is there is taken, however late */
    T_EQ(json_integer_value(json_object_get(r.parameters, "n")), 1);
    json_decref(r.message);
    T_TRUE(ipc_control_has_reply(&c));
    T_EQ(ipc_control_wait(&c, 1, pair[0], &r), 0);
    json_decref(r.message);
    T_EQ(ipc_control_wait(&c, 0, pair[0], &r), IPC_CONTROL_E_OTHER);
    base_close_fd(&daemon);
    T_EQ(ipc_control_wait(&c, 0, pair[0], &r), IPC_CONTROL_E_CLOSED);
    base_close_fd(&pair[0]);
    base_close_fd(&pair[1]);
    end(&c, daemon);
}

TEST(connecting)
{
    char longer[200];
    struct ipc_control c = IPC_CONTROL_NULL, first, second = IPC_CONTROL_NULL;
    int daemon;

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    T_EQ(ipc_control_connect(&c, longer, false), -ENAMETOOLONG);
    T_EQ(ipc_control_connect(&c, "/nonexistent/c.sock", true), -ENOENT);
    T_EQ(c.fd, -1);
    daemon = begin(&first);
    T_LE(0, daemon);
    end(&first, daemon);
    T_EQ(listen(listening, 0), 0); /* one may wait there */
    T_EQ(ipc_control_connect(&first, path, false), 0);
    T_EQ(ipc_control_connect(&second, path, false), -EAGAIN);
    T_EQ(second.fd, -1);
    T_EQ(fcntl(first.fd, F_GETFD), FD_CLOEXEC);
    end(&first, -1);
    T_STR(ipc_control_reason(-ENOENT), strerror(ENOENT));
    T_STR(ipc_control_reason(IPC_CONTROL_E_CLOSED), "it closed the connection");
}

TEST_LAST(the_socket_goes)
{
    if (listening >= 0) {
        ipc_socket_file_remove(&file);
        base_close_fd(&listening);
        T_EQ(rmdir(folder), 0);
    }
}

TEST_MAIN()
