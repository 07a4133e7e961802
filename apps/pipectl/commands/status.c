/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl status: what is served, how fast, and where. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/show/fold_segments.h"
#include "base/cli/shown_print.h"

static void print_stages(const json_t *model)
{
    static const struct ctl_column columns[] = {
        {"stage", "stage", 'l'},
        {"units", "units", 'l'},
        {"ep", "ep", 'l'},
        {"cpus", "cpus", 'l'},
        {"width", "width", 'r'},
        {"x", "replicas", 'r'},
        {"service ms", "service_ms", 'r', CTL_DECIMALS, 3},
        {"expected ms", "expected_ms", 'r', CTL_DECIMALS, 3},
        {"busy", "busy", 'r', CTL_DECIMALS, 0, 100, " %"},
        {"queue", "queue", 'r'},
        {0}};

    ctl_print_rows(json_object_get(model, "stages"), columns, 0);
}

/* How what goes between boards does, if examples said something of that. */
static void print_borders(const json_t *b)
{
    bool allowed = json_is_true(json_object_get(b, "allowed"));

    if (json_is_object(b)) {
        shown_printf(
            "  borders go as %s: with %s %.2f %% of %.0f examples agree (required: %.2f)\n",
            allowed ? ctl_text(b, "encoding") : "f32", ctl_text(b, "encoding"),
            100 * ctl_real(b, "agreement"), ctl_real(b, "judged"), 100 * ctl_real(b, "bound"));
    }
}

/* The boards that share the model, or why it is served here alone. */
static void print_route(const json_t *route)
{
    size_t i, k;
    json_t *hop, *board;

    if (!json_is_object(route)) {
        return;
    }
    if (!json_is_true(json_object_get(route, "serving"))) {
        shown_printf("  boards \"%s\": this board alone: %s\n", ctl_text(route, "boards"),
                     ctl_text(route, "why"));
    }
    print_borders(json_object_get(route, "borders"));
    if (!*ctl_text(route, "route")) {
        return;
    }
    shown_printf("  route %s (%s, number %.0f): %.0f answered, %.0f sent again, %.0f wholly here\n",
                 ctl_text(route, "route"), ctl_text(route, "phase"), ctl_real(route, "number"),
                 ctl_real(route, "answered"), ctl_real(route, "resent"), ctl_real(route, "here"));
    json_array_foreach(json_object_get(route, "hops"), i, hop)
    {
        shown_printf("    units %s:", ctl_text(hop, "units"));
        json_array_foreach(json_object_get(hop, "boards"), k, board)
        {
            shown_printf(" %s%s", ctl_text(board, "name"),
                         json_is_true(json_object_get(board, "up")) ? "" : " (away)");
        }
        if (ctl_real(hop, "service_ms") > 0) {
            printf(", %.3f ms", ctl_real(hop, "service_ms"));
        }
        printf("\n");
    }
    json_array_foreach(json_object_get(route, "segments"), i, hop)
    {
        const json_t *its = json_object_get(hop, "segment");

        shown_printf("    computed here: units %.0f-%.0f, plan %s\n", ctl_real(its, "first_unit"),
                     ctl_real(its, "last_unit"), ctl_text(hop, "plan"));
    }
    if (json_is_boolean(json_object_get(route, "pictures"))) {
        shown_printf("    pictures go as %s\n", json_is_true(json_object_get(route, "pictures"))
                                                    ? "they are, larger ones as tensors"
                                                    : "tensors");
    }
}

static void print_model(const json_t *m)
{
    char input[256], units[32], epoch[32], latency[160];
    const json_t *frames = json_object_get(m, "frames");

    shown_printf("\nmodel %s: %s units, input %s\n", ctl_text(m, "name"),
                 ctl_any(m, "units", units, sizeof(units)),
                 ctl_any(m, "input", input, sizeof(input)));
    shown_printf("  plan %s (%s, epoch %s)\n", ctl_text(m, "plan"), ctl_text(m, "algorithm"),
                 ctl_any(m, "epoch", epoch, sizeof(epoch)));
    shown_printf("  %.1f frames/s, latency ms: %s\n", ctl_real(m, "fps"),
                 ctl_real(frames, "answered") > 0
                     ? ctl_any(m, "latency_ms", latency, sizeof(latency))
                     : "-");
    printf("  frames: %.0f admitted, %.0f answered, %.0f dropped, %.0f failed\n",
           ctl_real(frames, "admitted"), ctl_real(frames, "answered"), ctl_real(frames, "dropped"),
           ctl_real(frames, "failed"));
    print_route(json_object_get(m, "route"));
    print_stages(m);
}

