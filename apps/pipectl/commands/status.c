/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl status: what is served, how fast, and where. */
#include <math.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/show/fold_segments.h"

static void print_stages(const json_t *model)
{
    static const struct cli_column columns[] = {
        {"stage", "stage", 'l'},
        {"units", "units", 'l'},
        {"ep", "ep", 'l'},
        {"cpus", "cpus", 'l'},
        {"width", "width", 'r'},
        {"x", "replicas", 'r'},
        {"service ms", "service_ms", 'r', CLI_DECIMALS, 3},
        {"expected ms", "expected_ms", 'r', CLI_DECIMALS, 3},
        {"busy", "busy", 'r', CLI_DECIMALS, 0, 100, " %"},
        {"queue", "queue", 'r'},
        {0}};

    cli_print_rows(json_object_get(model, "stages"), columns);
}

static void print_mix(const json_t *mix)
{
    if (json_is_object(mix)) {
        printf("\n");
        ctl_print_wrapped(ctl_mix_reaches(mix).text, 0);
        ctl_print_wishes_kept(mix);
    }
}

/* The boards that share the model, or why it is served here alone. */
static void print_route(const json_t *route)
{
    if (!json_is_object(route)) {
        return;
    }
    if (!ctl_is(route, "serving")) {
        shown_printf("  boards \"%s\": this board alone: %s\n", ctl_text(route, "boards"),
                     ctl_text(route, "why"));
    }
    if (!*ctl_text(route, "route")) {
        return;
    }
    shown_printf("  route %s (%s, number %.0f): %.0f answered, %.0f sent again, %.0f wholly here\n",
                 ctl_text(route, "route"), ctl_text(route, "phase"), ctl_real(route, "number"),
                 ctl_real(route, "answered"), ctl_real(route, "resent"), ctl_real(route, "here"));
    json_text_each(json_object_get(route, "hops"), i, hop) {
        shown_printf("    units %s:", ctl_text(hop, "units"));
        json_text_each(json_object_get(hop, "boards"), k, board) {
            shown_printf(" %s%s", ctl_text(board, "name"), ctl_is(board, "up") ? "" : " (away)");
        }
        if (ctl_real(hop, "service_ms") > 0) {
            printf(", %.3f ms", ctl_real(hop, "service_ms"));
        }
        printf("\n");
    }
    json_text_each(json_object_get(route, "segments"), i, hop) {
        const json_t *its = json_object_get(hop, "segment");

        shown_printf("    computed here: units %.0f-%.0f, plan %s\n", ctl_real(its, "first_unit"),
                     ctl_real(its, "last_unit"), ctl_text(hop, "plan"));
    }
    if (json_is_boolean(json_object_get(route, "pictures"))) {
        shown_printf("    pictures go as %s\n",
                     ctl_is(route, "pictures") ? "they are, larger ones as tensors" : "tensors");
    }
}

/* Those that a model has. */
static void print_wishes(const json_t *w, const json_t *frames)
{
    char text[CTL_WISHES_BYTES];

    if (ctl_wishes_text(w, text)) {
        shown_printf("  is to have %s\n", text);
    }
    if (ctl_real(frames, "due") > 0) {
        printf("  late: %.0f of %.0f frames\n", ctl_real(frames, "late"), ctl_real(frames, "due"));
    }
}

/* What the plan for all models gives it. */
static void print_given(const json_t *mix, const json_t *model)
{
    const json_t *row =
        json_text_same(json_object_get(mix, "models"), "model", json_object_get(model, "name"));

    if (row) {
        ctl_print_under("  planned: ", 11, "%s", ctl_mix_gives(row).text);
    }
}

static void print_model(const json_t *mix, const json_t *m)
{
    const json_t *frames = json_object_get(m, "frames");

    shown_printf("\nmodel %s: %s units, input %s\n", ctl_text(m, "name"), ctl_any(m, "units").text,
                 ctl_any(m, "input").text);
    shown_printf("  plan %s (%s, epoch %s)\n", ctl_text(m, "plan"), ctl_text(m, "algorithm"),
                 ctl_any(m, "epoch").text);
    shown_printf("  %.1f frames/s, latency ms: %s\n", ctl_real(m, "fps"),
                 ctl_real(frames, "answered") > 0 ? ctl_any(m, "latency_ms").text : "-");
    printf("  frames: %.0f admitted, %.0f answered, %.0f dropped, %.0f failed\n",
           ctl_real(frames, "admitted"), ctl_real(frames, "answered"), ctl_real(frames, "dropped"),
           ctl_real(frames, "failed"));
    print_wishes(json_object_get(m, "wishes"), frames);
    print_given(mix, m);
    print_route(json_object_get(m, "route"));
    print_stages(m);
}

static void print_boards(const json_t *boards)
{
    struct cli_table t = {.align = "llrrrrl"};

    if (json_array_size(boards) == 0) {
        return;
    }
    cli_table_add(&t, "board\tis\tfor s\tmessage us\tus a 1000 bytes\tmemory MiB\tplaces");
    json_text_each(boards, i, b) {
        const json_t *link = json_object_get(b, "link");
        double bytes = ctl_real(b, "memory_bytes");

        cli_table_add(
            &t, "%s\t%s\t%.0f\t%s\t%s\t%s\t%s", ctl_text(b, "name"),
            ctl_is(b, "up") ? "there" : "away", ctl_real(b, "for_s"),
            ctl_known(link, "message_us", "%.0f").text, ctl_known(link, "kilobyte_us", "%.2f").text,
            ctl_format(bytes > 0 ? bytes / (1 << 20) : NAN, "%.0f").text, ctl_places(b).text);
    }
    printf("\n");
    cli_table_print(&t);
}

