/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl status: cores and sensors. Nothing unknown is shown. */
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/show/fold_segments.h"
#include "base/cli/shown_print.h"

static const char *why_of(const json_t *cpus, size_t i)
{
    return ctl_text(json_array_get(cpus, i), "why");
}

/* Prints one line for neighbours with the same reason. */
static void print_cores(const json_t *cpus)
{
    size_t count = json_array_size(cpus);

    printf("\n");
    for (size_t i = 0; i < count; i++) {
        double first = ctl_real(json_array_get(cpus, i), "cpu"), last = first;

        while (i + 1 < count && strcmp(why_of(cpus, i), why_of(cpus, i + 1)) == 0 &&
               ctl_real(json_array_get(cpus, i + 1), "cpu") == last + 1) {
            last = ctl_real(json_array_get(cpus, ++i), "cpu");
        }
        if (last > first) {
            shown_printf("cores %.0f-%.0f: %s\n", first, last, why_of(cpus, i));
        } else {
            shown_printf("core %.0f: %s\n", first, why_of(cpus, i));
        }
    }
}

static void print_heat(const json_t *sensors)
{
    const json_t *throttled = json_object_get(sensors, "throttled");
    json_t *z;
    size_t i, shown = 0;

    json_array_foreach(json_object_get(sensors, "thermal"), i, z)
    {
        if (json_is_number(json_object_get(z, "temp_c"))) {
            shown_printf("%s%s %.1f C%s", shown++ ? ", " : "heat: ", ctl_text(z, "type"),
                         ctl_real(z, "temp_c"),
                         json_is_true(json_object_get(z, "past_trip")) ? " (above its trip point)"
                                                                       : "");
        }
    }
    if (shown > 0) {
        printf("\n");
    }
    if (json_is_true(throttled)) {
        printf("heat or firmware holds the CPUs back\n");
    }
}

static void print_pressure(const json_t *sensors)
{
    const json_t *psi = json_object_get(sensors, "psi");
    const json_t *group = json_object_get(sensors, "cgroup");

    if (json_is_number(json_object_get(psi, "cpu_some_avg10"))) {
        printf("pressure: tasks waited for a CPU in %.1f %% of the last ten seconds\n",
               ctl_real(psi, "cpu_some_avg10"));
    }
    if (json_is_number(json_object_get(group, "quota_cpus"))) {
        printf("quota: %.2f CPUs, throttled for %.3f s\n", ctl_real(group, "quota_cpus"),
               ctl_real(group, "throttled_us") / 1e6);
    }
}

static void print_energy(const json_t *sensors)
{
    const json_t *energy = json_object_get(sensors, "energy");

    if (!json_is_number(json_object_get(energy, "joules"))) {
        return;
    }
    shown_printf("energy: %.1f J since the start (%s)", ctl_real(energy, "joules"),
                 ctl_text(energy, "source"));
    if (json_is_number(json_object_get(energy, "joules_per_frame"))) {
        printf(", %.3g J a frame", ctl_real(energy, "joules_per_frame"));
    }
    printf("\n");
}

void ctl_print_machine(const json_t *status)
{
    const json_t *sensors = json_object_get(status, "sensors");

    print_cores(json_object_get(status, "cpus"));
    print_heat(sensors);
    print_pressure(sensors);
    print_energy(sensors);
}

void ctl_print_segments(const json_t *owner)
{
    const json_t *segments = json_object_get(owner, "segments");
    char text[SHW_SEGMENT_BYTES];
    json_t *m;
    size_t i;

    shown_printf("%s", json_array_size(segments) > 0 ? "\n" : "");
    json_array_foreach((json_t *)(uintptr_t)segments, i, m)
    {
        shw_segment_text(m, text);
        shown_printf("computed here: %s, plan %s\n", text, ctl_text(m, "plan"));
    }
}

void ctl_print_failed(const json_t *failed)
{
    const json_t *m;
    size_t i;

    json_array_foreach(failed, i, m)
    {
        const char *name = ctl_text(m, "name"), *path = ctl_text(m, "path");
        const char *error = ctl_text(m, "error");

        /* the loader often begins with the file */
        shown_printf("%smodel %s FAILED: %s%s%s\n", i ? "" : "\n", name,
                     strncmp(error, path, strlen(path)) == 0 ? "" : path,
                     strncmp(error, path, strlen(path)) == 0 ? "" : ": ", error);
    }
    if (json_array_size(failed) > 0) {
        puts("mend the files, then pipectl reload; or take the models out of the configuration");
    }
}
