/* SPDX-License-Identifier: Apache-2.0 */
/* The exact plan of a known cost table. */

#include "base/base.h"
#include "tuner/boards/solve_boards.h"
#include "tuner/eval_boards.h"
#include "tuner/json/record_json.h"
#include "tuner/pipesim/subject.h"
#include "tuner/solve/solve.h"

#define FRONT_MAX 32u

struct planned {
    struct tun_solution *top, *front; /* owned */
    size_t top_count, front_count;
    bool possible;
    bool front_whole;
};

static bool several_boards(const struct tun_problem *p)
{
    return p->boards.count > 1;
}

static double ms(double ns)
{
    return ns / (double)BASE_NS_PER_MS;
}

static double fps(const struct tun_outcome *o)
{
    return (double)BASE_NS_PER_S / o->bottleneck_ns;
}

/* Milliwatts times nanoseconds would be pJ; watts times nanoseconds are nJ. */
static double energy_mj(const struct tun_outcome *o)
{
    return o->energy_nj * 1e-6;
}

static json_t *outcome_json(const struct tun_problem *p, const struct tun_solution *s)
{
    json_t *v =
        json_pack("{s:o,s:f,s:f,s:f,s:f}", "plan", tun_plan_json(p, &s->plan), "bottleneck_ms",
                  ms(s->outcome.bottleneck_ns), "fps", fps(&s->outcome), "latency_ms",
                  ms(s->outcome.latency_ns), "energy_mj", energy_mj(&s->outcome));

    if (several_boards(p)) {
        char limit[TUN_ERROR_MAX];

        tun_limit_text(p, &s->plan, &s->outcome, limit);
        json_object_update_new(v, json_pack("{s:s,s:f,s:f}", "limit", limit, "board_memory_mb",
                                            s->outcome.most_memory_bytes / 1e6, "board_energy_mj",
                                            s->outcome.most_energy_nj / 1e6));
    }
    return v;
}

static json_t *stages_json(const struct tun_problem *p, const struct tun_solution *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->plan.stage_count; i++) {
        const struct pl_stage_plan *stage = &s->plan.stages[i];
        json_t *teams = json_array();

        for (size_t g = 0; g < stage->group_count; g++) {
            const struct pl_group *group = &stage->groups[g];

            json_array_append_new(teams,
                                  json_pack("{s:s,s:i,s:i,s:f}", "kind", p->eps[group->ep].name,
                                            "width", (int)group->width, "count", (int)group->count,
                                            "service_ms", ms(s->outcome.team_ns[i][g])));
        }
        json_array_append_new(
            list, json_pack("{s:i,s:i,s:f,s:f,s:o}", "first", (int)stage->first_unit, "last",
                            (int)stage->last_unit, "period_ms", ms(s->outcome.stage_ns[i]), "busy",
                            s->outcome.stage_ns[i] / s->outcome.bottleneck_ns, "teams", teams));
    }
    return list;
}

static json_t *solutions_json(const struct tun_problem *p, const struct tun_solution *s,
                              size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, outcome_json(p, &s[i]));
    }
    return list;
}

static int print_json(const struct tun_problem *p, const struct planned *d)
{
    json_t *v = outcome_json(p, &d->top[0]);

    json_object_set_new(v, "bound_ms", json_real(ms(tun_bound_ns(p))));
    json_object_set_new(v, "possible", json_boolean(d->possible));
    json_object_set_new(v, "blocks", json_boolean(d->top[0].blocks));
    json_object_set_new(v, "units", json_integer((json_int_t)p->unit_count));
    json_object_set_new(v, "stages", stages_json(p, &d->top[0]));
    json_object_set_new(v, "runners_up", solutions_json(p, d->top + 1, d->top_count - 1));
    if (d->front) {
        json_object_set_new(v, "front", solutions_json(p, d->front, d->front_count));
    }
    return psim_print_json(v);
}

static void print_stages(const struct tun_problem *p, const struct tun_solution *s)
{
    struct cli_table t = {.align = "llllrr"};

    cli_table_add(&t, "stage\tunits\tteams\tservice ms\tperiod ms\tbusy");
    for (size_t i = 0; i < s->plan.stage_count; i++) {
        const struct pl_stage_plan *stage = &s->plan.stages[i];

        for (size_t g = 0; g < stage->group_count; g++) {
            const struct pl_group *group = &stage->groups[g];
            char units[32] = "", name[24] = "", period[32] = "", busy[16] = "";

            if (g == 0) {
                snprintf(name, sizeof(name), "%zu", i);
                snprintf(units, sizeof(units), "%u-%u", stage->first_unit, stage->last_unit);
                snprintf(period, sizeof(period), "%.3f", ms(s->outcome.stage_ns[i]));
                snprintf(busy, sizeof(busy), "%.0f %%",
                         100 * s->outcome.stage_ns[i] / s->outcome.bottleneck_ns);
            }
            cli_table_add(&t, "%s\t%s\t%u of %s x%u\t%.3f\t%s\t%s", name, units, group->count,
                          p->eps[group->ep].name, group->width, ms(s->outcome.team_ns[i][g]),
                          period, busy);
        }
    }
    cli_table_print(&t);
}

