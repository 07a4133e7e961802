/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl plan, pipectl costs: the present plan, other plans, and the costs behind them. */
#include "apps/pipectl/common/pipectl.h"

static void print_warnings(const json_t *reply)
{
    json_text_each(json_object_get(reply, "warnings"), i, w) {
        shown_printf("warning: %s\n", json_is_string(w) ? json_string_value(w) : "");
    }
}

static void print_present(const json_t *reply)
{
    const char *route = json_string_value(json_object_get(reply, "route"));

    shown_printf("%s\n", ctl_text(reply, "plan"));
    if (route) {
        shown_printf("frames go over boards instead, by %s\n", route);
    }
    print_warnings(reply);
}

static void print_changed(const json_t *reply)
{
    shown_printf("serving by %s, epoch %s\n", ctl_text(reply, "plan"),
                 ctl_any(reply, "epoch").text);
    print_warnings(reply);
}

static void print_front(const json_t *reply)
{
    static const struct cli_column columns[] = {{"frames/s", "fps", 'r', CLI_DECIMALS, 1},
                                                {"latency ms", "latency_ms", 'r', CLI_DECIMALS, 3},
                                                {"mJ/frame", "energy_mj", 'r', CLI_SIGNIFICANT, 3},
                                                {"plan", "plan", 'w'},
                                                {0}};

    cli_print_rows(json_object_get(reply, "front"), columns);
}

static void print_front_boards(const json_t *reply)
{
    bool watts = ctl_is(reply, "watts_known");
    const struct cli_column columns[] = {
        {"frames/s", "fps", 'r', CLI_DECIMALS, 1},
        {"latency ms", "latency_ms", 'r', CLI_DECIMALS, 3},
        {"MiB", "most_memory_bytes", 'r', CLI_DECIMALS, 1, 1.0 / (1 << 20)},
        {watts ? "mJ/frame" : "core ms", "most_energy_mj", 'r', CLI_SIGNIFICANT, 3},
        {"plan", "plan", 'w'},
        {0}};

    cli_print_rows(json_object_get(reply, "front"), columns);
    printf("\n");
    ctl_print_wrapped(watts ? "MiB and mJ/frame: of the board that has most of it."
                            : "MiB and core ms: of the board that has most of it. Core ms a frame "
                              "stand for energy, because the watts of cores are not known.",
                      0);
    if (!ctl_is(reply, "exact")) {
        ctl_print_wrapped("There are more such plans than these; --max shows more.", 0);
    }
}

/* ---- mappings ---- */

static int export_mapping(const struct ctl *ctl, json_t *parameters, const char *path)
{
    json_auto_t *reply = NULL;
    int rc = ctl_call(ctl, "GetMapping", json_incref(parameters), &reply);
    const json_t *mapping = json_object_get(reply, "mapping");

    rc = rc ? rc : ctl_save_json(path, mapping, JSON_INDENT(1));
    if (rc == CTL_DONE) {
        ctl_tell(ctl, mapping, "%s has %s\n", path, ctl_text(reply, "plan"));
    }
    return rc;
}

static int import_mapping(const struct ctl *ctl, json_t *parameters, const char *path)
{
    json_t *mapping = ctl_load_json(path);

    if (!mapping) {
        return CTL_FAILED;
    }
    json_object_set_new(parameters, "mapping", mapping);
    return ctl_show(ctl, "SetMapping", json_incref(parameters), NULL, print_changed);
}

/* ---- the command ---- */

static const struct verb {
    const char *name, *method;
    const char *field; /* of the reply, what --json prints; NULL: the reply */
    void (*print)(const json_t *reply);
    int (*map)(const struct ctl *ctl, json_t *parameters, const char *path); /* instead of that */
} verbs[] = {
    {"show", "GetPlan", NULL, print_present},
    {"set", "SetPlan", NULL, print_changed},
    {"auto", "AutoPlan", NULL, print_changed},
    {"front", "PlanFront", "front", print_front},
    {"explain", "PlanExplain", "explanation", ctl_print_explanation},
    {.name = "mix"}, /* plan_mix.c */
    {"export", .map = export_mapping},
    {"import", .map = import_mapping},
};
static const struct verb front_boards = {"front", "PlanFront", NULL, print_front_boards};

int ctl_plan(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object();
    int rc = ctl_take(argc, argv, NULL, parameters);
    const char *name = optind < argc ? argv[optind++] : "show", *argument = argv[optind];
    bool boards = ctl_is(parameters, "boards"), applies = ctl_is(parameters, "apply"),
         front = ctl_is(parameters, "front");
    const struct verb *verb = NULL;

    if (rc) {
        return rc;
    }
    for (size_t i = 0; i < base_array_count(verbs); i++) {
        verb = strcmp(verbs[i].name, name) == 0 ? &verbs[i] : verb;
    }
    if (!verb) {
        return ctl_usage(
            "plan", "expected show, set, auto, front, explain, mix, export or import, not '%s'",
            name);
    }
    if ((boards || ctl_has(parameters, "max")) && strcmp(name, "front") != 0) {
        return ctl_usage("plan", "only front takes --max and --boards");
    }
    if ((applies || front) && strcmp(name, "mix") != 0) {
        return ctl_usage("plan", "only mix takes --apply and --front");
    }
    if (verb->map && !argument) {
        return ctl_usage("plan", "%s needs a file, such as mapping.json", name);
    }
    if (strcmp(name, "set") == 0 && !argument) {
        return ctl_usage("plan", "set needs a plan, such as '0-15@bigx4|16-25@littlex2*2'");
    }
    optind += verb->map || strcmp(name, "set") == 0;
    rc = cli_no_more(&ctl_program, argc, argv);
    if (rc || verb->map) {
        return rc ? rc : verb->map(ctl, parameters, argument);
    }
    if (strcmp(name, "set") == 0 &&
        json_object_set_new(parameters, "plan", json_string(argument)) < 0) {
        return ctl_usage("plan", "the plan is not UTF-8");
    }
    if (strcmp(name, "mix") == 0) {
        return ctl_plan_mix(ctl, applies, front);
    }
    verb = boards ? &front_boards : verb;
    return ctl_show(ctl, verb->method, base_take(parameters), verb->field, verb->print);
}

