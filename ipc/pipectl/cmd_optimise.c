/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl optimise: another choice of primitives, or what could be chosen. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "ipc/pipectl/pipectl.h"

/* What the daemon can be told; each is a parameter of Optimise. */
static const struct setting {
    const char *option, *parameter;
    char type; /* 's' text, 'i' whole number, 'f' number, 'b' given or not */
    double least, most;
} settings[] = {
    {"objective", "objective", 's', 0, 0},    {"algorithm", "algorithm", 's', 0, 0},
    {"memory", "packed_mib", 'f', 1e-3, 1e6}, {"inexact", "inexact", 'b', 0, 0},
    {"agreement", "agreement", 'f', 0, 1},    {"episodes", "episodes", 'i', 1, 1e6},
    {"seed", "seed", 'i', 1, 9e15},           {"ms", "ms", 'i', 1, 600000},
    {"pareto", "pareto", 'b', 0, 0},
};

#define OPTION_SETTING 256
#define FIRST_SETTING 3u /* behind the options that are none */
#define OPTION_SVG 's'
#define OPTION_CALIBRATE 'c'

struct args {
    json_t *parameters; /* owned */
    const char *svg, *calibrate;
};

static int take_setting(const struct setting *s, const char *text, json_t *parameters)
{
    json_t *value;
    double number;

    if (s->type == 'b') {
        value = json_true();
    } else if (s->type == 's') {
        value = json_string(text);
    } else if (!ctl_number(text, s->least, s->most, &number) ||
               (s->type == 'i' && number != (double)(json_int_t)number)) {
        return ctl_usage("optimise", "--%s needs a %snumber from %.15g to %.15g, got '%s'",
                         s->option, s->type == 'i' ? "whole " : "", s->least, s->most, text);
    } else {
        value = s->type == 'i' ? json_integer((json_int_t)number) : json_real(number);
    }
    return json_object_set_new(parameters, s->parameter, value) < 0
               ? ctl_usage("optimise", "--%s is not UTF-8", s->option)
               : CTL_DONE;
}

static int take_args(int argc, char **argv, struct args *ret)
{
    struct option options[base_array_count(settings) + FIRST_SETTING + 1] = {
        {"model", required_argument, NULL, 'm'},
        {"svg", required_argument, NULL, OPTION_SVG},
        {"calibrate", required_argument, NULL, OPTION_CALIBRATE}};
    int c, rc;

    for (size_t i = 0; i < base_array_count(settings); i++) {
        options[FIRST_SETTING + i] = (struct option){
            settings[i].option, settings[i].type == 'b' ? no_argument : required_argument, NULL,
            OPTION_SETTING + (int)i};
    }
    while ((c = ctl_option(argc, argv, options)) != -1) {
        if (c == '?' || c == ':') {
            return ctl_usage("optimise", "unknown or incomplete option %s", argv[optind - 1]);
        }
        if (c == OPTION_SVG) {
            ret->svg = optarg;
            json_object_set_new(ret->parameters, "pareto", json_true());
        } else if (c == OPTION_CALIBRATE) {
            ret->calibrate = optarg;
        } else if (c == 'm') {
            if (json_object_set_new(ret->parameters, "model", json_string(optarg)) < 0) {
                return ctl_usage("optimise", "the model's name is not UTF-8");
            }
        } else {
            rc = take_setting(&settings[c - OPTION_SETTING], optarg, ret->parameters);
            if (rc) {
                return rc;
            }
        }
    }
    if (optind < argc && !json_object_get(ret->parameters, "model")) {
        if (json_object_set_new(ret->parameters, "model", json_string(argv[optind++])) < 0) {
            return ctl_usage("optimise", "the model's name is not UTF-8");
        }
    }
    return optind < argc ? ctl_usage("optimise", "'%s' is too much", argv[optind]) : CTL_DONE;
}

static void print_choice(const json_t *choice)
{
    const json_t *entry;
    size_t i;

    printf("%s: %s, %s, measured in %.1f s\n", json_string_value(json_object_get(choice, "model")),
           json_string_value(json_object_get(choice, "algorithm")),
           json_string_value(json_object_get(choice, "objective")),
           ctl_real(choice, "took_ms") / 1e3);
    if (json_is_real(json_object_get(choice, "agreement"))) {
        printf("  %.2f %% of the calibration set keep their class\n",
               100 * ctl_real(choice, "agreement"));
    }
    if (ctl_text(choice, "note")[0]) {
        printf("  %s\n", ctl_text(choice, "note"));
    }
    json_array_foreach(json_object_get(choice, "kinds"), i, entry)
    {
        printf("  %-16s %9.3f ms on one core, %8.2f MB packed\n",
               json_string_value(json_object_get(entry, "ep")), ctl_real(entry, "ms"),
               ctl_real(entry, "packed_bytes") / 1e6);
    }
    if (json_array_size(json_object_get(choice, "front"))) {
        printf("front, nothing was changed:\n");
    }
    json_array_foreach(json_object_get(choice, "front"), i, entry)
    {
        printf("  %9.3f ms  %8.2f MB", ctl_real(entry, "ms"),
               ctl_real(entry, "packed_bytes") / 1e6);
        if (ctl_real(entry, "inexact") > 0) {
            printf("  %.0f ops inexact", ctl_real(entry, "inexact"));
        }
        printf("\n");
    }
}

int ctl_optimise(const struct ctl *ctl, int argc, char **argv)
{
    struct args args = {.parameters = json_object()};
    json_t *reply, *choice;
    int rc = take_args(argc, argv, &args);

    if (rc) {
        json_decref(args.parameters);
        return rc;
    }
    rc = ctl_call_examples(ctl, "Optimise", args.calibrate, args.parameters, &reply);
    if (rc) {
        return rc;
    }
    choice = json_object_get(reply, "choice");
    if (ctl->json) {
        ctl_print_json(choice);
    } else {
        print_choice(choice);
    }
    if (args.svg) {
        rc = ctl_front_svg(args.svg, json_object_get(choice, "front"));
    }
    json_decref(reply);
    return rc;
}
