/* SPDX-License-Identifier: Apache-2.0 */
/* Searches side by side on one network and machine. */
#include <math.h>

#include "base/base.h"
#include "base/json_text.h"
#include "tuner/json/record_json.h"
#include "tuner/pipesim/run.h"
#include "tuner/pipesim/subject.h"

#define SPACE_MAX 200000.0 /* trials that an exhaustive search may cost when it was not asked for */
#define CONTENTION_MAX 100.0

struct comparison {
    const struct psim_options *o; /* borrowed */
    struct tun_problem truth;     /* owned */
    struct tun_options options;
    struct psim_machine machine;
    struct tun_problem told; /* what the searches are told, owned */
    json_t *results, *notes; /* owned */
};

/* ---- the machine and what is told of it ---- */

/* The table, predicted if asked for, with errors. */
static int tell_wrong(struct comparison *c, char error_text[PSIM_ERROR_MAX])
{
    struct tun_random random = {c->options.seed ^ 0x7461626c65ull};
    struct psim_platform on;
    int error = tun_problem_copy(&c->truth, &c->told);

    if (error == 0 && c->o->predict) {
        error = psim_platform_load(c->o->platform, error_text, &on);
        error = error ? error : psim_predict(&on, &c->told);
    }
    if (error == 0 && c->o->sigma > 0) {
        psim_err(&c->told, c->o->sigma, &random);
    }
    return error;
}

/* Return: whether a part of --contention is a number; else it was said what is wrong. */
static bool share_of(const char *text, double *ret)
{
    char wrong[CLI_WRONG_BYTES];

    if (cli_number("contention", text, CLI_REAL, 0, CONTENTION_MAX, ret, wrong)) {
        psim_usage("compare", "%s", wrong);
        return false;
    }
    return true;
}

/* "0.2": every EP slower by a random share of up to 20 %. "big=0.2,little=0.1": by just that. */
static bool set_contention(struct comparison *c)
{
    struct tun_random random = {c->options.seed ^ 0x736c6f77ull};
    const struct tun_problem *p = &c->truth;
    const char *contention = c->o->contention;
    char *text = NULL, *at, *part;
    bool ok = true;
    double v;

    if (contention && strchr(contention, '=')) {
        at = text = strdup(contention);
        while (ok && text && (part = strsep(&at, ","))) {
            char *value = strchr(part, '=');
            size_t k = 0;

            *(value ? value : part) = '\0';
            while (k < p->ep_count && strcmp(p->eps[k].name, part) != 0) {
                k++;
            }
            if (!value || k == p->ep_count) {
                psim_usage("compare", "--contention: the machine has no execution place '%s'",
                           part);
                ok = false;
            } else {
                ok = share_of(value + 1, &v);
                c->machine.slow[k] = ok ? 1 + v : 1;
            }
        }
        free(text);
    } else if (contention) {
        ok = share_of(contention, &v);
        for (size_t k = 0; ok && k < p->ep_count; k++) {
            c->machine.slow[k] = 1 + v * tun_random_unit(&random);
        }
    }
    return ok;
}

/* ---- the searches ---- */

static void add_result(struct comparison *c, const struct psim_run *r)
{
    json_array_append_new(
        c->results,
        json_pack("{s:s,s:o,s:f,s:f,s:f,s:I,s:f,s:f,s:o,s:f,s:f,s:f,s:b}", "algorithm",
                  r->algorithm, "plan", tun_plan_json(&c->truth, &r->log[r->result].plan),
                  "bottleneck_ms", r->bottleneck_ns * 1e-6, "optimum_ms", r->optimum_ns * 1e-6,
                  "ratio", r->ratio, "trials", (json_int_t)r->count, "tuning_s", r->tuning_s,
                  "explored", r->explored, "space", json_text_number(r->space), "own_s", r->own_s,
                  "latency_ms", r->latency_ns * 1e-6, "energy_mj", r->outcome.energy_nj * 1e-6,
                  "possible", r->possible));
}

static int run_one(struct comparison *c, const char *algorithm, char error[PSIM_ERROR_MAX])
{
    struct psim_run run;
    int result;

    /* each search meets the same machine */
    c->machine.random.state = c->options.seed ^ 0x6e6f697365ull;
    result = psim_run(algorithm, &c->told, &c->options, &c->machine, error, &run);
    if (result == 0) {
        add_result(c, &run);
        psim_run_deinit(&run);
    }
    return result;
}

