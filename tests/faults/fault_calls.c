/* SPDX-License-Identifier: Apache-2.0 */
/* The replaced calls but those for memory: each asks fault_now(), then makes the real call. */
#undef _FILE_OFFSET_BITS /* open() is not open64() here: both are replaced */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/faults/faults.h"

#pragma GCC visibility push(default)

/* The next definition of this function. */
#define NEXT(name)                                                                                 \
    static __typeof__(&name) next;                                                                 \
    next = next ? next : (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* A whole replacement for a call that is made or fails: @params with types, @args without. */
#define REPLACE(kind, result, failed, name, params, args)                                          \
    result name params                                                                             \
    {                                                                                              \
        NEXT(name);                                                                                \
        return fault_now(kind, FAULT_CALLER) != FAULT_HOW_NOT ? (failed) : next args;              \
    }

REPLACE(FAULT_MMAP, void *, MAP_FAILED, mmap,
        (void *at, size_t n, int prot, int flags, int fd, off_t from),
        (at, n, prot, flags, fd, from))
REPLACE(FAULT_MMAP, void *, MAP_FAILED, mmap64,
        (void *at, size_t n, int prot, int flags, int fd, off64_t from),
        (at, n, prot, flags, fd, from))
REPLACE(FAULT_OPEN, FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
REPLACE(FAULT_OPEN, FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))
REPLACE(FAULT_OPEN, DIR *, NULL, opendir, (const char *path), (path))
REPLACE(FAULT_OPEN, DIR *, NULL, fdopendir, (int fd), (fd))
REPLACE(FAULT_FSYNC, int, -1, fsync, (int fd), (fd))
REPLACE(FAULT_FSYNC, int, -1, fdatasync, (int fd), (fd))
REPLACE(FAULT_RENAME, int, -1, rename, (const char *from, const char *to), (from, to))
REPLACE(FAULT_RENAME, int, -1, renameat, (int in, const char *from, int out, const char *to),
        (in, from, out, to))
REPLACE(FAULT_RENAME, int, -1, renameat2,
        (int in, const char *from, int out, const char *to, unsigned flags),
        (in, from, out, to, flags))
REPLACE(FAULT_FD, int, -1, memfd_create, (const char *name, unsigned flags), (name, flags))
REPLACE(FAULT_FD, int, -1, eventfd, (unsigned count, int flags), (count, flags))
REPLACE(FAULT_FD, int, -1, pipe2, (int fds[2], int flags), (fds, flags))
REPLACE(FAULT_FD, int, -1, epoll_create1, (int flags), (flags))
REPLACE(FAULT_FD, int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))
REPLACE(FAULT_EPOLL, int, -1, epoll_ctl, (int in, int op, int fd, struct epoll_event *e),
        (in, op, fd, e))
REPLACE(FAULT_ACCEPT, int, -1, accept, (int fd, struct sockaddr *from, socklen_t *length),
        (fd, from, length))
REPLACE(FAULT_ACCEPT, int, -1, accept4, (int fd, struct sockaddr *from, socklen_t *length, int f),
        (fd, from, length, f))

int pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    NEXT(pthread_create);
    return fault_now(FAULT_THREAD, FAULT_CALLER) != FAULT_HOW_NOT ? errno
                                                                  : next(ret, attr, fn, arg);
}

/* open() and its kind have an argument that is there only if a file may be made. */
static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define REPLACE_OPEN(name, params, args)                                                           \
    int name params                                                                                \
    {                                                                                              \
        NEXT(name);                                                                                \
        va_list list;                                                                              \
        mode_t mode;                                                                               \
                                                                                                   \
        va_start(list, flags);                                                                     \
        mode = mode_of(flags, list);                                                               \
        va_end(list);                                                                              \
        return fault_now(FAULT_OPEN, FAULT_CALLER) != FAULT_HOW_NOT ? -1 : next args;              \
    }

REPLACE_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
REPLACE_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
REPLACE_OPEN(openat, (int in, const char *path, int flags, ...), (in, path, flags, mode))
REPLACE_OPEN(openat64, (int in, const char *path, int flags, ...), (in, path, flags, mode))

#define REPLACE_FCNTL(name)                                                                        \
    int name(int fd, int command, ...)                                                             \
    {                                                                                              \
        NEXT(name);                                                                                \
        va_list list;                                                                              \
        void *arg;                                                                                 \
                                                                                                   \
        va_start(list, command);                                                                   \
        arg = va_arg(list, void *);                                                                \
        va_end(list);                                                                              \
        if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) &&                                  \
            fault_now(FAULT_FD, FAULT_CALLER) != FAULT_HOW_NOT) {                                  \
            return -1;                                                                             \
        }                                                                                          \
        return next(fd, command, arg);                                                             \
    }

REPLACE_FCNTL(fcntl)
REPLACE_FCNTL(fcntl64)

/* Bytes in or out: an error, or fewer of them. */

static size_t less(enum fault_how how, size_t bytes)
{
    return how == FAULT_HOW_SHORT && bytes > 1 ? bytes / 2 : bytes;
}

