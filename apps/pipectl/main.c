/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: the command line of piped. */
#include <signal.h>

#include "apps/pipectl/common/pipectl.h"

static const struct {
    const char *name;
    int (*run)(const struct ctl *ctl, int argc, char **argv); /* argv[0] is the command */
} runs[] = {
#define ROW(name) {#name, ctl_##name},
    CTL_COMMANDS(ROW)
#undef ROW
};

#define TIMEOUT_MOST_S 86400

static int help(FILE *to)
{
    fputs("usage: pipectl [--socket PATH] [--timeout S] [--json] COMMAND [ARGUMENTS]\n\n", to);
    cli_print_commands(to, &ctl_program);
    fputs("\npipectl COMMAND --help lists the options of a command.\n"
          "--socket PATH: the control socket; frames.sock must be beside it. Default:\n"
          "$PIPED_RUNTIME_DIR/control.sock, else /run/piped/control.sock.\n"
          "--timeout S: seconds to wait for an answer, 0 for ever. Default: 5 for what is\n"
          "answered at once, 30 to reach it for frames, no limit for what takes its time.\n"
          "--json: print JSON.\n"
          "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 daemon not reachable, 4 degraded.\n"
          "See pipectl(1).\n",
          to);
    return CTL_DONE;
}

static int unknown_command(const char *name)
{
    char hint[NEAR_WORD_HINT_BYTES];

    cli_command_hint(&ctl_program, name, hint);
    return ctl_refuse(CTL_USAGE, "unknown command '%s'%s", name,
                      *hint ? hint : "; see pipectl --help");
}

/* Is @given the word, or the option of that name? */
static bool is_word(const char *given, const char *word)
{
    return strcmp(given + (strncmp(given, "--", 2) == 0 ? 2 : 0), word) == 0;
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
        return ctl_refuse(CTL_USAGE, "the socket path is longer than 107 bytes");
    }
    return CTL_DONE;
}

static const struct cli_option *common_option(const char *argument)
{
    size_t n = strcspn(argument, "=");

    for (const struct cli_option *o = ctl_program.common; o->name; o++) {
        if (strncmp(argument, "--", 2) == 0 && strlen(o->name) == n - 2 &&
            strncmp(argument + 2, o->name, n - 2) == 0 && (o->value || !argument[n])) {
            return o;
        }
    }
    return NULL;
}

/* Takes the options of every command from anywhere on the line. Return: the new argc; -1: one has
 * no value, which was said. */
static int take_common(int argc, char **argv, struct ctl_common *ret)
{
    int kept = 1;

    for (int i = 1; i < argc; i++) {
        const struct cli_option *o = common_option(argv[i]);
        const char *equals = strchr(argv[i], '=');

        if (strcmp(argv[i], "--") == 0) {
            while (i < argc) {
                argv[kept++] = argv[i++];
            }
        } else if (!o) {
            argv[kept++] = argv[i];
        } else if (!o->value || equals) {
            cli_put(&ctl_program, NULL, o, equals ? equals + 1 : NULL, ret, NULL);
        } else if (++i < argc) {
            cli_put(&ctl_program, NULL, o, argv[i], ret, NULL);
        } else {
            return ctl_refuse(-1, "--%s needs a value: %s", o->name, o->help);
        }
    }
    argv[kept] = NULL;
    return kept;
}

static int set_timeout(struct ctl *ctl, const char *text)
{
    double seconds;

    ctl->timeout_ms = CTL_TIMEOUT_DEFAULT;
    if (text && !cli_read_number(text, 0, TIMEOUT_MOST_S, &seconds)) {
        return ctl_refuse(
            CTL_USAGE, "--timeout needs a number of seconds from 0 (wait for ever) to %d, not '%s'",
            TIMEOUT_MOST_S, text);
    }
    if (text) {
        ctl->timeout_ms = (int)(seconds * 1e3 + 0.5);
    }
    return CTL_DONE;
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

static int run(int argc, char **argv)
{
    struct ctl ctl = {0};
    const struct cli_command *command;
    struct ctl_common common = {0};
    int rc;

    argc = take_common(argc, argv, &common);
    if (argc < 0) {
        return CTL_USAGE;
    }
    if (argc < 2) {
        help(stderr);
        return CTL_USAGE;
    }
    if (is_word(argv[1], "help") || strcmp(argv[1], "-h") == 0) {
        command = argc > 2 ? cli_find(ctl_program.commands, argv[2]) : NULL;
        return argc <= 2 ? help(stdout)
               : command ? ctl_print_help(command)
                         : unknown_command(argv[2]);
    }
    if (is_word(argv[1], "version")) {
        puts("pipectl " PIPED_VERSION);
        return CTL_DONE;
    }
    ctl.json = common.json;
    rc = set_timeout(&ctl, common.timeout);
    rc = rc ? rc : set_paths(&ctl, common.socket);
    if (rc) {
        return rc;
    }
    command = cli_find(ctl_program.commands, argv[1]);
    if (command && wants_help(argc, argv)) {
        return ctl_print_help(command);
    }
    for (size_t i = 0; command && i < base_array_count(runs); i++) {
        if (strcmp(runs[i].name, command->name) == 0) {
            return runs[i].run(&ctl, argc - 1, argv + 1);
        }
    }
    return unknown_command(argv[1]);
}

int main(int argc, char **argv)
{
    shown_begin();
    signal(SIGPIPE, SIG_IGN);
    return shown_end("pipectl", run(argc, argv));
}