static int run_named(struct comparison *c)
{
    char error[PSIM_ERROR_MAX] = "";
    char *text = strdup(c->o->algorithm), *at = text, *name;
    int code = text ? 0 : PSIM_FAILED;

    while (code == 0 && (name = strsep(&at, ","))) {
        if (!tun_algorithm_find(name)) {
            code = psim_usage("compare", "no algorithm '%s'; pipesim list shows them", name);
        } else if (run_one(c, name, error) != 0) {
            code = psim_fail("%s", error);
        }
    }
    free(text);
    return code;
}

static int run_all(struct comparison *c)
{
    size_t count;
    const struct tun_algorithm *const *all = tun_algorithms(&count);

    for (size_t i = 0; i < count; i++) {
        char error[PSIM_ERROR_MAX] = "";
        double space = tun_algorithm_space(all[i], &c->told, &c->options);

        if (strcmp(all[i]->name, "exhaustive") == 0 && c->options.trials_max == 0 &&
            !(space <= SPACE_MAX)) {
            snprintf(error, sizeof(error),
                     "skipping %s: its space has %.4g plans; name it with --algorithm, or limit "
                     "it with --trials",
                     all[i]->name, space);
        } else if (run_one(c, all[i]->name, error) == 0) {
            continue;
        }
        json_array_append_new(c->notes, json_string(error));
    }
    return json_array_size(c->results) ? 0 : PSIM_FAILED;
}

/* ---- output ---- */

static void print_table(const struct comparison *c)
{
    static const struct cli_column columns[] = {
        {"algorithm", "algorithm", 'l'},
        {"bottleneck ms", "bottleneck_ms", 'r', CLI_DECIMALS, 3},
        {"ratio", "ratio", 'r', CLI_DECIMALS, 3},
        {"latency ms", "latency_ms", 'r', CLI_DECIMALS, 3},
        {"trials", "trials", 'r'},
        {"tuning s", "tuning_s", 'r', CLI_DECIMALS, 2},
        {"own s", "own_s", 'r', CLI_DECIMALS, 4},
        {"explored", "explored", 'r', CLI_SIGNIFICANT, 3, 100, " %", .positive = true},
        {"plan", "plan", 'l'},
        {0}};

    shown_printf("%zu unit%s; optimum over all plans: %.3f ms\n\n", c->truth.unit_count,
                 base_plural(c->truth.unit_count),
                 json_number_value(json_object_get(json_array_get(c->results, 0), "optimum_ms")));
    cli_print_rows(c->results, columns);
}

static int compare(struct comparison *c)
{
    char error[PSIM_ERROR_MAX] = "";
    int code;

    if (c->o->predict && !c->o->platform) {
        return psim_usage("compare", "--predict needs a described machine: give --platform");
    }
    if (!set_contention(c)) {
        return CLI_USAGE;
    }
    if (tell_wrong(c, error) < 0) {
        return psim_fail("%s", error[0] ? error : "out of memory");
    }
    code = c->o->algorithm ? run_named(c) : run_all(c);
    json_text_each(c->notes, i, note) {
        psim_say("%s", json_string_value(note));
    }
    if (code == 0 && c->o->json) {
        code = psim_print_json(json_incref(c->results));
    } else if (code == 0) {
        print_table(c);
    }
    return code;
}

int psim_cmd_compare(int argc, char **argv)
{
    struct psim_options o = {0};
    struct comparison c = {.o = &o, .results = json_array(), .notes = json_array()};
    int code = psim_options(argc, argv, &o);

    code = code ? code : psim_subject(&o, "compare", &c.truth);
    c.machine = psim_machine(&c.truth, 0);
    c.machine.frames = o.frames;
    c.machine.noise = o.noise;
    c.options =
        (struct tun_options){.seed = o.seed,
                             .alpha = o.alpha,
                             .heuristic = o.heuristic,
                             .encoding = (enum tun_encoding)o.encoding,
                             .stages = o.stages,
                             .space = (enum tun_space)o.space,
                             .no_hints = o.no_hints,
                             .enough_ns = o.stop_fps > 0 ? (double)BASE_NS_PER_S / o.stop_fps : 0,
                             .trials_max = (size_t)o.trials};
    code = code ? code : compare(&c);
    tun_problem_deinit(&c.told);
    tun_problem_deinit(&c.truth);
    json_decref(c.results);
    json_decref(c.notes);
    return code;
}
