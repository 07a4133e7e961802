/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/args.h"

#include <getopt.h>

#include "apps/link/common/link.h"
#include "base/base.h"
#include "base/cli/cli_print.h"

#define UNUSED_S 30
#define UNUSED_MOST_S 86400
#define STORE_MOST_MB 1000000000

static void help(FILE *to)
{
    fputs("usage: piped-link [OPTIONS]\n\n"
          "Computes frames with other boards, by the daemons there and here. See piped-link(8).\n\n"
          "  --listen ADDRESS    IP or IP:PORT; default 0.0.0.0:8474\n"
          "  --state-dir DIR     keys and boards of pipectl board; default " BRD_FOLDER "\n"
          "  --runtime-dir DIR   reports of links; default " BRD_RUNTIME_FOLDER ", if it is there\n"
          "  --name NAME         of this board, for the others' logs; default: the host's\n"
          "  --socket PATH       the daemon's frames socket\n"
          "  --control PATH      the daemon's control socket; default: control.sock beside that\n"
          "  --models DIR        look there for files of models, IDENTITY.onnx\n"
          "  --store-mb MB       most that parts of other boards' models may take; default: the "
          "disk\n"
          "  --unused-s SECONDS  unload segments that nobody uses so long; default 30\n"
          "  --trusted-wire      do not encrypt; other boards must do the same\n",
          to);
}

static bool read_number(const char *option, double most, bool whole, double *ret)
{
    char wrong[CLI_WRONG_BYTES];

    if (cli_number(option, optarg, &(struct cli_range){0, most, whole, NULL}, ret, wrong)) {
        link_log("%s", wrong);
        return false;
    }
    return true;
}

int link_args_take(int argc, char **argv, struct link_args *ret)
{
    static const struct option options[] = {{"listen", 1, 0, 'l'},
                                            {"state-dir", 1, 0, 'd'},
                                            {"runtime-dir", 1, 0, 'u'},
                                            {"name", 1, 0, 'n'},
                                            {"socket", 1, 0, 's'},
                                            {"trusted-wire", 0, 0, 'w'},
                                            {"control", 1, 0, 'c'},
                                            {"models", 1, 0, 'm'},
                                            {"unused-s", 1, 0, 'k'},
                                            {"store-mb", 1, 0, 'b'},
                                            {"help", 0, 0, 'h'},
                                            {"version", 0, 0, 'v'},
                                            {0}};
    double store_mb = 0;
    int c;

    *ret = (struct link_args){.folder = BRD_FOLDER, .listen = "0.0.0.0", .unused_s = UNUSED_S};
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        const char **text = c == 'l'   ? &ret->listen
                            : c == 'd' ? &ret->folder
                            : c == 'u' ? &ret->runtime
                            : c == 'n' ? &ret->name
                            : c == 's' ? &ret->socket
                            : c == 'c' ? &ret->control
                            : c == 'm' ? &ret->models
                                       : NULL;

        if (text) {
            *text = optarg;
        } else if (c == 'w') {
            ret->trusted_wire = true;
        } else if (c == 'b' || c == 'k') {
            if (!(c == 'b' ? read_number("store-mb", STORE_MOST_MB, true, &store_mb)
                           : read_number("unused-s", UNUSED_MOST_S, false, &ret->unused_s))) {
                return EXIT_USAGE;
            }
        } else if (c == 'h') {
            help(stdout);
            return -1;
        } else if (c == 'v') {
            puts("piped-link " PIPED_VERSION);
            return -1;
        } else {
            cli_say_option("piped-link", options, c, argv);
            return EXIT_USAGE;
        }
    }
    ret->store_bytes = (uint64_t)store_mb * 1000000;
    if (optind < argc) {
        link_log("unknown argument '%s'; see --help", argv[optind]);
        return EXIT_USAGE;
    }
    return 0;
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
    return n > 0 && (size_t)n < sizeof(control);
}