static void print_eps(const json_t *eps)
{
    static const struct cli_column columns[] = {
        {"ep", "name", 'l'},
        {"cpus", "cpus", 'l'},
        {"kind", "kind", 'l'},
        {"governor", "governor", 'l'},
        {"MHz", "freq_khz", 'r', CLI_DECIMALS, 0, 1e-3},
        {"max MHz", "max_freq_khz", 'r', CLI_DECIMALS, 0, 1e-3},
        {"speed", "speed", 'r'},
        {"used", "used", 'l'},
        {"why", "why", 'l'},
        {0}};

    printf("\n");
    cli_print_rows(eps, columns);
}

/* @owner: the status, or a model, whose name is then @name. */
static void print_warnings(const json_t *owner, const char *name)
{
    json_text_each(json_object_get(owner, "warnings"), i, w) {
        if (json_is_string(w)) {
            shown_printf("\nwarning%s%s: %s\n", name ? " of " : "", name ? name : "",
                         json_string_value(w));
        }
    }
}

static void print_memory(const json_t *memory)
{
    const double mib = 1 << 20;

    if (ctl_real(memory, "resident_bytes") > 0) {
        printf("\nmemory: %.1f MiB; weights %.1f MiB, packed %.1f MiB, arenas %.1f MiB\n",
               ctl_real(memory, "resident_bytes") / mib, ctl_real(memory, "weight_bytes") / mib,
               ctl_real(memory, "packed_bytes") / mib, ctl_real(memory, "arena_bytes") / mib);
    }
}

/* ---- cores and sensors: nothing unknown is shown ---- */

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
    size_t shown = 0;

    json_text_each(json_object_get(sensors, "thermal"), i, z) {
        if (ctl_has(z, "temp_c")) {
            shown_printf("%s%s %.1f C%s", shown++ ? ", " : "heat: ", ctl_text(z, "type"),
                         ctl_real(z, "temp_c"),
                         ctl_is(z, "past_trip") ? " (above its trip point)" : "");
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

    if (ctl_has(psi, "cpu_some_avg10")) {
        printf("pressure: tasks waited for a CPU in %.1f %% of the last ten seconds\n",
               ctl_real(psi, "cpu_some_avg10"));
    }
    if (ctl_has(group, "quota_cpus")) {
        printf("quota: %.2f CPUs, throttled for %.3f s\n", ctl_real(group, "quota_cpus"),
               ctl_real(group, "throttled_us") / 1e6);
    }
}

static void print_energy(const json_t *sensors)
{
    const json_t *energy = json_object_get(sensors, "energy");

    if (!ctl_has(energy, "joules")) {
        return;
    }
    shown_printf("energy: %.1f J since the start (%s)", ctl_real(energy, "joules"),
                 ctl_text(energy, "source"));
    if (ctl_has(energy, "joules_per_frame")) {
        printf(", %.3g J a frame", ctl_real(energy, "joules_per_frame"));
    }
    printf("\n");
}

static void print_machine(const json_t *status)
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

    shown_printf("%s", json_array_size(segments) > 0 ? "\n" : "");
    json_text_each(segments, i, m) {
        shw_segment_text(m, text);
        shown_printf("computed here: %s, plan %s\n", text, ctl_text(m, "plan"));
    }
}

void ctl_print_failed(const json_t *failed)
{
    json_text_each(failed, i, m) {
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

/* ---- the command ---- */

static void print_status(const json_t *status)
{
    double uptime = ctl_real(status, "uptime_s");

    shown_printf("piped %s: %s, up %.0f h %02.0f min %02.0f s\n", ctl_text(status, "version"),
                 ctl_text(status, "state"), (double)((long)uptime / 3600),
                 (double)((long)uptime / 60 % 60), (double)((long)uptime % 60));
    json_text_each(json_object_get(status, "models"), i, m) {
        print_model(json_object_get(status, "mix"), m);
    }
    print_mix(json_object_get(status, "mix"));
    ctl_print_segments(status);
    print_eps(json_object_get(status, "eps"));
    print_boards(json_object_get(status, "boards"));
    print_memory(json_object_get(status, "memory"));
    print_machine(status);
    print_warnings(status, NULL);
    ctl_print_failed(json_object_get(status, "failed_models"));
    json_text_each(json_object_get(status, "models"), i, m) {
        print_warnings(m, ctl_text(m, "name"));
    }
}

int ctl_status(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object(), *status = NULL;
    struct ctl_options o = {0};
    int rc = ctl_take_all(argc, argv, &o, parameters);
    bool all = o.all || json_object_get(parameters, "model");

    rc = rc ? rc : ctl_ask(ctl, "Status", base_take(parameters), "status", &status);
    if (rc) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(status);
    } else {
        if (!all) {
            shw_fold_segments(status);
        }
        print_status(status);
    }
    return strcmp(ctl_text(status, "state"), "degraded") == 0 ? CTL_DEGRADED : CTL_DONE;
}
