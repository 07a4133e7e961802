/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: the command line of piped. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/pipectl/pipectl.h"

const struct ctl_command ctl_commands[] = {
    {"status", "[--model M]", "what is served, by which plan, on which cores", ctl_status},
    {"infer",
     "[--model M] [--raw OUT.f32] [--expect LABELS] [--list FILE] [--top N] "
     "[--inline] FILE...",
     "answers to pictures (JPEG, PPM, PGM) or raw tensors (.f32)", ctl_infer},
    {"bench",
     "[--model M] [--frames N] [--seconds S] [--clients C] [--in-flight N] [--inline] [--rate FPS] "
     "[--verify] [--pixfmt F] [--size WxH] [--policy P] [--deadline MS] "
     "[--seed N] [--reconnect S]",
     "streams frames; reports speed, latency, order and loss", ctl_bench},
    {"plan", "[show | set PLAN | auto | front [--max N] | explain] [--model M]",
     "the plan in force, others and why; serve by another; give it back", ctl_plan},
    {"models", "[list | load NAME FILE [--plan PLAN] | unload NAME]",
     "what is loaded; load and unload", ctl_models},
    {"retune",
     "[--model M] [--algorithm A] [--objective O] [--fps F] [--latency MS] [--alpha N] "
     "[--heuristic 1..6] [--trials N] [--seed N] [--wait | --no-wait] | --cancel [--model M]",
     "search for a better plan on live frames", ctl_retune},
    {"history", "[--model M] [--limit N] [--trials]",
     "everything that changed a plan, and what was tried", ctl_history},
    {"costs", "[--model M]", "what each unit takes on each kind of core and width", ctl_costs},
    {"calibrate", "[--ms N]", "micro-benchmarks, for predictions of what was not measured",
     ctl_calibrate},
    {"optimise",
     "[MODEL] [--objective O] [--algorithm A] [--memory MIB] [--inexact | --calibrate DIR "
     "[--agreement R]] [--episodes N] [--seed N] "
     "[--ms N] [--pareto] [--svg FILE]",
     "measure the primitives anew and serve by the best", ctl_optimise},
    {"quantize",
     "[MODEL] --calibrate DIR [--min-max | --kl] [--symmetric] [--keep OP]... [--bound PERCENT] "
     "[--ms N] "
     "[--write FILE] | [MODEL] --off",
     "serve an f32 model on integers, or no longer", ctl_quantize},
    {"quantise", "", NULL, ctl_quantize},
    {"units", "[--model M]", "unit by unit: weight, time, primitive", ctl_units},
    {"metrics", "", "counters in Prometheus text format", ctl_metrics},
    {"config", "", "the configuration in force and where it comes from", ctl_config},
    {"reload", "", "read the configuration again", ctl_reload},
    {"subscribe", "", "one line for every change, until interrupted (also: watch)", ctl_subscribe},
    {"watch", "", NULL, ctl_subscribe},
    {NULL, NULL, NULL, NULL},
};

void ctl_say(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fputs("pipectl: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int ctl_usage(const char *command, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "pipectl %s: ", command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    for (const struct ctl_command *c = ctl_commands; c->name; c++) {
        if (strcmp(c->name, command) == 0) {
            fprintf(stderr, "usage: pipectl [--socket PATH] [--json] %s %s\n", c->name, c->usage);
        }
    }
    return CTL_USAGE;
}

int ctl_option(int argc, char **argv, const struct option *options)
{
    opterr = 0;
    return getopt_long(argc, argv, ":", options, NULL);
}

bool ctl_number(const char *text, double least, double most, double *ret)
{
    char *end;
    double v;

    errno = 0;
    v = strtod(text, &end);
    if (errno || end == text || *end || !(v >= least && v <= most)) {
        return false;
    }
    *ret = v;
    return true;
}

static void help(FILE *to)
{
    fputs("usage: pipectl [--socket PATH] [--json] COMMAND [ARGUMENTS]\n\n", to);
    for (const struct ctl_command *c = ctl_commands; c->name; c++) {
        if (c->help) {
            fprintf(to, "  %-10s %s\n", c->name, c->help);
        }
    }
    fputs("\n--socket names the control socket (default $PIPED_RUNTIME_DIR/control.sock, else\n"
          "/run/piped/control.sock); frames.sock is looked for beside it. --json prints JSON.\n"
          "exit codes: 0 done, 1 failed, 2 wrong usage, 3 daemon not reachable, 4 degraded\n"
          "see pipectl(1)\n",
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
        ctl_say("the path of the socket is too long (107 bytes at most)");
        return CTL_USAGE;
    }
    return CTL_DONE;
}

/* --json and --socket are taken from anywhere on the line, so that they may follow the command.
 * Return: the new argc, or -1. */
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

int main(int argc, char **argv)
{
    struct ctl ctl = {0};
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
    for (const struct ctl_command *c = ctl_commands; c->name; c++) {
        if (strcmp(c->name, argv[1]) == 0) {
            rc = c->run(&ctl, argc - 1, argv + 1);
            if (fflush(stdout) != 0 && rc == CTL_DONE) {
                ctl_say("cannot write the result: %s", strerror(errno));
                rc = CTL_FAILED;
            }
            return rc;
        }
    }
    ctl_say("no command '%s'; see pipectl --help", argv[1]);
    return CTL_USAGE;
}