static enum fault_kind kind_in(int fd)
{
    return fault_kind_of(fd, FAULT_RECV, FAULT_READ);
}

static enum fault_kind kind_out(int fd)
{
    return fault_kind_of(fd, FAULT_SEND, FAULT_WRITE);
}

#define REPLACE_BYTES(kind, name, params, args)                                                    \
    ssize_t name params                                                                            \
    {                                                                                              \
        NEXT(name);                                                                                \
        enum fault_how how = fault_now(kind, FAULT_CALLER);                                        \
                                                                                                   \
        n = less(how, n);                                                                          \
        return how == FAULT_HOW_ERROR ? -1 : next args;                                            \
    }

REPLACE_BYTES(kind_in(fd), read, (int fd, void *to, size_t n), (fd, to, n))
REPLACE_BYTES(FAULT_READ, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
REPLACE_BYTES(FAULT_READ, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at))
REPLACE_BYTES(kind_out(fd), write, (int fd, const void *from, size_t n), (fd, from, n))
REPLACE_BYTES(FAULT_WRITE, pwrite, (int fd, const void *from, size_t n, off_t at),
              (fd, from, n, at))
REPLACE_BYTES(FAULT_WRITE, pwrite64, (int fd, const void *from, size_t n, off64_t at),
              (fd, from, n, at))
REPLACE_BYTES(FAULT_RECV, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags))
REPLACE_BYTES(FAULT_SEND, send, (int fd, const void *from, size_t n, int flags),
              (fd, from, n, flags))

/* The first piece, or half of it. */
static struct iovec first_of(const struct iovec *v)
{
    return (struct iovec){v->iov_base, less(FAULT_HOW_SHORT, v->iov_len)};
}

#define REPLACE_PIECES(kind, name)                                                                 \
    ssize_t name(int fd, const struct iovec *v, int count)                                         \
    {                                                                                              \
        NEXT(name);                                                                                \
        enum fault_how how = fault_now(kind, FAULT_CALLER);                                        \
        struct iovec first;                                                                        \
                                                                                                   \
        if (how == FAULT_HOW_SHORT && count > 0) {                                                 \
            first = first_of(v);                                                                   \
            return next(fd, &first, 1);                                                            \
        }                                                                                          \
        return how == FAULT_HOW_ERROR ? -1 : next(fd, v, count);                                   \
    }

REPLACE_PIECES(kind_in(fd), readv)
REPLACE_PIECES(kind_out(fd), writev)

#define REPLACE_MESSAGE(kind, name, qualifier)                                                     \
    ssize_t name(int fd, qualifier struct msghdr *m, int flags)                                    \
    {                                                                                              \
        NEXT(name);                                                                                \
        enum fault_how how = fault_now(kind, FAULT_CALLER);                                        \
        struct msghdr shorter;                                                                     \
        struct iovec first;                                                                        \
        ssize_t r;                                                                                 \
                                                                                                   \
        if (how != FAULT_HOW_SHORT || m->msg_iovlen == 0) {                                        \
            return how == FAULT_HOW_ERROR ? -1 : next(fd, m, flags);                               \
        }                                                                                          \
        shorter = *m;                                                                              \
        first = first_of(m->msg_iov);                                                              \
        shorter.msg_iov = &first;                                                                  \
        shorter.msg_iovlen = 1;                                                                    \
        r = next(fd, &shorter, flags);                                                             \
        FAULT_KEEP_##name(m, shorter);                                                             \
        return r;                                                                                  \
    }
#define FAULT_KEEP_sendmsg(m, shorter) ((void)0)
#define FAULT_KEEP_recvmsg(m, shorter)                                                             \
    (m->msg_controllen = (shorter).msg_controllen, m->msg_flags = (shorter).msg_flags)

REPLACE_MESSAGE(FAULT_SEND, sendmsg, const)
REPLACE_MESSAGE(FAULT_RECV, recvmsg, )

/* stdio: the calls beneath are inside libc, where nothing can be put in front. */

size_t fread(void *to, size_t size, size_t count, FILE *f)
{
    NEXT(fread);
    enum fault_how how = fault_now(FAULT_READ, FAULT_CALLER);

    return how == FAULT_HOW_ERROR ? 0 : next(to, size, less(how, count), f);
}

char *fgets(char *to, int size, FILE *f)
{
    NEXT(fgets);
    return fault_now(FAULT_READ, FAULT_CALLER) == FAULT_HOW_ERROR ? NULL : next(to, size, f);
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *f)
{
    NEXT(fwrite);
    enum fault_how how = fault_now(FAULT_WRITE, FAULT_CALLER);

    return how == FAULT_HOW_ERROR ? 0 : next(from, size, less(how, count), f);
}

/* Where "from main()" begins: libraries' constructors are not ours. */
static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **envp)
{
    fault_main_begins();
    return real_main(argc, argv, envp);
}

int __libc_start_main(int (*fn)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*end)(void), void *stack);
int __libc_start_main(int (*fn)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*end)(void), void *stack)
{
    NEXT(__libc_start_main);

    real_main = fn;
    return next(counted_main, argc, argv, init, fini, end, stack);
}
