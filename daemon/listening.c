/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's sockets: the folder and its lock, opening them, and looking after their files.
 *
 * A file of a socket may vanish while the daemon serves: somebody removed it, or the whole folder.
 * Connections live on, but nobody can connect. So the files are looked at once a second and made
 * again, unless another daemon serves there now. Sockets that were passed in are their owner's. */

#include "base/base.h"
#include "daemon/daemon.h"
#include "daemon/service/folders.h"
#include "daemon/service/log.h"

#define LOCK_NAME "piped.lock"

static const char *why_not(int error)
{
    return error == -EADDRINUSE ? "another program serves there"
           : error == -EEXIST   ? "the file there is not a socket"
                                : strerror(-error);
}

static int lock_runtime_dir(struct dmn_daemon *d, char *ret_why, size_t bytes)
{
    pid_t holder;
    int error = dmn_folder_lock(d->runtime_dir, LOCK_NAME, &d->lock_fd, &holder);

    if (error == -EADDRINUSE) {
        snprintf(ret_why, bytes, "%s: another piped serves there (process %d)", d->runtime_dir,
                 (int)holder);
    } else if (error < 0) {
        snprintf(ret_why, bytes, "%s/" LOCK_NAME ": %s", d->runtime_dir, strerror(-error));
    }
    return error;
}

int dmn_runtime_dir_take(struct dmn_daemon *d)
{
    char why[512];

    d->runtime_dir = dmn_runtime_dir(d->args->runtime_dir);
    if (!d->runtime_dir) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "cannot use %s for the sockets: %s; choose a folder with --runtime-dir",
                     d->args->runtime_dir ? d->args->runtime_dir
                                          : "/run/piped or $XDG_RUNTIME_DIR/piped",
                     strerror(errno));
        return DMN_EXIT_FAILED;
    }
    if (lock_runtime_dir(d, why, sizeof(why)) < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED}, "%s", why);
        return DMN_EXIT_FAILED;
    }
    return 0;
}

static mode_t socket_mode(const struct dmn_daemon *d)
{
    return (mode_t)strtoul(dmn_config_string(d->config, DMN_KEY_SOCKET_MODE), NULL, 8);
}

/* Uses the socket that was passed in, else opens one. */
static int socket_for(struct dmn_daemon *d, const char *name, int *fd, struct ipc_socket_file *ret)
{
    char path[512];

    if (*fd >= 0) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/%s.sock", d->runtime_dir, name);
    *fd = ipc_listen(path, socket_mode(d), d->socket_group, ret);
    if (*fd < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "cannot listen on %s: %s", path, why_not(*fd));
        return *fd;
    }
    return 0;
}

int dmn_listening_start(struct dmn_daemon *d, int frames_fd, int control_fd)
{
    struct ipc_socket_file file = {0};
    int error = socket_for(d, "frames", &frames_fd, &file);

    if (!error) {
        error = dmn_frames_start(&d->frames, base_take_fd(&frames_fd), &file);
    }
    if (!error) {
        error = socket_for(d, "control", &control_fd, &file);
    }
    if (!error) {
        error = dmn_control_start(&d->control, base_take_fd(&control_fd), &file);
        dmn_control_listen(&d->control);
    }
    base_close_fd(&frames_fd);
    base_close_fd(&control_fd);
    return error;
}

/* Makes the file again if it is not ours any more. Return: 0, or -errno with @ret_why. */
static int remake(struct dmn_daemon *d, struct dmn_acceptor *a, char *ret_why, size_t bytes)
{
    char path[512];
    int error;

    if (ipc_socket_file_there(&a->file)) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s", a->file.path);
    error = dmn_acceptor_again(a, socket_mode(d), d->socket_group);
    if (error < 0) {
        snprintf(ret_why, bytes, "%.300s: %.200s", path, why_not(error));
        return error;
    }
    dmn_log(LOG_WARNING, "%s had vanished and was made again; clients can connect", path);
    return 0;
}

static int remake_all(struct dmn_daemon *d, char *ret_why, size_t bytes)
{
    base_autofree char *dir = dmn_runtime_dir(d->args->runtime_dir); /* makes it again */
    int error = dir ? lock_runtime_dir(d, ret_why, bytes) : -errno;

    if (!dir) {
        snprintf(ret_why, bytes, "%s: %s", d->runtime_dir, strerror(-error));
    }
    error = error ? error : remake(d, &d->frames.acceptor, ret_why, bytes);
    return error ? error : remake(d, &d->control.acceptor, ret_why, bytes);
}

void dmn_listening_tick(struct dmn_daemon *d)
{
    char why[sizeof(d->unreachable)] = "";

    if (d->draining) {
        return;
    }
    if ((!ipc_socket_file_there(&d->frames.acceptor.file) ||
         !ipc_socket_file_there(&d->control.acceptor.file)) &&
        remake_all(d, why, sizeof(why)) < 0 && strcmp(why, d->unreachable) != 0) {
        dmn_log(LOG_ERR,
                "new clients cannot connect: the sockets in %s vanished and cannot be made "
                "again: %s; restart piped",
                d->runtime_dir, why);
    }
    memcpy(d->unreachable, why, sizeof(why));
}
