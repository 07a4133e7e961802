/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/listen.h - listening sockets of the daemon and of piped-link, their files, and who may
 * connect
 *
 * Somebody may remove the file of a socket, or the whole folder, and another process may then serve
 * at the same path. So a file is known by its device and inode, not by its path. The inode number
 * is not reused while the listening socket is open.
 *
 * Threads: one at a time for each file; nothing blocks but ipc_group_find().
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

#define IPC_NO_GROUP ((gid_t)-1)

/* The file of a listening socket. */
struct ipc_socket_file {
    char *path; /* owned; NULL: no file, or it belongs to whoever passed the socket in */
    dev_t device;
    ino_t inode;
};

/** ipc_group_find() - looks a group up. @name: "" gives IPC_NO_GROUP. Blocks on the user database.
 * Return: 0; -ESRCH: no such group; -errno. */
int ipc_group_find(const char *name, gid_t *ret);
/** ipc_group_allowed() - Return: 0: this process may give its files to @group; -EPERM; -EINVAL: a
 * user namespace without that group. */
int ipc_group_allowed(gid_t group);

/**
 * ipc_listen() - opens a listening Unix socket at @path; replaces a file that nobody listens on
 *
 * @mode: of the file, whatever the umask is. @group: of the file; IPC_NO_GROUP: the process's.
 * @ret: the file; see ipc_socket_file_remove().
 *
 * Return: an owned descriptor that does not block; -EADDRINUSE: another process serves there;
 * -EEXIST: the file there is not a socket; -EPERM, -EINVAL: as ipc_group_allowed(); -errno.
 */
int ipc_listen(const char *path, mode_t mode, gid_t group, struct ipc_socket_file *ret);
/** ipc_socket_file_there() - Return: the file is there and still ours, or there never was one. */
bool ipc_socket_file_there(const struct ipc_socket_file *f);
/** ipc_socket_file_remove() - removes the file if it is still ours, and frees @f's path. Call it
 * while the socket is open. */
void ipc_socket_file_remove(struct ipc_socket_file *f);
/**
 * ipc_listen_again() - makes the file of the listening descriptor @fd again, which is gone
 *
 * @fd becomes a new socket. Before that, @each(@ctx, client, peer) is called for every connection
 * that waits at the old one, and owns it. Nobody waits at a socket for long whose file is gone, so
 * none is lost.
 * @file: as ipc_listen() set it, with @mode and @group; it is set anew.
 *
 * Return: 0; -errno, as ipc_listen(): nothing has changed.
 */
int ipc_listen_again(int fd, struct ipc_socket_file *file, mode_t mode, gid_t group,
                     void (*each)(void *ctx, int client, const struct ucred *peer), void *ctx);

#define IPC_E_NOBODY 1
/**
 * ipc_accept() - accepts a client of the listening descriptor @fd, which does not block
 *
 * A client that is gone already, or whose process is unknown, is passed over.
 *
 * @ret_client: owned; it does not block     @ret_peer: its process
 *
 * Return: 0; IPC_E_NOBODY: no client waits; -errno: no descriptors or memory are left for those
 * that wait. The socket stays readable then, so the caller should try again only after a pause.
 */
int ipc_accept(int fd, int *ret_client, struct ucred *ret_peer);

/*
 * ---- who may have one more connection to a socket; pure functions ----
 *
 * A socket has `most` places, of which one user may hold `of_user`. Another `kept` places are for
 * those alone who the server says, such as root, so that no other users, however many, can lock
 * them out; the limit per user does not concern them.
 */

struct ipc_places {
    size_t most, of_user, kept;
};

enum ipc_place {
    IPC_PLACE_FREE,
    IPC_PLACE_NONE,         /* all are taken */
    IPC_PLACE_NONE_OF_USER, /* the user holds all that it may */
};

/** ipc_place_for() - @held: connections without the new one; @held_of_user: those of its user;
 * @keeps: places are kept for this user. */
static inline enum ipc_place ipc_place_for(const struct ipc_places *p, size_t held,
                                           size_t held_of_user, bool keeps)
{
    if (!keeps && held_of_user >= p->of_user) {
        return IPC_PLACE_NONE_OF_USER;
    }
    return held >= p->most + (keeps ? p->kept : 0) ? IPC_PLACE_NONE : IPC_PLACE_FREE;
}

#define IPC_PLACE_TEXT_MAX 128u
/** ipc_place_text() - writes why @uid has no place. @what: "connections"; @key: of the limit of
 * all, to which that of one user adds "_per_user". Return: @ret. */
static inline const char *ipc_place_text(enum ipc_place place, const struct ipc_places *p,
                                         const char *what, const char *key, uid_t uid,
                                         char ret[IPC_PLACE_TEXT_MAX])
{
    if (place == IPC_PLACE_NONE_OF_USER) {
        snprintf(ret, IPC_PLACE_TEXT_MAX, "no more %s of user %u: %s_per_user is %zu", what,
                 (unsigned)uid, key, p->of_user);
    } else {
        snprintf(ret, IPC_PLACE_TEXT_MAX, "no more %s: %s is %zu", what, key, p->most);
    }
    return ret;
}