static void print_boards(const json_t *boards)
{
    static const char *const headings[] = {"board",           "is",         "for s",  "message us",
                                           "us a 1000 bytes", "memory MiB", "places", NULL};
    struct ctl_table t;
    json_t *b, *ep;
    size_t i, k;

    if (json_array_size(boards) == 0) {
        return;
    }
    ctl_table_init(&t, headings, "llrrrrl");
    json_array_foreach(boards, i, b)
    {
        const json_t *link = json_object_get(b, "link");
        double bytes = ctl_real(b, "memory_bytes");
        char message[32], kilobyte[32], memory[32], places[256] = "";
        size_t at = 0;

        json_array_foreach(json_object_get(b, "eps"), k, ep)
        {
            if (at < sizeof(places)) {
                at += (size_t)snprintf(places + at, sizeof(places) - at, "%s%s x%.0f",
                                       k ? ", " : "", ctl_text(ep, "name"), ctl_real(ep, "cores"));
            }
        }
        ctl_table_add(
            &t, "%s\t%s\t%.0f\t%s\t%s\t%s\t%s", ctl_text(b, "name"),
            json_is_true(json_object_get(b, "up")) ? "there" : "away", ctl_real(b, "for_s"),
            ctl_known(link, "message_us", "%.0f", message, sizeof(message)),
            ctl_known(link, "kilobyte_us", "%.2f", kilobyte, sizeof(kilobyte)),
            ctl_format(bytes > 0 ? bytes / (1 << 20) : NAN, "%.0f", memory, sizeof(memory)),
            places);
    }
    printf("\n");
    ctl_table_print(&t);
}

static void print_eps(const json_t *eps)
{
    static const struct ctl_column columns[] = {
        {"ep", "name", 'l'},
        {"cpus", "cpus", 'l'},
        {"kind", "kind", 'l'},
        {"governor", "governor", 'l'},
        {"MHz", "freq_khz", 'r', CTL_DECIMALS, 0, 1e-3},
        {"max MHz", "max_freq_khz", 'r', CTL_DECIMALS, 0, 1e-3},
        {"speed", "speed", 'r'},
        {"used", "used", 'l'},
        {"why", "why", 'l'},
        {0}};

    printf("\n");
    ctl_print_rows(eps, columns, 0);
}

/* @owner: the status, or a model, whose name is then @name. */
static void print_warnings(const json_t *owner, const char *name)
{
    size_t i;
    json_t *w;

    json_array_foreach(json_object_get(owner, "warnings"), i, w)
    {
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

static void print_status(const json_t *status)
{
    double uptime = ctl_real(status, "uptime_s");
    size_t i;
    json_t *m;

    shown_printf("piped %s: %s, up %.0f h %02.0f min %02.0f s\n", ctl_text(status, "version"),
                 ctl_text(status, "state"), (double)((long)uptime / 3600),
                 (double)((long)uptime / 60 % 60), (double)((long)uptime % 60));
    json_array_foreach(json_object_get(status, "models"), i, m)
    {
        print_model(m);
    }
    ctl_print_segments(status);
    print_eps(json_object_get(status, "eps"));
    print_boards(json_object_get(status, "boards"));
    print_memory(json_object_get(status, "memory"));
    ctl_print_machine(status);
    print_warnings(status, NULL);
    ctl_print_failed(json_object_get(status, "failed_models"));
    json_array_foreach(json_object_get(status, "models"), i, m)
    {
        print_warnings(m, ctl_text(m, "name"));
    }
}

int ctl_status(const struct ctl *ctl, int argc, char **argv)
{
    const char *model = NULL;
    json_t *reply, *status;
    int rc = CTL_DONE, c;
    bool all = false;

    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        model = c == 'm' ? optarg : model;
        all |= c == 'a';
    }
    rc = rc ? rc : ctl_no_more(argc, argv);
    rc = rc ? rc : ctl_call(ctl, "Status", ctl_model_parameter(model), &reply);
    if (rc) {
        return rc;
    }
    status = json_object_get(reply, "status");
    if (ctl->json) {
        ctl_print_json(status);
    } else {
        if (!all && !model) {
            shw_fold_segments(status);
        }
        print_status(status);
    }
    rc = strcmp(ctl_text(status, "state"), "degraded") == 0 ? CTL_DEGRADED : CTL_DONE;
    json_decref(reply);
    return rc;
}
