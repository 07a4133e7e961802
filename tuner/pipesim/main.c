/* SPDX-License-Identifier: Apache-2.0 */
/* pipesim: the planner of piped without hardware. */

#include "base/base.h"
#include "tuner/pipesim/subject.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command */
} commands[] = {
#define ROW(name) {#name, psim_cmd_##name},
    PSIM_COMMANDS(ROW)
#undef ROW
};

static void help(FILE *to)
{
    fputs("usage: pipesim COMMAND [OPTIONS]\n\n", to);
    cli_print_commands(to, &psim_program);
    fputs("\npipesim COMMAND --help lists the options of a command.\n"
          "Exit codes: 0 done, 1 failed, 2 wrong usage. See pipesim(1).\n",
          to);
}

static int run(int argc, char **argv)
{
    char hint[NEAR_WORD_HINT_BYTES];

    if (argc < 2) {
        help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        const struct cli_command *of = argc > 2 ? cli_find(psim_program.commands, argv[2]) : NULL;

        if (of) {
            cli_print_help(stdout, &psim_program, of);
        } else {
            help(stdout);
        }
        return PSIM_DONE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        puts("pipesim " PIPED_VERSION);
        return PSIM_DONE;
    }
    if (strcmp(argv[1], "--report") == 0) {
        argv[1] += 2;
    }
    for (size_t i = 0; i < base_array_count(commands); i++) {
        if (strcmp(commands[i].name, argv[1]) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    cli_command_hint(&psim_program, argv[1], hint);
    psim_say("unknown command '%s'%s", argv[1], *hint ? hint : "; see pipesim --help");
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    shown_begin();
    return shown_end("pipesim", base_max(run(argc, argv), PSIM_DONE)); /* CLI_ENDED is a success */
}
