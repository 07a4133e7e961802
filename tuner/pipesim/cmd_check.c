/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base.h"
#include "tuner/pipesim/check.h"

void psim_check(struct psim_checks *c, bool ok, const char *name, const char *format, ...)
{
    va_list args;

    printf("%s %s: ", ok ? "ok" : "FAIL", name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    *(ok ? &c->passed : &c->failed) += 1;
}

static void usage(FILE *to)
{
    fprintf(to,
            "usage: pipesim check [--seed N] [--share S] [--table FILE]\n"
            "Checks what must hold of the searches: figures of the papers, the exact planner\n"
            "against brute force and with a wrong cost table, every algorithm on every network\n"
            "and machine. Exit code 0 when everything holds, 1 otherwise.\n"
            "  --seed N      of the random cases (default 1)\n"
            "  --share S     of the random cases to run, above 0 to 1 (default 1)\n"
            "  --table FILE  write every row of the comparison as a Markdown table\n");
}

int psim_cmd_check(int argc, char **argv)
{
    static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                            {"share", required_argument, NULL, 'f'},
                                            {"table", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct psim_checks c = {.seed = 1, .share = 1};
    uint64_t began = base_now_ns();
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        char *end = NULL;

        if (option == 'h') {
            usage(stdout);
            return 0;
        } else if (option == 's') {
            c.seed = strtoull(optarg, &end, 10);
        } else if (option == 'f') {
            c.share = strtod(optarg, &end);
        } else if (option == 't') {
            c.table_path = optarg;
        } else {
            usage(stderr);
            return 2;
        }
        if (end && (*end || !(c.share > 0 && c.share <= 1))) {
            fprintf(stderr, "pipesim: check: '%s' is not a number it takes\n", optarg);
            return 2;
        }
    }
    if (optind < argc) {
        usage(stderr);
        return 2;
    }
    psim_check_facts(&c);
    psim_check_solver(&c);
    psim_check_doubt(&c);
    psim_check_table(&c);
    printf("cases: %zu passed, %zu failed, 0 skipped\nin %.0f s\n", c.passed, c.failed,
           (double)(base_now_ns() - began) / 1e9);
    return c.failed ? 1 : 0;
}
