/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: why it is slow or refuses frames, and what to do. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/doctor/doctor.h"
#include "apps/pipectl/doctor/facts.h"
#include "apps/pipectl/doctor/sample.h"

#define INDENT 4

struct args {
    const char *model, *save, *sample;
    double seconds;
};

static int take_args(int argc, char **argv, struct args *ret)
{
    int c, rc = CTL_DONE;

    *ret = (struct args){0};
    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        if (c == 'm') {
            ret->model = optarg;
        } else if (c == 'S') {
            ret->save = optarg;
        } else if (c == 'f') {
            ret->sample = optarg;
        } else if (!ctl_number(optarg, 0.1, 600, &ret->seconds)) {
            return ctl_usage(argv[0], "--seconds needs seconds from 0.1 to 600, not '%s'", optarg);
        }
    }
    if (rc == CTL_DONE && ret->sample && (ret->model || ret->save || ret->seconds > 0)) {
        return ctl_usage(argv[0], "--sample FILE judges what was seen before: without --model, "
                                  "--seconds and --save");
    }
    ret->seconds = ret->seconds > 0 ? ret->seconds : 2;
    return rc ? rc : ctl_no_more(argc, argv);
}

static void print_finding(const json_t *f)
{
    const json_t *share = json_object_get(f, "share");
    char line[2048], cost[32];

    snprintf(cost, sizeof(cost), "%.0f %%", 100 * json_number_value(share));
    snprintf(line, sizeof(line), "%s%s%s%s%s: %s", ctl_text(f, "name"),
             json_is_number(share) ? " " : "", json_is_number(share) ? cost : "",
             json_is_string(json_object_get(f, "model")) ? " " : "",
             json_is_string(json_object_get(f, "model")) ? ctl_text(f, "model") : "",
             ctl_text(f, "text"));
    ctl_print_wrapped(line, 0);
    printf("%*s", INDENT, "");
    ctl_print_wrapped(ctl_text(f, "advice"), INDENT);
}

/* Appends to the line @ret; what does not fit is cut. */
static void __attribute__((format(printf, 3, 4)))
append(char *ret, size_t bytes, const char *format, ...)
{
    size_t used = strlen(ret);
    va_list args;

    va_start(args, format);
    vsnprintf(ret + used, bytes - used, format, args);
    va_end(args);
}

static bool is_known(const json_t *object, const char *key)
{
    return json_is_number(json_object_get(object, key));
}

/* Return: one of several models, and it has answered nothing meanwhile. */
static bool is_idle(const json_t *figures, const json_t *m)
{
    return json_array_size(figures) > 1 && is_known(m, "fps") && ctl_real(m, "fps") == 0;
}

static bool is_segment(const json_t *m)
{
    return json_is_string(json_object_get(m, "segment"));
}

static void print_idle(const json_t *figures)
{
    char line[512] = "";
    const json_t *m;
    size_t i;

    json_array_foreach(figures, i, m)
    {
        if (is_idle(figures, m) && !is_segment(m)) {
            append(line, sizeof(line), "%s%s", *line ? ", " : "no frames: ", ctl_text(m, "model"));
        }
    }
    if (*line) {
        ctl_print_wrapped(line, 0);
    }
}

static void print_figures(const json_t *figures)
{
    const json_t *m;
    size_t i;

    json_array_foreach(figures, i, m)
    {
        char fps[32], p50[32], p99[32], line[512] = "";

        if (is_idle(figures, m)) {
            continue;
        }
        append(line, sizeof(line), "%s: %s frames/s, p50 %s ms, p99 %s ms; stage %s",
               ctl_text(m, is_segment(m) ? "segment" : "model"),
               ctl_known(m, "fps", "%.1f", fps, sizeof(fps)),
               ctl_known(m, "p50_ms", "%.2f", p50, sizeof(p50)),
               ctl_known(m, "p99_ms", "%.2f", p99, sizeof(p99)), ctl_text(m, "stage"));
        if (is_known(m, "busy")) {
            append(line, sizeof(line), " is busy for %.0f %%", 100 * ctl_real(m, "busy"));
        }
        if (is_known(m, "service_ms")) {
            append(line, sizeof(line), ", %.2f ms a frame", ctl_real(m, "service_ms"));
        }
        if (is_known(m, "expected_ms")) {
            append(line, sizeof(line), " (%.2f expected)", ctl_real(m, "expected_ms"));
        }
        if (is_known(m, "off_core")) {
            append(line, sizeof(line), ", off its cores for %.0f %% of that",
                   100 * ctl_real(m, "off_core"));
        }
        ctl_print_wrapped(line, 0);
    }
    print_idle(figures);
}

