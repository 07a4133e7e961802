/* SPDX-License-Identifier: Apache-2.0 */
/* pipesim mix: several networks on one described machine. */
#include "base/base.h"
#include "tuner/pipesim/subject.h"
#include "tuner/solve/mix.h"
#include "tuner/solve/solve.h"

struct mix_of {
    size_t count;
    struct psim_case cases[TUN_MIX_MAX]; /* owned */
    struct tun_wish wishes[TUN_MIX_MAX];
};

static void mix_of_deinit(struct mix_of *x)
{
    for (size_t i = 0; i < x->count; i++) {
        psim_case_deinit(&x->cases[i]);
    }
}

/* Takes "NETWORK" or "NETWORK=RATE". Return: 0, or an exit code. */
static int add(struct mix_of *x, const char *platform, const char *text)
{
    const char *equals = strrchr(text, '=');
    base_autofree char *name = equals ? strndup(text, (size_t)(equals - text)) : strdup(text);
    char error[PSIM_ERROR_MAX] = "", *end = NULL;
    double rate = equals ? strtod(equals + 1, &end) : 1;

    if (equals && (end == equals + 1 || *end || !(rate >= 1e-6 && rate <= 1e6))) {
        return psim_usage("mix", "%s: the rate must be from 0.000001 to 1000000", text);
    }
    if (x->count == TUN_MIX_MAX) {
        return psim_usage("mix", "at most %u networks", TUN_MIX_MAX);
    }
    if (!name || psim_case_init(name, PSIM_UNITS, platform, error, &x->cases[x->count]) != 0) {
        return psim_fail("%s", name ? error : "out of memory");
    }
    x->wishes[x->count] = (struct tun_wish){&x->cases[x->count].truth, rate};
    x->count++;
    return 0;
}

/* What each model's own best plan reaches if all take turns on all cores. */
static double in_turns(const struct mix_of *x)
{
    double ns = 0;

    for (size_t i = 0; i < x->count; i++) {
        struct tun_solution s;

        if (tun_solve(x->wishes[i].p, &s) != 0) {
            return 0;
        }
        ns += x->wishes[i].rate * s.outcome.bottleneck_ns;
    }
    return (double)BASE_NS_PER_S / ns;
}

static void route_text(const struct tun_problem *p, const struct tun_route *r, char *text,
                       size_t size)
{
    size_t first = 0;

    *text = '\0';
    for (size_t s = 0; s < r->stages; s++) {
        base_append(text, size, "%s%zu-%u@%s", s ? "|" : "", first, r->last[s],
                    p->eps[r->ep[s]].name);
        first = r->last[s] + 1u;
    }
}

static json_t *mix_json(const struct mix_of *x, const struct tun_mix *mix)
{
    const struct tun_problem *first = x->wishes[0].p;
    json_t *models = json_array(), *cores = json_array();

    for (size_t i = 0, m = 0; m < x->count; m++) {
        json_t *routes = json_array();

        for (; i < mix->count && mix->dealt[i].model == m; i++) {
            char text[512];

            route_text(x->wishes[m].p, &mix->dealt[i].route, text, sizeof(text));
            json_array_append_new(
                routes, json_pack("{s:s,s:f}", "route", text, "share", mix->dealt[i].share));
        }
        json_array_append_new(models,
                              json_pack("{s:s,s:f,s:f,s:o}", "model", x->cases[m].network.name,
                                        "wished", x->wishes[m].rate, "given",
                                        mix->lambda * x->wishes[m].rate, "routes", routes));
    }
    for (size_t k = 0; k < first->ep_count; k++) {
        json_array_append_new(cores, json_pack("{s:s,s:i,s:f,s:f}", "kind", first->eps[k].name,
                                               "cores", (int)first->eps[k].cores, "busy",
                                               mix->busy[k], "limits", mix->limits[k]));
    }
    return json_pack("{s:f,s:f,s:f,s:f,s:o,s:o}", "of_wishes", mix->lambda, "bound", mix->bound,
                     "of_bound", mix->lambda / mix->bound, "in_turns", in_turns(x), "models",
                     models, "kinds", cores);
}

static void print_text(const json_t *v)
{
    static const struct cli_column MODELS[] = {{"model", "model", 'l'},
                                               {"wished", "wished", 'r', CLI_DECIMALS, 2},
                                               {"given", "given", 'r', CLI_DECIMALS, 2},
                                               {0}};
    static const struct cli_column ROUTES[] = {
        {"share", "share", 'r', CLI_DECIMALS, 1, 100, " %"}, {"route", "route", 'l'}, {0}};
    static const struct cli_column KINDS[] = {
        {"cores", "kind", 'l'},
        {"number", "cores", 'r'},
        {"busy", "busy", 'r', CLI_DECIMALS, 0, 100, " %"},
        {"limit it by", "limits", 'r', CLI_DECIMALS, 0, 100, " %"},
        {0}};
    const json_t *models = json_object_get(v, "models"), *m;
    double bound = json_number_value(json_object_get(v, "bound"));
    size_t i;

    printf("Every model can have %.3f of its wish: %.1f %% of what these cores could ever do "
           "(%.3f).\n",
           json_number_value(json_object_get(v, "of_wishes")),
           100 * json_number_value(json_object_get(v, "of_bound")), bound);
    printf("Each by its own best plan, in turns on all cores: %.1f %%.\n\n",
           100 * json_number_value(json_object_get(v, "in_turns")) / bound);
    cli_print_rows(models, MODELS);
    json_array_foreach((json_t *)models, i, m)
    {
        shown_printf("\nroutes of %s\n", json_string_value(json_object_get(m, "model")));
        cli_print_rows(json_object_get(m, "routes"), ROUTES);
    }
    putchar('\n');
    cli_print_rows(json_object_get(v, "kinds"), KINDS);
}

int psim_cmd_mix(int argc, char **argv)
{
    base_cleanup(mix_of_deinit) struct mix_of x = {0};
    base_cleanup(tun_mix_deinit) struct tun_mix mix = TUN_MIX_NULL;
    struct psim_options o = {.changes = 1};
    int code = psim_options(argc, argv, &o), error;
    json_t *v;

    if (!code && (!o.platform || optind == argc)) {
        code = psim_usage("mix", "give --platform and one network or more, each with its rate");
    }
    for (int i = optind; !code && i < argc; i++) {
        code = add(&x, o.platform, argv[i]);
    }
    if (code) {
        return code;
    }
    error = tun_mix_solve(x.wishes, x.count, TUN_FAIR, o.changes, 1, &mix);
    if (error) {
        return psim_fail("no plan: %s",
                         error == -EINVAL ? "this machine cannot be shared so" : strerror(-error));
    }
    v = mix_json(&x, &mix);
    if (o.json) {
        return psim_print_json(v);
    }
    print_text(v);
    json_decref(v);
    return PSIM_DONE;
}
