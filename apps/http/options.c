/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/http/options.h"

#include <stdarg.h>

#include "base/base.h"
#include "base/cli/cli_print.h"
#include "base/cli/shown_print.h"
#include "ipc/piped.h"

#define PROGRAM "piped-http"

/* Ids of options: numbers are found by name, and a text is at its id, less TEXT, in the options. */
enum { NUMBER = 256, LISTEN, HELP, VERSION, TEXT };

#define AT(field) (int)offsetof(struct web_options, field)

static const struct cli_option OPTIONS[] = {
    {"listen", LISTEN, "ADDRESS", "@none",
     "IP:PORT, localhost:PORT or unix:PATH; default 127.0.0.1:8000", .many = true},
    {"group", TEXT + AT(group), "NAME", "@none",
     "group that may connect to unix:PATH; default: its own"},
    {"socket", TEXT + AT(socket), "PATH", "@file", "the daemon's frames socket"},
    {"control", TEXT + AT(control), "PATH", "@file",
     "the daemon's control socket; default: control.sock beside that"},
    {"token-file", TEXT + AT(token_file), "FILE", "@file",
     "requests need the bearer token that FILE holds"},
    {"tls-cert", TEXT + AT(tls_cert), "FILE", "@file",
     "certificate chain (PEM): TLS on all but Unix sockets"},
    {"tls-key", TEXT + AT(tls_key), "FILE", "@file", "its private key (PEM)"},
    {"tls-client-ca", TEXT + AT(tls_client_ca), "FILE", "@file",
     "clients need a certificate of these issuers (PEM)"},
    {"connections", NUMBER, "N", "@none", "most connections of each address; default 64"},
    {"per-address", NUMBER, "N", "@none",
     "most of them from one IP address of another machine; default 32"},
    {"per-user", NUMBER, "N", "@none", "most of them from one user of this machine; default 48"},
    {"request-s", NUMBER, "S", "@none",
     "time for a whole request, for taking an answer, and for saying nothing; default 30"},
    {"body-mb", NUMBER, "MB", "@none", "largest body of a request; default 64"},
    {"memory-mb", NUMBER, "MB", "@none", "most memory for all requests; default 256"},
    {"image-mpixels", NUMBER, "N", "@none", "largest picture, in megapixels; default 64"},
    {"streams", NUMBER, "N", "@none", "most frames of a model at once; default 8"},
    {"streams-total", NUMBER, "N", "@none", "most frames of all models at once; default 32"},
    {"queue", NUMBER, "N", "@none", "most requests that wait for one of these; default 64"},
    {"policy", TEXT + AT(policy), "P", "block reject",
     "what happens when the daemon is busy; default block"},
    {"deadline-ms", NUMBER, "MS", "@none",
     "deadline of frames whose request names none; default 0: none"},
    {"answer-s", NUMBER, "S", "@none", "longest time for an answer of the daemon; default 60"},
    {"reconnect-s", NUMBER, "S", "@none",
     "how long frames wait for a daemon that went away; default 10"},
    {"drain-s", NUMBER, "S", "@none", "at the end: time for requests that have begun; default 10"},
    {"help", HELP, NULL, NULL, "print this"},
    {"version", VERSION, NULL, NULL, "print the version"},
    {0}};
static const struct cli_command COMMAND = {"piped-http", NULL, "", "", OPTIONS, NULL};

static const struct {
    const char *name;
    int at;
    double usual;
    struct cli_range range;
} NUMBERS[] = {
    {"connections", AT(connections), 64, {1, 4096, true, NULL}},
    {"per-address", AT(per_address), 32, {1, 4096, true, NULL}},
    {"per-user", AT(per_user), 48, {1, 4096, true, NULL}},
    {"request-s", AT(request_s), 30, {0.1, 3600, false, NULL}},
    {"body-mb", AT(body_mb), 64, {0.001, 1024, false, NULL}},
    {"memory-mb", AT(memory_mb), 256, {0.001, 65536, false, NULL}},
    {"image-mpixels", AT(image_mpixels), 64, {0.001, 256, false, NULL}},
    {"streams", AT(streams), 8, {1, 256, true, NULL}},
    {"streams-total", AT(streams_total), 32, {1, 1024, true, NULL}},
    {"queue", AT(queue), 64, {0, 4096, true, NULL}},
    {"deadline-ms", AT(deadline_ms), 0, {0, 3600000, false, NULL}},
    {"answer-s", AT(answer_s), 60, {0.1, 3600, false, NULL}},
    {"reconnect-s", AT(reconnect_s), 10, {0.1, 3600, false, NULL}},
    {"drain-s", AT(drain_s), 10, {0, 3600, false, NULL}},
};

