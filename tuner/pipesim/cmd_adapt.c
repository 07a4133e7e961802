/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that change by script: what is noticed, when, and what comes of it. */
#include <math.h>

#include "base/base.h"
#include "tuner/json/record_json.h"
#include "tuner/pipesim/adapting.h"
#include "tuner/pipesim/pipesim.h"
#include "tuner/pipesim/subject.h"

/* One line of the table: figures over the runs of one scenario. */
struct line {
    size_t runs, noticed, within, changed, named;
    double windows, delay_s, changes, searches, backs, ratio_slow, ratio_end, hours, alarms;
};

static void keep_record(void *context, double at_s, const struct tun_record *r,
                        const struct tun_decision *d)
{
    json_array_append_new(context, json_pack("{s:f,s:o}", "at", at_s, "decision",
                                             tun_record_json(r, d, "recorded", false)));
}

static void add(struct line *l, const struct psim_scenario *s, const struct psim_adapted *o)
{
    l->runs++;
    l->alarms += (double)o->alarms;
    l->changes += (double)o->changes;
    l->searches += (double)o->searches;
    l->backs += (double)o->backs;
    l->ratio_slow += o->ratio_slow;
    l->ratio_end += o->ratio_end;
    l->hours += (double)o->windows * (double)PSIM_WINDOW_NS / (3600.0 * (double)BASE_NS_PER_S);
    l->within += o->noticed_windows <= 3;
    if (isfinite(o->noticed_windows)) {
        l->noticed++;
        l->windows += o->noticed_windows;
    }
    if (isfinite(o->changed_s)) {
        l->changed++;
        l->delay_s += o->changed_s;
    }
    for (size_t i = 0; i < base_min(o->changes, (size_t)PSIM_CHANGES_MAX); i++) {
        if (o->log[i].at_s >= s->onset_s) {
            l->named += o->log[i].cause == s->cause;
            break;
        }
    }
}

static json_t *per(double sum, double count)
{
    return count > 0 && isfinite(sum) ? json_real(sum / count) : json_null();
}

static json_t *line_json(const struct psim_scenario *s, const struct line *l)
{
    double runs = (double)l->runs;
    bool happens = s->end_s > 0;

    return json_pack("{s:s,s:s,s:I,s:f,s:o,s:o,s:o,s:o,s:o,s:f,s:f,s:f,s:f,s:o,s:o}", "scenario",
                     s->name, "what", s->what, "runs", (json_int_t)l->runs, "hours", l->hours,
                     "noticed_windows", happens ? per(l->windows, (double)l->noticed) : json_null(),
                     "noticed_in_3", happens ? per((double)l->within, runs) : json_null(),
                     "changed_s", happens ? per(l->delay_s, (double)l->changed) : json_null(),
                     "changed", per((double)l->changed, runs), "cause_named",
                     s->cause ? per((double)l->named, (double)l->changed) : json_null(),
                     "changes_per_hour", l->changes / l->hours, "searches_per_hour",
                     l->searches / l->hours, "backs_per_hour", l->backs / l->hours,
                     "alarms_per_hour", l->alarms / l->hours, "ratio_slow",
                     per(l->ratio_slow, runs), "ratio_end", per(l->ratio_end, runs));
}

static int play(const struct psim_scenario *s, const struct psim_options *w,
                const struct tun_problem *truth, json_t *lines, json_t *records)
{
    struct psim_adapting how = {.truth = truth,
                                .scenario = s,
                                .noise = {w->noise, w->correlation, w->spikes, w->sigma},
                                .seconds = s->end_s > 0 ? 0 : 3600 * w->hours,
                                .algorithm = w->algorithm ? tun_algorithm_find(w->algorithm) : NULL,
                                .trials_max = (size_t)w->trials,
                                .decided = records ? keep_record : NULL,
                                .context = records};
    size_t runs = s->end_s > 0 ? (size_t)w->runs : 1;
    struct line line = {0};

    for (size_t i = 0; i < runs; i++) {
        struct psim_adapted out;
        int error;

        how.seed = w->seed + i;
        error = psim_adapt(&how, &out);
        if (error) {
            return error;
        }
        add(&line, s, &out);
    }
    json_array_append_new(lines, line_json(s, &line));
    return 0;
}

static void print(const json_t *lines)
{
    static const struct cli_column columns[] = {
        {"scenario", "scenario", 'l'},
        {"runs", "runs", 'r'},
        {"hours", "hours", 'r', CLI_DECIMALS, 1},
        {"noticed, windows", "noticed_windows", 'r', CLI_DECIMALS, 2},
        {"in 3, %", "noticed_in_3", 'r', CLI_DECIMALS, 0, 100},
        {"changed, s", "changed_s", 'r', CLI_DECIMALS, 2},
        {"of runs, %", "changed", 'r', CLI_DECIMALS, 0, 100},
        {"cause, %", "cause_named", 'r', CLI_DECIMALS, 0, 100},
        {"changes/h", "changes_per_hour", 'r', CLI_DECIMALS, 2},
        {"searches/h", "searches_per_hour", 'r', CLI_DECIMALS, 2},
        {"of best, %", "ratio_slow", 'r', CLI_DECIMALS, 0, 100},
        {"at end, %", "ratio_end", 'r', CLI_DECIMALS, 0, 100},
        {0}};

    cli_print_rows(lines, columns);
}

static int adapt(const struct psim_options *w, const struct tun_problem *truth)
{
    json_auto_t *lines = json_array(), *records = w->records ? json_array() : NULL;
    int code = PSIM_DONE, error = 0;

    for (const struct psim_scenario *c = psim_scenarios; c->name && error == 0; c++) {
        if (!w->scenario || c == psim_scenario_find(w->scenario)) {
            error = play(c, w, truth, lines, records);
        }
    }
    if (error) {
        code = psim_fail("cannot run the scenario: %s", strerror(-error));
    } else if (w->json) {
        code = psim_print_json(json_incref(lines));
    } else {
        print(lines);
    }
    if (code == PSIM_DONE && records && json_dump_file(records, w->records, JSON_COMPACT) < 0) {
        code = psim_fail("cannot write %s: %s", w->records, strerror(errno));
    }
    return code;
}

int psim_cmd_adapt(int argc, char **argv)
{
    struct psim_noise usual = PSIM_NOISE;
    struct psim_options o = {.trials = 20,
                             .runs = 20,
                             .hours = 10,
                             .noise = usual.cv,
                             .correlation = usual.correlation,
                             .spikes = usual.spikes,
                             .sigma = usual.error};
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    int code = psim_options(argc, argv, &o);

    if (!o.model && !o.platform && !o.problem) {
        o.model = "vgg16";
        o.platform = "hikey970";
    }
    code = code ? code : psim_subject(&o, "adapt", &truth);
    return code ? code : adapt(&o, &truth);
}