static void print_machine(const json_t *machine, double seconds)
{
    const json_t *c;
    char line[2048] = "";
    size_t i;

    append(line, sizeof(line), "machine");
    if (seconds > 0) {
        append(line, sizeof(line), ", over %.1f s", seconds);
    }
    append(line, sizeof(line), ":");
    if (is_known(machine, "cpu_waited")) {
        append(line, sizeof(line), " tasks waited for a CPU for %.0f %% of the time,",
               100 * ctl_real(machine, "cpu_waited"));
    }
    if (is_known(machine, "memory_waited")) {
        append(line, sizeof(line), " for memory for %.0f %%,",
               100 * ctl_real(machine, "memory_waited"));
    }
    append(line, sizeof(line), " a quota stopped the daemon for %.0f %%",
           100 * ctl_real(machine, "quota_stopped"));
    json_array_foreach(json_object_get(machine, "clocks"), i, c)
    {
        char cpus[128];

        if (is_known(c, "freq_khz") && is_known(c, "max_freq_khz")) {
            append(line, sizeof(line), "; %s at %.1f of %.1f GHz (%s)",
                   ctl_cpus("cpu", json_object_get(c, "cpus"), cpus, sizeof(cpus)),
                   ctl_real(c, "freq_khz") / 1e6, ctl_real(c, "max_freq_khz") / 1e6,
                   ctl_text(c, "governor"));
        }
    }
    ctl_print_wrapped(line, 0);
}

static int report(const struct ctl *ctl, const json_t *sample)
{
    double seconds = doctor_seconds(sample);
    json_t *findings = doctor_judge(sample), *figures = doctor_figures(sample);
    json_t *machine = doctor_machine(sample), *f;
    bool well = doctor_is_well(findings);
    size_t i;

    if (ctl->json) {
        json_t *v = json_pack("{s:b, s:O, s:O, s:O, s:f}", "well", well, "findings", findings,
                              "figures", figures, "machine", machine, "seconds", seconds);

        ctl_print_json(v);
        json_decref(v);
    } else {
        if (well) {
            puts(json_array_size(findings) ? "all is well; notes:\n" : "all is well\n");
        }
        json_array_foreach(findings, i, f)
        {
            print_finding(f);
            printf("\n");
        }
        print_figures(figures);
        print_machine(machine, seconds);
    }
    json_decref(findings);
    json_decref(figures);
    json_decref(machine);
    return well ? CTL_DONE : CTL_FAILED;
}

/* A sample that --save wrote. */
static int load(const char *path, json_t **ret)
{
    *ret = ctl_load_json(path);
    if (!*ret) {
        return CTL_FAILED;
    }
    if (!is_known(json_object_get(*ret, "before"), "uptime_s") ||
        !is_known(json_object_get(*ret, "after"), "uptime_s")) {
        ctl_say("%s is not a sample; pipectl doctor --save FILE writes one", path);
        return CTL_FAILED;
    }
    return CTL_DONE;
}

int ctl_doctor(const struct ctl *ctl, int argc, char **argv)
{
    json_t *sample = NULL;
    struct args a;
    int rc = take_args(argc, argv, &a);

    if (rc) {
        return rc;
    }
    rc = a.sample ? load(a.sample, &sample)
                  : doctor_sample(ctl, &(struct doctor_watch){a.model, a.seconds}, &sample);
    if (rc == CTL_DONE && a.save) {
        rc = ctl_save_json(a.save, sample, JSON_INDENT(2) | JSON_SORT_KEYS);
    }
    if (rc == CTL_DONE) {
        rc = report(ctl, sample);
    }
    json_decref(sample);
    return rc;
}