/* ---- costs ---- */

#define SHAPES_MAX 6u /* columns of times that fit a terminal */

struct shape {
    const json_t *row;     /* borrowed: times by unit, ns */
    const json_t *sources; /* borrowed: where they are from */
    char heading[48];
};

/* Picks widths 1, 2, 4, ... and all cores of each EP. @ret_all: no width is missing. Return: how
 * many, at most SHAPES_MAX. */
static size_t pick_shapes(const json_t *problem, struct shape ret[SHAPES_MAX], bool *ret_all)
{
    const json_t *costs = json_object_get(problem, "costs");
    const json_t *sources = json_object_get(problem, "sources");
    size_t count = 0;

    *ret_all = true;
    json_text_each(json_object_get(problem, "kinds"), i, kind) {
        const char *name = ctl_text(kind, "name");
        long cores = (long)ctl_real(kind, "cores");

        *ret_all &= cores <= 3;
        for (long w = 1; w <= cores; w = w == cores ? w + 1 : base_min(2 * w, cores)) {
            char key[16];

            if (count == SHAPES_MAX) {
                *ret_all = false;
                return count;
            }
            snprintf(key, sizeof(key), "%ld", w);
            ret[count].row = json_object_get(json_object_get(costs, name), key);
            ret[count].sources = json_object_get(json_object_get(sources, name), key);
            snprintf(ret[count].heading, sizeof(ret[count].heading), w > 1 ? "%sx%ld" : "%s", name,
                     w);
            count++;
        }
    }
    return count;
}

/* Adds three digits after the point, fewer for large figures. */
static void add_ms(char *ret, size_t bytes, const char *mark, double ms)
{
    base_append(ret, bytes, "\t%s%.*f", mark, ms < 100 ? 3 : ms < 10000 ? 1 : 0, ms);
}

/* Adds a row: the unit, then its times in ms, with '~' before predicted ones. @sum: the sum of each
 * column, negative once a time in it is unknown. */
static void add_unit(struct cli_table *t, size_t index, const char *name,
                     const struct shape *shapes, size_t count, double *sum)
{
    size_t length = strlen(name), most = count > 4 ? 14 : 24;
    char line[512];

    /* of a long name the end tells more */
    snprintf(line, sizeof(line), "%zu\t%s%s", index, length > most ? ".." : "",
             length > most ? name + length - most + 2 : name);
    for (size_t s = 0; s < count; s++) {
        const json_t *ns = json_array_get(shapes[s].row, index);
        const char *source = json_string_value(json_array_get(shapes[s].sources, index));
        double ms = json_number_value(ns) / 1e6;

        if (json_is_number(ns)) {
            bool predicted = source && strcmp(source, "predicted") == 0;

            add_ms(line, sizeof(line), predicted ? "~" : "", ms);
            sum[s] = sum[s] < 0 ? -1 : sum[s] + ms;
        } else {
            base_append(line, sizeof(line), "\t-");
            sum[s] = -1;
        }
    }
    cli_table_add(t, "%s", line);
}

static void print_costs(const json_t *reply)
{
    const json_t *problem = json_object_get(reply, "problem");
    char align[SHAPES_MAX + 3] = "rl", line[512] = "unit\tms";
    struct cli_table t = {.align = align};
    struct shape shapes[SHAPES_MAX];
    double sum[SHAPES_MAX] = {0};
    bool all;
    size_t count = pick_shapes(problem, shapes, &all);

    for (size_t s = 0; s < count; s++) {
        base_append(line, sizeof(line), "\t%s", shapes[s].heading);
        align[2 + s] = 'r';
    }
    cli_table_add(&t, "%s", line);
    json_text_each(json_object_get(problem, "units"), i, unit) {
        add_unit(&t, i, ctl_text(unit, "name"), shapes, count, sum);
    }
    snprintf(line, sizeof(line), "\tall units");
    for (size_t s = 0; s < count; s++) {
        if (sum[s] < 0) {
            base_append(line, sizeof(line), "\t-");
        } else {
            add_ms(line, sizeof(line), "", sum[s]);
        }
    }
    cli_table_add(&t, "%s", line);
    cli_table_print(&t);
    shown_printf("\n~ predicted. Each team spends %.3f ms a frame on the hand-off.%s\n",
                 ctl_real(problem, "handoff_ns") / 1e6, all ? "" : " --json has every width.");
}

int ctl_costs(const struct ctl *ctl, int argc, char **argv)
{
    json_auto_t *parameters = json_object();
    int rc = ctl_take_all(argc, argv, NULL, parameters);

    return rc ? rc : ctl_show(ctl, "Costs", base_take(parameters), "problem", print_costs);
}
