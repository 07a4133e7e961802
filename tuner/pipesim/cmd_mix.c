/* SPDX-License-Identifier: Apache-2.0 */
/* pipesim mix: several networks on one described machine. */
#include "base/base.h"
#include "tuner/pipesim/mixed.h"

/* ---- wishes ---- */

/* The keys behind a network. */
static const struct {
    const char *name;
    double least, most;
    bool whole;
} KEYS[] = {{"rate", 1e-6, 1e6},   {"deadline", 1e-6, 1e9}, {"class", 0, 7, true},
            {"weight", 1e-3, 1e3}, {"cut", 1, 16, true},    {"width", 1, PL_CPU_MAX, true}};
enum { RATE, DEADLINE, CLASS, WEIGHT, CUT, WIDTH, KEY_COUNT };

/* Takes "KEY=VALUE". @io_values: [KEY_COUNT]; @io_given: which of them were given. */
static int take_key(const char *wish, const char *text, double *io_values, bool *io_given)
{
    const char *equals = strchr(text, '=');
    size_t key = 0, length = equals ? (size_t)(equals - text) : strlen(text);
    struct near_word near = {0};
    char hint[NEAR_WORD_HINT_BYTES];
    base_autofree char *name = strndup(text, length);

    while (name && key < KEY_COUNT && strcmp(name, KEYS[key].name) != 0) {
        key++;
    }
    if (key == KEY_COUNT || !name) {
        near.given = name;
        for (size_t i = 0; name && i < KEY_COUNT; i++) {
            near_word_try(&near, KEYS[i].name);
        }
        return psim_usage("mix", "%s: unknown key '%s'%s", wish, name ? name : "",
                          name ? near_word_hint(&near, hint) : "");
    }
    if (io_given[key]) {
        return psim_usage("mix", "%s: the %s is given twice", wish, name);
    }
    io_given[key] = true;
    if (!cli_read_number(equals ? equals + 1 : "", KEYS[key].least, KEYS[key].most,
                         &io_values[key]) ||
        (KEYS[key].whole && io_values[key] != floor(io_values[key]))) {
        return psim_usage("mix", "%s: the %s must be %sfrom %.15g to %.15g", wish, name,
                          KEYS[key].whole ? "a whole number " : "", KEYS[key].least,
                          KEYS[key].most);
    }
    return 0;
}

/* Lets the units of the last model be run in up to @most pieces. Return: 0, or an exit code. */
static int add_cut(struct psim_mixed *x, int most)
{
    size_t model = x->count++, units = x->wishes[model].p->unit_count;

    x->cut_most[model] = malloc(units + 1);
    if (!x->cut_most[model]) {
        return psim_fail("out of memory");
    }
    memset(x->cut_most[model], most, units);
    x->wishes[model].cut_most = x->cut_most[model];
    return 0;
}

/* Takes "NETWORK[=RATE][,KEY=VALUE]...". Return: 0, or an exit code. */
static int add(struct psim_mixed *x, const char *platform, const char *wish)
{
    base_autofree char *text = strdup(wish);
    double values[KEY_COUNT] = {[RATE] = 1, [WEIGHT] = 1, [CUT] = 1, [WIDTH] = 1};
    bool given[KEY_COUNT] = {false};
    char error[PSIM_ERROR_MAX] = "", *rest, *equals;
    int code = 0;

    if (x->count == TUN_MIX_MAX) {
        return psim_usage("mix", "at most %u networks", TUN_MIX_MAX);
    }
    if (!text) {
        return psim_fail("out of memory");
    }
    rest = strchr(text, ',');
    if (rest) {
        *rest++ = '\0';
    }
    equals = strrchr(text, '=');
    if (equals) {
        char key[64];

        *equals = '\0';
        snprintf(key, sizeof(key), "rate=%.50s", equals + 1);
        code = take_key(wish, key, values, given);
    }
    while (!code && rest) {
        char *key = strsep(&rest, ",");

        code = take_key(wish, key, values, given);
    }
    if (code) {
        return code;
    }
    if (psim_case_init(text, PSIM_UNITS, platform, error, &x->cases[x->count]) != 0) {
        return psim_fail("%s", error);
    }
    x->wishes[x->count] = (struct tun_wish){.p = &x->cases[x->count].truth,
                                            .rate = values[RATE],
                                            .weight = values[WEIGHT],
                                            .class = (unsigned)values[CLASS],
                                            .width = (size_t)values[WIDTH],
                                            .deadline_ns = values[DEADLINE] * BASE_NS_PER_MS};
    return add_cut(x, (int)values[CUT]);
}

/* ---- text ---- */

static double number(const json_t *v, const char *key)
{
    return json_number_value(json_object_get(v, key));
}

