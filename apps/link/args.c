/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/args.h"

#include <sys/un.h>

#include "apps/link/common/link.h"
#include "base/base.h"
#include "base/cli/cli_take.h"

#define PROGRAM "piped-link"
#define UNUSED_S 30

#define AT(field) offsetof(struct link_args, field)
#define TEXT(field) CLI_TEXT, AT(field)

static const struct cli_option options[] = {
    {"listen", "ADDRESS", "@none", "IP or IP:PORT; default 0.0.0.0:8474", TEXT(listen)},
    {"state-dir", "DIR", "@folder", "keys and boards of pipectl board; default " BRD_FOLDER,
     TEXT(folder)},
    {"runtime-dir", "DIR", "@folder",
     "reports of links; default " BRD_RUNTIME_FOLDER ", if it is there", TEXT(runtime)},
    {"name", "NAME", "@none", "of this board, for the others' logs; default: the host's",
     TEXT(name)},
    {"socket", "PATH", "@file", "the daemon's frames socket", TEXT(socket)},
    {"control", "PATH", "@file", "the daemon's control socket; default: control.sock beside that",
     TEXT(control)},
    {"models", "DIR", "@folder", "look there for files of models, IDENTITY.onnx", TEXT(models)},
    {"store-mb", "MB", "@none",
     "most that parts of other boards' models may take; default: the disk", CLI_WHOLE, AT(store_mb),
     0, 1e9},
    {"unused-s", "SECONDS", "@none", "unload segments that nobody uses so long; default 30",
     CLI_SECONDS, AT(unused_s), 0, 86400},
    {"trusted-wire", NULL, NULL, "do not encrypt; other boards must do the same", CLI_FLAG,
     AT(trusted_wire)},
    {"help", NULL, NULL, "print this", CLI_HELP},
    {"version", NULL, NULL, "print the version", CLI_VERSION},
    {0}};
static const struct cli_command commands[] = {
    {PROGRAM, NULL, "",
     "Computes frames with other boards, by the daemons there and here. See piped-link(8).",
     options, NULL},
    {0}};
static const struct cli_program program = {PROGRAM, NULL, commands};

int link_args_take(int argc, char **argv, struct link_args *ret)
{
    int rc;

    *ret = (struct link_args){.folder = BRD_FOLDER, .listen = "0.0.0.0", .unused_s = UNUSED_S};
    rc = cli_take(&program, argc, argv, ret, NULL);
    return rc ? rc : cli_no_more(&program, argc, argv);
}

bool link_args_daemon(const struct link_args *a, struct link *l)
{
    static char frames[128], control[128];
    const char *slash;
    int n;

    if (!a->socket && piped_socket_path(frames, sizeof(frames)) < 0) {
        return false;
    }
    l->frames_path = a->socket ? a->socket : frames;
    slash = strrchr(l->frames_path, '/');
    n = snprintf(control, sizeof(control), "%.*scontrol.sock",
                 slash ? (int)(slash + 1 - l->frames_path) : 0, l->frames_path);
    l->control_path = a->control ? a->control : control;
    return n > 0 && (size_t)n < sizeof(control) &&
           strlen(l->control_path) < sizeof(((struct sockaddr_un *)0)->sun_path);
}
