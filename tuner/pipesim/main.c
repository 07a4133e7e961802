/* SPDX-License-Identifier: Apache-2.0 */
/* pipesim: the planner of piped without hardware. */
#include <string.h>

#include "base.h"
#include "tuner/pipesim/subject.h"

const struct psim_command psim_commands[] = {
    {"compare",
     "(--model M --platform P [--layers] | --problem FILE) [--algorithm A,...] [--seed N] "
     "[--alpha N] [--heuristic N] [--space S] [--trials N] [--frames N] [--objective O] [--fps F] "
     "[--latency MS] [--sigma S] [--contention C] [--noise N] [--json]",
     "searches side by side: what they find, in how many trials, in what time", psim_cmd_compare},
    {"plan",
     "(--model M --platform P [--layers] | --problem FILE) [--objective O] [--fps F] "
     "[--latency MS] [--one-kind] [--front] [--top N] [--json]",
     "the exact plan, its runners-up, the front of throughput and latency", psim_cmd_plan},
    {"list", "[--json]", "platforms, networks, algorithms", psim_cmd_list},
    {"check", "[--seed N] [--share S] [--table FILE]",
     "what must hold of the searches: papers' figures, brute force, every machine", psim_cmd_check},
    {"report", "[--seed N] [--figures DIR] FILE.html",
     "one page with the papers' figures, drawn from searches that run now", psim_cmd_report},
    {"adapt",
     "[--scenario NAME] [--model M --platform P [--layers] | --problem FILE] [--runs N] [--hours "
     "H] "
     "[--seed N] [--noise N] [--correlation R] [--spikes S] [--sigma S] [--records FILE] [--json]",
     "machines that change by script: what is noticed, when, and what comes of it", psim_cmd_adapt},
    {"replay", "[--json] FILE", "decisions that a daemon recorded, made anew", psim_cmd_replay},
    {NULL, NULL, NULL, NULL},
};

static void help(FILE *to)
{
    fputs("usage: pipesim COMMAND [OPTIONS]\n\n", to);
    for (const struct psim_command *c = psim_commands; c->name; c++) {
        fprintf(to, "  %-10s %s\n", c->name, c->help);
    }
    fputs("\npipesim COMMAND --help names its options\n"
          "exit codes: 0 done, 1 failed, 2 wrong usage\n"
          "see pipesim(1)\n",
          to);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return PSIM_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        help(stdout);
        return PSIM_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("pipesim " PIPED_VERSION);
        return PSIM_DONE;
    }
    if (strcmp(argv[1], "--report") == 0) {
        argv[1] += 2;
    }
    for (const struct psim_command *c = psim_commands; c->name; c++) {
        if (strcmp(c->name, argv[1]) == 0) {
            int code;

            opterr = 0;
            code = c->run(argc - 1, argv + 1);
            if (fflush(stdout) != 0 && code == PSIM_DONE) {
                psim_say("cannot write the result: %s", strerror(errno));
                code = PSIM_FAILED;
            }
            return code;
        }
    }
    psim_say("no command '%s'; see pipesim --help", argv[1]);
    return PSIM_USAGE;
}
