/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/subject.h"

int psim_options(int argc, char **argv, struct psim_options *ret)
{
    const struct cli_command *command = cli_find(psim_program.commands, argv[0]);
    int code = cli_take(&psim_program, argc, argv, ret, NULL);

    return code || *command->usage ? code : cli_no_more(&psim_program, argc, argv);
}

/* ---- the subject ---- */

int psim_subject(const struct psim_options *o, const char *command, struct tun_problem *ret)
{
    char error[PSIM_ERROR_MAX] = "";
    struct psim_case c;
    int result;

    if (o->problem ? o->model || o->platform || o->layers : !o->model || !o->platform) {
        return psim_usage(command, "give --model and --platform, or --problem alone");
    }
    if (o->objective == TUN_POWER && o->fps == 0) {
        return psim_usage(command, "--objective power needs --fps, the rate to hold");
    }
    if (o->problem) {
        result = psim_problem_load(o->problem, error, ret);
    } else {
        result =
            psim_case_init(o->model, o->layers ? PSIM_LAYERS : PSIM_UNITS, o->platform, error, &c);
        if (!result) {
            psim_network_deinit(&c.network);
            *ret = c.truth;
        }
    }
    if (result) {
        return psim_fail("%s", error);
    }
    ret->objective = (enum tun_objective)o->objective;
    ret->bounds.period_max_ns = o->fps > 0 ? (double)BASE_NS_PER_S / o->fps : 0;
    ret->bounds.latency_max_ns = o->latency_ms * (double)BASE_NS_PER_MS;
    ret->bounds.stages_max = o->stages_max ? o->stages_max : ret->bounds.stages_max;
    return 0;
}

/* ---- output ---- */

int psim_print_json(json_t *v)
{
    int result = json_text_print(v, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));

    putchar('\n');
    json_decref(v);
    return result < 0 ? PSIM_FAILED : PSIM_DONE;
}
