/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped: the last error, names of statuses, options. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown_text.h"
#include "ipc/client/client.h"

static _Thread_local char last_error[512];

int ipc_client_error(int rc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(last_error, sizeof(last_error), format, args);
    va_end(args);
    shown_clean(last_error, ""); /* the daemon's texts name what is in files and requests */
    return rc;
}

const char *piped_last_error(void)
{
    return last_error;
}

const char *piped_status_name(int status)
{
    return ipc_status_name((enum ipc_status)status);
}

int ipc_client_options(const void *from, void *ret, size_t bytes, const char *type)
{
    size_t given = sizeof(given);

    if (from) {
        memcpy(&given, from, sizeof(given)); /* options.size comes first */
    }
    if (given < sizeof(given) || given > 4096) {
        return ipc_client_error(-EINVAL, "options.size must be sizeof(struct %s)", type);
    }
    if (from) {
        memcpy(ret, from, given < bytes ? given : bytes);
    }
    return 0;
}

int piped_socket_path(char *ret, size_t bytes)
{
    const char *dir = getenv("PIPED_RUNTIME_DIR");
    int n = snprintf(ret, bytes, "%s/frames.sock", dir && *dir ? dir : "/run/piped");

    if (n < 0 || (size_t)n >= bytes) {
        return ipc_client_error(-ENAMETOOLONG, "PIPED_RUNTIME_DIR is too long for a socket path");
    }
    return 0;
}
