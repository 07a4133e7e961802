/* SPDX-License-Identifier: Apache-2.0 */
/* The exact plan of a known cost table. */
#include <string.h>

#include "base.h"
#include "tuner/pipesim/subject.h"

#define TOP_MAX 64u
#define FRONT_MAX 32u

struct planned {
    struct tun_solution *top, *front; /* owned */
    size_t top_count, front_count;
    bool possible;
};

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
    char text[PL_PLAN_TEXT_MAX];

    psim_plan_text(p, &s->plan, text);
    return json_pack("{s:s,s:f,s:f,s:f,s:f}", "plan", text, "bottleneck_ms",
                     ms(s->outcome.bottleneck_ns), "fps", fps(&s->outcome), "latency_ms",
                     ms(s->outcome.latency_ns), "energy_mj", energy_mj(&s->outcome));
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
                                  json_pack("{s:s,s:i,s:i,s:f}", "kind", p->kinds[group->ep].name,
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
    json_t *rows = json_array();

    psim_row(rows, "stage\tunits\tteams\tservice ms\tperiod ms\tbusy");
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
            psim_row(rows, "%s\t%s\t%u of %s x%u\t%.3f\t%s\t%s", name, units, group->count,
                     p->kinds[group->ep].name, group->width, ms(s->outcome.team_ns[i][g]), period,
                     busy);
        }
    }
    psim_print_rows(rows, "llllrr");
}

static void print_solutions(const struct tun_problem *p, const char *head,
                            const struct tun_solution *s, size_t count)
{
    json_t *rows = json_array();

    printf("\n%s\n", head);
    psim_row(rows, "bottleneck ms\tfps\tlatency ms\tmJ/frame\tplan");
    for (size_t i = 0; i < count; i++) {
        const struct tun_outcome *o = &s[i].outcome;
        char text[PL_PLAN_TEXT_MAX];

        psim_plan_text(p, &s[i].plan, text);
        psim_row(rows, "%.3f\t%.2f\t%.3f\t%.2f\t%s", ms(o->bottleneck_ns), fps(o),
                 ms(o->latency_ns), energy_mj(o), text);
    }
    psim_print_rows(rows, "rrrrl");
}

static int print_text(const struct tun_problem *p, const struct planned *d)
{
    const struct tun_outcome *o = &d->top[0].outcome;
    char text[PL_PLAN_TEXT_MAX];

    psim_plan_text(p, &d->top[0].plan, text);
    printf("plan        %s\n", text);
    printf("bottleneck  %.3f ms (%.2f frames/s); perfectly divided work on single cores: %.3f ms\n",
           ms(o->bottleneck_ns), fps(o), ms(tun_bound_ns(p)));
    printf("latency     %.3f ms, worst frame\n", ms(o->latency_ns));
    printf("energy      %.2f mJ a frame\n", energy_mj(o));
    if (d->top[0].blocks) {
        printf("note        so many cores that they were handed out in blocks: not proven best\n");
    }
    printf("\n");
    print_stages(p, &d->top[0]);
    if (d->top_count > 1) {
        print_solutions(p, "runners-up", d->top + 1, d->top_count - 1);
    }
    if (d->front) {
        print_solutions(p, "front of throughput and latency", d->front, d->front_count);
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
    if (error == 0 && front) {
        error = tun_front(p, FRONT_MAX, d->front, &d->front_count);
    }
    return error;
}

static int plan_it(const struct psim_subject *s, size_t top, bool front)
{
    struct planned d = {0};
    int error = solve(&s->problem, top, front, &d), code = PSIM_FAILED;

    if (error) {
        psim_say("cannot solve this: %s", strerror(-error));
    } else {
        code = s->json ? print_json(&s->problem, &d) : print_text(&s->problem, &d);
        if (!d.possible) {
            psim_say("no plan keeps the bounds; shown is the fastest one: ask for less with --fps "
                     "or --latency");
            code = PSIM_FAILED;
        }
    }
    free(d.top);
    free(d.front);
    return code;
}

int psim_cmd_plan(int argc, char **argv)
{
    static const struct option options[] = {PSIM_SUBJECT_OPTIONS,
                                            {"front", no_argument, NULL, 'F'},
                                            {"top", required_argument, NULL, 't'},
                                            {"one-kind", no_argument, NULL, 'k'},
                                            {0}};
    struct psim_subject s = {0};
    double top = 1;
    bool front = false, one_kind = false;
    int option, code = PSIM_GO;

    while (code == PSIM_GO && (option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (option == 'F') {
            front = true;
        } else if (option == 'k') {
            one_kind = true;
        } else if (option == 't') {
            code =
                psim_option_number("plan", "top", optarg, 1, TOP_MAX, &top) ? PSIM_GO : PSIM_USAGE;
        } else {
            code = psim_subject_option(&s, "plan", option, argv);
        }
    }
    if (code == PSIM_GO && optind < argc) {
        code = psim_usage("plan", "takes no \"%s\"", argv[optind]);
    }
    code = code == PSIM_GO ? psim_subject_load(&s, "plan") : code;
    s.problem.bounds.one_kind_stages = one_kind;
    code = code == PSIM_GO ? plan_it(&s, (size_t)top, front) : code;
    psim_subject_deinit(&s);
    return code;
}
