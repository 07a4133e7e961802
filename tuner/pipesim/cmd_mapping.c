/* SPDX-License-Identifier: Apache-2.0 */
/* AutoDiCE's mapping.json of a plan, and the plan of a mapping.json, or what it does without being
 * one. */

#include "base/base.h"
#include "tuner/json/mapping_json.h"
#include "tuner/pipesim/dse.h"
#include "tuner/pipesim/subject.h"

struct mapping {
    const struct psim_options *o;
    struct psim_case on; /* owned */
    const char **names;  /* [unit_count], owned; of its network */
};

static int load(struct mapping *m)
{
    char error[PSIM_ERROR_MAX] = "";

    if (psim_case_init(m->o->model, m->o->nodes ? PSIM_NODES : PSIM_UNITS, m->o->platform, error,
                       &m->on) == 0) {
        m->names = calloc(m->on.network.unit_count, sizeof(*m->names));
    }
    if (!m->names) {
        return psim_fail("%s", error[0] ? error : "out of memory");
    }
    for (size_t u = 0; u < m->on.network.unit_count; u++) {
        m->names[u] = m->on.network.units[u].name;
    }
    return 0;
}

static int export_plan(const struct mapping *m)
{
    char error[TUN_ERROR_MAX];
    struct pl_ep_set eps;
    struct pl_plan plan;
    json_t *json;

    tun_eps(&m->on.truth, &eps);
    if (pl_plan_parse(m->o->plan, &eps, m->on.truth.unit_count, error, sizeof(error), &plan) < 0 ||
        tun_mapping_json(&m->on.truth, &plan, m->names, error, &json) != 0) {
        return psim_fail("%s", error[0] ? error : "out of memory");
    }
    return psim_print_json(json);
}

/* Prints what a mapping does. */
static int evaluate(const struct mapping *m, const struct tun_mapping *from)
{
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct pl_group teams[base_array_count(from->places)];
    struct psim_mapped does;
    int error;

    for (size_t i = 0; i < from->place_count; i++) {
        teams[i] = from->places[i].team;
    }
    error = psim_places(&m->on.truth, teams, from->place_count, &p);
    if (error) {
        return psim_fail("%s",
                         error == -ENOMEM ? "out of memory" : "the mapping has too many keys");
    }
    psim_mapping(&p, from->place_of, &does);
    shown_printf("%.2f frames/s; the most of a board: %.1f MB, %.3f J a frame\n",
                 1e9 / does.bottleneck_ns, does.most_memory_bytes / 1e6, does.most_energy_nj / 1e9);
    return PSIM_DONE;
}

static int import_mapping(const struct mapping *m)
{
    char error[TUN_READER_ERROR_MAX] = "", text[PL_PLAN_TEXT_MAX];
    base_autofree uint16_t *place_of = calloc(m->on.truth.unit_count, sizeof(*place_of));
    struct tun_mapping mapping = {.place_of = place_of};
    struct tun_reader r = {.path = m->o->file, .error = error};
    json_auto_t *root = place_of ? tun_read_file(&r) : NULL;
    struct pl_plan plan;

    if (root) {
        tun_mapping_places(&r, root, &m->on.truth, m->names, &mapping);
    }
    if (!root || error[0]) {
        return psim_fail("%s", error[0] ? error : "out of memory");
    }
    tun_mapping_plan(&r, &mapping, m->on.truth.unit_count, &plan);
    if (error[0]) {
        shown_printf("no plan: %s\n", error);
    } else {
        tun_plan_text(&m->on.truth, &plan, text);
        shown_printf("%s\n", text);
    }
    return evaluate(m, &mapping);
}

int psim_cmd_mapping(int argc, char **argv)
{
    struct psim_options o = {0};
    struct mapping m = {.o = &o};
    int code = psim_options(argc, argv, &o);

    if (code) {
        return code;
    }
    if (!o.model || !o.platform || !o.plan == !o.file) {
        return psim_usage(argv[0], "give --model, --platform and one of --export and --import");
    }
    code = load(&m);
    if (code == 0) {
        code = o.plan ? export_plan(&m) : import_mapping(&m);
    }
    free(m.names);
    psim_case_deinit(&m.on);
    return code;
}