void web_log(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    shown_vsay(PROGRAM, format, args);
    va_end(args);
}

int web_refuse(int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    shown_vsay(PROGRAM, format, args);
    va_end(args);
    return code;
}

static void help(void)
{
    puts("usage: piped-http [OPTIONS]\n\nServes the daemon's models over HTTP by the Open "
         "Inference Protocol v2. See piped-http(8).\n");
    for (const struct cli_option *o = OPTIONS; o->name; o++) {
        char text[48];

        snprintf(text, sizeof(text), "--%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        shown_printf("  %-20s %s\n", text, o->help);
    }
}

static int take_number(const char *name, const char *text, struct web_options *ret)
{
    char wrong[CLI_WRONG_BYTES];

    for (size_t i = 0; i < base_array_count(NUMBERS); i++) {
        if (strcmp(NUMBERS[i].name, name) == 0) {
            double *at = (double *)((char *)ret + NUMBERS[i].at);

            if (cli_number(name, text, &NUMBERS[i].range, at, wrong)) {
                return web_refuse(WEB_EXIT_USAGE, "%s", wrong);
            }
        }
    }
    return 0;
}

static int take_listen(const char *text, struct web_options *ret)
{
    if (ret->listen_count == WEB_LISTEN_MAX) {
        return web_refuse(WEB_EXIT_USAGE, "--listen: at most %u addresses", WEB_LISTEN_MAX);
    }
    ret->listen[ret->listen_count++] = text;
    return 0;
}

static int take(int id, const struct cli_option *row, struct web_options *o)
{
    if (id >= TEXT) {
        *(const char **)((char *)o + id - TEXT) = optarg;
        return 0;
    }
    return id == LISTEN ? take_listen(optarg, o) : take_number(row->name, optarg, o);
}

static int unknown(int id, char **argv)
{
    char wrong[CLI_WRONG_BYTES];

    return web_refuse(WEB_EXIT_USAGE, "%s", cli_wrong_of(&COMMAND, id, argv, wrong));
}

static int set_paths(struct web_options *o)
{
    const char *slash;
    int n = 0;

    if (o->socket) {
        n = snprintf(o->frames_path, sizeof(o->frames_path), "%s", o->socket);
    } else if (piped_socket_path(o->frames_path, sizeof(o->frames_path)) < 0) {
        n = (int)sizeof(o->frames_path);
    }
    if (n < (int)sizeof(o->frames_path)) {
        slash = strrchr(o->frames_path, '/');
        n = o->control ? snprintf(o->control_path, sizeof(o->control_path), "%s", o->control)
                       : snprintf(o->control_path, sizeof(o->control_path), "%.*scontrol.sock",
                                  slash ? (int)(slash + 1 - o->frames_path) : 0, o->frames_path);
    }
    if (n >= (int)sizeof(o->control_path)) {
        return web_refuse(WEB_EXIT_USAGE, "the path of the daemon's socket is too long");
    }
    return 0;
}

static int judge(const struct web_options *o)
{
    const char *wrong = !o->tls_cert != !o->tls_key ? "--tls-cert and --tls-key belong together"
                        : o->tls_client_ca && !o->tls_cert
                            ? "--tls-client-ca needs --tls-cert and --tls-key"
                        : strcmp(o->policy, "block") != 0 && strcmp(o->policy, "reject") != 0
                            ? "--policy is block or reject"
                        : o->body_mb > o->memory_mb ? "--memory-mb must be at least --body-mb"
                                                    : NULL;

    if (wrong) {
        return web_refuse(WEB_EXIT_USAGE, "%s", wrong);
    }
    return 0;
}

int web_options_take(int argc, char **argv, struct web_options *ret)
{
    const struct cli_option *row;
    int id, rc = 0;

    *ret = (struct web_options){.policy = "block"};
    for (size_t i = 0; i < base_array_count(NUMBERS); i++) {
        *(double *)((char *)ret + NUMBERS[i].at) = NUMBERS[i].usual;
    }
    while (rc == 0 && (id = cli_getopt(&COMMAND, argc, argv, &row)) != -1) {
        if (id == HELP) {
            help();
            return -1;
        }
        if (id == VERSION) {
            puts("piped-http " PIPED_VERSION);
            return -1;
        }
        rc = row ? take(id, row, ret) : unknown(id, argv);
    }
    if (rc == 0 && optind < argc) {
        web_log("unknown argument '%s'; see --help", argv[optind]);
        rc = WEB_EXIT_USAGE;
    }
    rc = rc ? rc : judge(ret);
    return rc ? rc : set_paths(ret);
}