static const char *string(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

static void print_reached(const json_t *v)
{
    const char *objective = string(v, "objective");
    double value = number(v, "value"), bound = number(v, "bound"), of = 100 * number(v, "of_bound");

    if (json_is_true(json_object_get(v, "fell_back"))) {
        puts("These rates cannot all be kept; this plan is fair instead.");
    }
    if (strcmp(objective, "energy") == 0 || strcmp(objective, "soonest") == 0) {
        printf("All rates are kept by busy cores of %.3f in all; less than %.3f is not possible.\n",
               value, bound);
    } else if (strcmp(objective, "weighted") == 0) {
        printf("%.3f weighted frames a second: %.1f %% of what these cores could ever do (%.3f).\n",
               value, of, bound);
    } else {
        printf("Every model can have %.3f of its wish: %.1f %% of what these cores could ever do "
               "(%.3f).\nEach by its own best plan, in turns on all cores: %.1f %%.\n",
               value, of, bound, 100 * number(v, "in_turns") / bound);
    }
}

static void print_admission(const json_t *v)
{
    const json_t *a = json_object_get(v, "admission"), *said;
    const char *refused = string(a, "text");
    size_t i;

    if (refused) {
        shown_printf("%s\n", refused);
    } else if (a) {
        printf("All deadlines hold, at %.1f %% load of the busiest core.\n",
               100 * number(a, "load"));
        json_array_foreach(json_object_get(v, "cut"), i, said)
        {
            shown_printf("%s\n", string(said, "text"));
        }
        json_array_foreach(json_object_get(v, "wide"), i, said)
        {
            shown_printf("%s\n", string(said, "text"));
        }
    }
}

static void print_simulated(const json_t *v)
{
    if (json_object_get(v, "reached")) {
        printf("Simulated under full load, every model has at least %.1f %% of its planned rate.\n",
               100 * number(v, "reached"));
    }
    if (json_object_get(v, "late")) {
        printf("Simulated at the wished rates, %.0f of %.0f frames with deadlines were late.\n",
               number(v, "late"), number(v, "due"));
    }
}

static void print_text(const json_t *v)
{
    static const struct cli_column MODELS[] = {{"model", "model", 'l'},
                                               {"wished", "wished", 'r', CLI_DECIMALS, 2},
                                               {"given", "given", 'r', CLI_DECIMALS, 2},
                                               {"simulated", "reached", 'r', CLI_DECIMALS, 2},
                                               {"class", "class", 'r'},
                                               {"deadline ms", "deadline_ms", 'r', CLI_DECIMALS, 2},
                                               {"bound", "bound_ms", 'r', CLI_DECIMALS, 2},
                                               {"worst", "worst_ms", 'r', CLI_DECIMALS, 2},
                                               {0}};
    static const struct cli_column ROUTES[] = {
        {"share", "share", 'r', CLI_DECIMALS, 1, 100, " %"}, {"route", "route", 'l'}, {0}};
    static const struct cli_column KINDS[] = {
        {"cores", "kind", 'l'},
        {"number", "cores", 'r'},
        {"busy", "busy", 'r', CLI_DECIMALS, 0, 100, " %"},
        {"limit it by", "limits", 'r', CLI_DECIMALS, 0, 100, " %"},
        {0}};
    static const struct cli_column FRONT[] = {{"of wishes", "of_wishes", 'r', CLI_DECIMALS, 3},
                                              {"energy", "energy", 'r', CLI_DECIMALS, 3},
                                              {0}};
    const json_t *models = json_object_get(v, "models"), *front = json_object_get(v, "front"), *m;
    size_t i;

    print_reached(v);
    print_admission(v);
    print_simulated(v);
    putchar('\n');
    cli_print_rows(models, MODELS);
    json_array_foreach((json_t *)models, i, m)
    {
        shown_printf("\nroutes of %s\n", string(m, "model"));
        cli_print_rows(json_object_get(m, "routes"), ROUTES);
    }
    putchar('\n');
    cli_print_rows(json_object_get(v, "kinds"), KINDS);
    if (front) {
        putchar('\n');
        cli_print_rows(front, FRONT);
    }
}

int psim_cmd_mix(int argc, char **argv)
{
    base_cleanup(psim_mixed_deinit) struct psim_mixed x = {0};
    struct psim_options o = {.changes = 1};
    int code = psim_options(argc, argv, &o);
    json_t *v;

    if (!code && (!o.platform || optind == argc)) {
        code = psim_usage("mix", "give --platform and one network or more, each with its rate");
    }
    for (int i = optind; !code && i < argc; i++) {
        code = add(&x, o.platform, argv[i]);
    }
    code = code ? code : psim_mixed_json(&x, &o, &v);
    if (code || o.json) {
        return code ? code : psim_print_json(v);
    }
    print_text(v);
    json_decref(v);
    return PSIM_DONE;
}
