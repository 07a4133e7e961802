/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: why it is slow or refuses frames, and what to do. */
#include <stdarg.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/doctor/doctor.h"
#include "apps/pipectl/doctor/facts.h"

static int take_args(int argc, char **argv, struct ctl_options *o)
{
    int rc = ctl_take_all(argc, argv, o, NULL);

    if (rc == CTL_DONE && o->sample && (o->model || o->save_to || o->seconds > 0)) {
        return ctl_usage(argv[0], "--sample FILE judges what was seen before: without --model, "
                                  "--seconds and --save");
    }
    o->seconds = o->seconds > 0 ? o->seconds : 2;
    return rc;
}

static void print_finding(const json_t *f)
{
    const char *model = json_text_of(f, "model");
    char cost[32] = "";

    if (ctl_has(f, "share")) {
        snprintf(cost, sizeof(cost), " %.0f %%", 100 * ctl_real(f, "share"));
    }
    ctl_print_under("", 0, "%s%s%s%s: %s", ctl_text(f, "name"), cost, *model ? " " : "", model,
                    ctl_text(f, "text"));
    ctl_print_under("    ", 4, "%s", ctl_text(f, "advice"));
}

/* Return: one of several models, and it has answered nothing meanwhile. */
static bool is_idle(const json_t *figures, const json_t *m)
{
    return json_array_size(figures) > 1 && ctl_has(m, "fps") && ctl_real(m, "fps") == 0;
}

static bool is_segment(const json_t *m)
{
    return json_is_string(json_object_get(m, "segment"));
}

static void print_idle(const json_t *figures)
{
    char line[512] = "";

    json_text_each(figures, i, m) {
        if (is_idle(figures, m) && !is_segment(m)) {
            base_append(line, sizeof(line), "%s%s",
                        *line ? ", " : "no frames: ", ctl_text(m, "model"));
        }
    }
    if (*line) {
        ctl_print_wrapped(line, 0);
    }
}

static void print_figures(const json_t *figures)
{
    json_text_each(figures, i, m) {
        char line[512] = "";

        if (is_idle(figures, m)) {
            continue;
        }
        base_append(line, sizeof(line), "%s: %s frames/s, p50 %s ms, p99 %s ms; stage %s",
                    ctl_text(m, is_segment(m) ? "segment" : "model"),
                    ctl_known(m, "fps", "%.1f").text, ctl_known(m, "p50_ms", "%.2f").text,
                    ctl_known(m, "p99_ms", "%.2f").text, ctl_text(m, "stage"));
        if (ctl_has(m, "busy")) {
            base_append(line, sizeof(line), " is busy for %.0f %%", 100 * ctl_real(m, "busy"));
        }
        if (ctl_has(m, "service_ms")) {
            base_append(line, sizeof(line), ", %.2f ms a frame", ctl_real(m, "service_ms"));
        }
        if (ctl_has(m, "expected_ms")) {
            base_append(line, sizeof(line), " (%.2f expected)", ctl_real(m, "expected_ms"));
        }
        if (ctl_has(m, "off_core")) {
            base_append(line, sizeof(line), ", off its cores for %.0f %% of that",
                        100 * ctl_real(m, "off_core"));
        }
        ctl_print_wrapped(line, 0);
    }
    print_idle(figures);
}

static void print_machine(const json_t *machine, double seconds)
{
    char line[2048] = "";

    base_append(line, sizeof(line), "machine");
    if (seconds > 0) {
        base_append(line, sizeof(line), ", over %.1f s", seconds);
    }
    base_append(line, sizeof(line), ":");
    if (ctl_has(machine, "cpu_waited")) {
        base_append(line, sizeof(line), " tasks waited for a CPU for %.0f %% of the time,",
                    100 * ctl_real(machine, "cpu_waited"));
    }
    if (ctl_has(machine, "memory_waited")) {
        base_append(line, sizeof(line), " for memory for %.0f %%,",
                    100 * ctl_real(machine, "memory_waited"));
    }
    base_append(line, sizeof(line), " a quota stopped the daemon for %.0f %%",
                100 * ctl_real(machine, "quota_stopped"));
    json_text_each(json_object_get(machine, "clocks"), i, c) {
        if (ctl_has(c, "freq_khz") && ctl_has(c, "max_freq_khz")) {
            base_append(line, sizeof(line), "; %s at %.1f of %.1f GHz (%s)",
                        ctl_cpus("cpu", json_object_get(c, "cpus")).text,
                        ctl_real(c, "freq_khz") / 1e6, ctl_real(c, "max_freq_khz") / 1e6,
                        ctl_text(c, "governor"));
        }
    }
    ctl_print_wrapped(line, 0);
}

static int report(const struct ctl *ctl, const json_t *sample)
{
    double seconds = doctor_seconds(sample);
    json_auto_t *findings = doctor_judge(sample), *figures = doctor_figures(sample);
    json_auto_t *machine = doctor_machine(sample);
    bool well = doctor_is_well(findings);

    if (ctl->json) {
        ctl_print_new(json_pack("{s:b, s:O, s:O, s:O, s:f}", "well", well, "findings", findings,
                                "figures", figures, "machine", machine, "seconds", seconds));
        return well ? CTL_DONE : CTL_FAILED;
    }
    if (well) {
        puts(json_array_size(findings) ? "all is well; notes:\n" : "all is well\n");
    }
    json_text_each(findings, i, f) {
        print_finding(f);
        printf("\n");
    }
    print_figures(figures);
    print_machine(machine, seconds);
    return well ? CTL_DONE : CTL_FAILED;
}

/* A sample that --save wrote. */
static int load(const char *path, json_t **ret)
{
    *ret = ctl_load_json(path);
    if (!*ret) {
        return CTL_FAILED;
    }
    if (!ctl_has(*ret, "before.uptime_s") || !ctl_has(*ret, "after.uptime_s")) {
        return ctl_fail("%s is not a sample; pipectl doctor --save FILE writes one", path);
    }
    return CTL_DONE;
}

int ctl_doctor(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *sample = NULL;
    struct ctl_options o = {0};
    int rc = take_args(argc, argv, &o);

    if (rc) {
        return rc;
    }
    rc = o.sample ? load(o.sample, &sample)
                  : doctor_sample(ctl, &(struct doctor_watch){o.model, o.seconds}, &sample);
    if (rc == CTL_DONE && o.save_to) {
        rc = ctl_save_json(o.save_to, sample, JSON_INDENT(2) | JSON_SORT_KEYS);
    }
    return rc ? rc : report(ctl, sample);
}