static const struct cli_column SOLUTIONS[] = {
    {"bottleneck ms", "bottleneck_ms", 'r', CLI_DECIMALS, 3},
    {"fps", "fps", 'r', CLI_DECIMALS, 2},
    {"latency ms", "latency_ms", 'r', CLI_DECIMALS, 3},
    {"mJ/frame", "energy_mj", 'r', CLI_DECIMALS, 2},
    {"plan", "plan", 'l'},
    {0}};
static const struct cli_column OVER_BOARDS[] = {
    {"fps", "fps", 'r', CLI_DECIMALS, 2},
    {"MB", "board_memory_mb", 'r', CLI_DECIMALS, 1},
    {"mJ/frame", "board_energy_mj", 'r', CLI_DECIMALS, 2},
    {"plan", "plan", 'l'},
    {0}};

static void print_solutions(const struct tun_problem *p, const char *head,
                            const struct cli_column *columns, const struct tun_solution *s,
                            size_t count)
{
    json_auto_t *list = solutions_json(p, s, count);

    shown_printf("\n%s\n", head);
    cli_print_rows(list, columns);
}

/* A figure of energy is as good as the watts that it is made of, so they stand beside it. */
static void print_energy(const struct tun_problem *p, const struct tun_outcome *o)
{
    printf("energy      %.2f mJ a frame; assumed of a busy core:", energy_mj(o));
    for (size_t k = 0; k < p->ep_count; k++) {
        shown_printf("%s %s %.3g W", k ? "," : "", p->eps[k].name, tun_ep_watts(&p->eps[k]));
    }
    putchar('\n');
}

static int print_text(const struct tun_problem *p, const struct planned *d)
{
    const struct tun_outcome *o = &d->top[0].outcome;
    char text[PL_PLAN_TEXT_MAX];

    tun_plan_text(p, &d->top[0].plan, text);
    shown_printf("plan        %s\n", text);
    printf("bottleneck  %.3f ms (%.2f frames/s); perfectly divided work on single cores: %.3f ms\n",
           ms(o->bottleneck_ns), fps(o), ms(tun_bound_ns(p)));
    printf("latency     %.3f ms, worst frame\n", ms(o->latency_ns));
    print_energy(p, o);
    if (several_boards(p)) {
        tun_limit_text(p, &d->top[0].plan, o, text);
        shown_printf("decided by  %s; most of a board: %.1f MB, %.2f mJ a frame\n", text,
                     o->most_memory_bytes / 1e6, o->most_energy_nj / 1e6);
    }
    if (d->top[0].blocks) {
        printf(
            "note        cores were handed out in blocks, as there are so many: not proven best\n");
    }
    printf("\n");
    print_stages(p, &d->top[0]);
    if (d->top_count > 1) {
        print_solutions(p, "runners-up", SOLUTIONS, d->top + 1, d->top_count - 1);
    }
    if (d->front && several_boards(p)) {
        print_solutions(p, "front of throughput, largest memory and largest energy of a board",
                        OVER_BOARDS, d->front, d->front_count);
        if (!d->front_whole) {
            puts("There are more plans on the front than these.");
        }
    } else if (d->front) {
        print_solutions(p, "front of throughput and latency", SOLUTIONS, d->front, d->front_count);
    }
    return PSIM_DONE;
}

static int solve(const struct tun_problem *p, size_t top, bool front, struct planned *d)
{
    int error;

    d->top = calloc(top, sizeof(*d->top));
    d->front = front ? calloc(FRONT_MAX, sizeof(*d->front)) : NULL;
    if (!d->top || (front && !d->front)) {
        return -ENOMEM;
    }
    error = tun_solve_top(p, top, d->top, &d->top_count);
    d->possible = error != TUN_E_IMPOSSIBLE;
    if (!d->possible) {
        error = tun_solve(p, &d->top[0]);
        error = error == TUN_E_IMPOSSIBLE ? 0 : error;
        d->top_count = 1;
    }
    if (error == 0 && front && several_boards(p)) {
        error = tun_boards_front(p, FRONT_MAX, d->front, &d->front_count, &d->front_whole);
    } else if (error == 0 && front) {
        error = tun_front(p, FRONT_MAX, d->front, &d->front_count);
    }
    return error;
}

static int plan_it(const struct psim_options *o, const struct tun_problem *p)
{
    struct planned d = {0};
    int error = solve(p, o->top, o->front, &d), code = PSIM_FAILED;

    if (error) {
        psim_say("cannot solve the problem: %s", strerror(-error));
    } else {
        code = o->json ? print_json(p, &d) : print_text(p, &d);
        if (!d.possible) {
            code = psim_fail("%s; showing the fastest one. Relax --fps or --latency",
                             several_boards(p) ? tun_short_texts[d.top[0].missing]
                                               : "no plan keeps the bounds");
        }
    }
    free(d.top);
    free(d.front);
    return code;
}

int psim_cmd_plan(int argc, char **argv)
{
    struct psim_options o = {.top = 1};
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    int code = psim_options(argc, argv, &o);

    code = code ? code : psim_subject(&o, "plan", &p);
    p.bounds.one_ep_stages = o.one_ep;
    return code ? code : plan_it(&o, &p);
}
