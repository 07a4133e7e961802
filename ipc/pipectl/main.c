/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: the command line of piped. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_print.h"
#include "ipc/pipectl/pipectl.h"
#include "ipc/pipectl/pipectl_options.h"

static const struct {
    const char *name;
    int (*run)(const struct ctl *ctl, int argc, char **argv); /* argv[0] is the command */
} runs[] = {
#define ROW(name) {#name, ctl_##name},
    CTL_COMMANDS(ROW)
#undef ROW
};

static void help(FILE *to)
{
    fputs("usage: pipectl [--socket PATH] [--json] COMMAND [ARGUMENTS]\n\n", to);
    cli_print_commands(to, &ctl_program);
    fputs("\npipectl COMMAND --help lists the options of a command.\n"
          "--socket PATH: the control socket; frames.sock must be beside it. Default:\n"
          "$PIPED_RUNTIME_DIR/control.sock, else /run/piped/control.sock.\n"
          "--json: print JSON.\n"
          "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 daemon not reachable, 4 degraded.\n"
          "See pipectl(1).\n",
          to);
}

static int set_paths(struct ctl *ctl, const char *socket)
{
    const char *dir = getenv("PIPED_RUNTIME_DIR");
    const char *slash;
    int a, b;

    if (socket) {
        slash = strrchr(socket, '/');
        a = snprintf(ctl->control_path, sizeof(ctl->control_path), "%s", socket);
        b = snprintf(ctl->frames_path, sizeof(ctl->frames_path), "%.*sframes.sock",
                     slash ? (int)(slash - socket + 1) : 0, socket);
    } else {
        dir = dir && *dir ? dir : "/run/piped";
        a = snprintf(ctl->control_path, sizeof(ctl->control_path), "%s/control.sock", dir);
        b = snprintf(ctl->frames_path, sizeof(ctl->frames_path), "%s/frames.sock", dir);
    }
    if (a >= (int)sizeof(ctl->control_path) || b >= (int)sizeof(ctl->frames_path)) {
        ctl_say("the socket path is longer than 107 bytes");
        return CTL_USAGE;
    }
    return CTL_DONE;
}

/* Takes --json and --socket from anywhere on the line. Return: the new argc; -1: --socket has no
 * value. */
static int take_global(int argc, char **argv, bool *ret_json, const char **ret_socket)
{
    int kept = 1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            while (i < argc) {
                argv[kept++] = argv[i++];
            }
        } else if (strcmp(argv[i], "--json") == 0) {
            *ret_json = true;
        } else if (strncmp(argv[i], "--socket=", 9) == 0) {
            *ret_socket = argv[i] + 9;
        } else if (strcmp(argv[i], "--socket") == 0) {
            if (++i == argc) {
                return -1;
            }
            *ret_socket = argv[i];
        } else {
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    return kept;
}

/* Is --help among the arguments of the command? After "--" it does not count. */
static bool wants_help(int argc, char **argv)
{
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    struct ctl ctl = {0};
    const struct cli_command *command;
    const char *socket = NULL;
    int rc;

    signal(SIGPIPE, SIG_IGN);
    argc = take_global(argc, argv, &ctl.json, &socket);
    if (argc < 0) {
        ctl_say("--socket needs a path");
        return CTL_USAGE;
    }
    if (argc < 2) {
        help(stderr);
        return CTL_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        help(stdout);
        return CTL_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("pipectl " PIPED_VERSION);
        return CTL_DONE;
    }
    rc = set_paths(&ctl, socket);
    if (rc) {
        return rc;
    }
    command = cli_find(ctl_program.commands, argv[1]);
    if (command && wants_help(argc, argv)) {
        ctl_print_help(stdout, argv[1]);
        return CTL_DONE;
    }
    for (size_t i = 0; command && i < base_array_count(runs); i++) {
        if (strcmp(runs[i].name, command->name) == 0) {
            rc = runs[i].run(&ctl, argc - 1, argv + 1);
            if (fflush(stdout) != 0 && rc == CTL_DONE) {
                ctl_say("cannot write the result: %s", strerror(errno));
                rc = CTL_FAILED;
            }
            return rc;
        }
    }
    ctl_say("unknown command '%s'; see pipectl --help", argv[1]);
    return CTL_USAGE;
}
