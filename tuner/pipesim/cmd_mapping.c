/* SPDX-License-Identifier: Apache-2.0 */
/* AutoDiCE's mapping.json of a plan, and the plan of a mapping.json. */

#include "base/base.h"
#include "base/cli/shown_print.h"
#include "tuner/json/mapping_json.h"
#include "tuner/pipesim/pipesim.h"
#include "tuner/pipesim/platform.h"
#include "tuner/pipesim/subject.h"

#define COMMAND "mapping"

struct mapping {
    const char *model, *platform, *plan, *file;
    bool nodes;
    struct psim_network network; /* owned */
    struct tun_problem problem;  /* owned */
    const char **names;          /* [unit_count], owned; of network */
};

static int load(struct mapping *m)
{
    char error[PSIM_ERROR_MAX] = "";
    struct psim_platform platform;
    int result = psim_platform_load(m->platform, error, &platform);

    if (!result) {
        result = m->nodes ? psim_network_nodes(m->model, error, &m->network)
                          : psim_network_load(m->model, false, error, &m->network);
    }
    result = result ? result : psim_problem(&m->network, &platform, &m->problem);
    m->names = result ? NULL : calloc(m->network.unit_count, sizeof(*m->names));
    if (!m->names) {
        psim_say("%s", error[0] ? error : "out of memory");
        return PSIM_FAILED;
    }
    for (size_t u = 0; u < m->network.unit_count; u++) {
        m->names[u] = m->network.units[u].name;
    }
    return PSIM_GO;
}

static int export_plan(const struct mapping *m)
{
    char error[TUN_ERROR_MAX];
    struct pl_ep_set eps;
    struct pl_plan plan;
    json_t *json;

    tun_eps(&m->problem, &eps);
    if (pl_plan_parse(m->plan, &eps, m->problem.unit_count, error, sizeof(error), &plan) < 0 ||
        tun_mapping_json(&m->problem, &plan, m->names, error, &json) != 0) {
        psim_say("%s", error[0] ? error : "out of memory");
        return PSIM_FAILED;
    }
    return psim_print_json(json);
}

static int import_mapping(const struct mapping *m)
{
    char error[TUN_READER_ERROR_MAX] = "", text[PL_PLAN_TEXT_MAX];
    struct tun_reader r = {.path = m->file, .error = error};
    json_t *root = tun_read_file(&r);
    struct pl_plan plan;

    if (root) {
        tun_mapping_read(&r, root, &m->problem, m->names, &plan);
        json_decref(root);
    }
    if (error[0]) {
        psim_say("%s", error);
        return PSIM_FAILED;
    }
    psim_plan_text(&m->problem, &plan, text);
    shown_printf("%s\n", text);
    return PSIM_DONE;
}

int psim_cmd_mapping(int argc, char **argv)
{
    struct mapping m = {0};
    int option, code;

    while ((option = psim_option(argc, argv)) != -1) {
        switch (option) {
        case 'h':
            psim_help(stdout, COMMAND);
            return PSIM_DONE;
        case 'm':
            m.model = optarg;
            break;
        case 'p':
            m.platform = optarg;
            break;
        case 'n':
            m.nodes = true;
            break;
        case 'e':
            m.plan = optarg;
            break;
        case 'i':
            m.file = optarg;
            break;
        default:
            return psim_bad_option(COMMAND, option, argv);
        }
    }
    if (optind < argc || !m.model || !m.platform || !m.plan == !m.file) {
        return psim_usage(COMMAND, "give --model, --platform and one of --export and --import");
    }
    code = load(&m);
    if (code == PSIM_GO) {
        code = m.plan ? export_plan(&m) : import_mapping(&m);
    }
    free(m.names);
    tun_problem_deinit(&m.problem);
    psim_network_deinit(&m.network);
    return code;
}
