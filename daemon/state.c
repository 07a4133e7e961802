/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

/* What was learned is good for the same model on the same cores. */
static void describe_eps(const struct pl_ep_set *eps, char *ret, size_t bytes)
{
    size_t used = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < eps->count && used < bytes; i++) {
        char cpus[512];

        dmn_cpu_list_format(eps->eps[i].cpus, eps->eps[i].cpu_count, cpus, sizeof(cpus));
        used += (size_t)snprintf(ret + used, bytes - used, "%s%s:%s", i ? ";" : "",
                                 eps->eps[i].name, cpus);
    }
}

static bool state_path(const struct dmn_model *m, const char *suffix, char *ret, size_t bytes)
{
    int n =
        snprintf(ret, bytes, "%s/plan-%.64s-%s.json%s",
                 m->daemon->state_dir ? m->daemon->state_dir : "", m->model->hash, m->name, suffix);

    return m->daemon->state_dir && n > 0 && (size_t)n < bytes;
}

static json_t *costs_json(const struct dmn_model *m)
{
    json_t *object = json_object();

    for (size_t e = 0; e < m->costs.eps; e++) {
        json_t *list = json_array();

        for (size_t u = 0; u < m->costs.units; u++) {
            json_array_append_new(list, json_real(*dmn_costs_at(&m->costs, e, u)));
        }
        json_object_set_new(object, m->daemon->eps.eps[e].name, list);
    }
    return object;
}

void dmn_state_save(const struct dmn_model *m)
{
    char path[4096], temporary[4096], eps[4096], plan[PL_PLAN_TEXT_MAX];
    json_t *state;

    if (!state_path(m, "", path, sizeof(path)) ||
        !state_path(m, ".new", temporary, sizeof(temporary))) {
        return;
    }
    describe_eps(&m->daemon->eps, eps, sizeof(eps));
    dmn_model_plan_text(m, plan);
    state = json_pack("{s:i, s:s, s:s, s:s, s:s, s:o}", "version", 1, "model", m->name, "eps", eps,
                      "plan", plan, "algorithm", m->algorithm, "costs_ns", costs_json(m));
    /* the rename makes it whole or absent; a loss by power failure costs one retune */
    if (!state || json_dump_file(state, temporary, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) < 0 ||
        rename(temporary, path) < 0) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                        "the plan of model %s could not be kept in %s: %s", m->name, path,
                        strerror(errno));
        unlink(temporary);
    }
    json_decref(state);
}

static void load_costs(struct dmn_model *m, json_t *costs)
{
    for (size_t e = 0; e < m->costs.eps; e++) {
        json_t *list = json_object_get(costs, m->daemon->eps.eps[e].name);

        for (size_t u = 0; u < m->costs.units && json_array_size(list) == m->costs.units; u++) {
            double ns = json_number_value(json_array_get(list, u));

            *dmn_costs_at(&m->costs, e, u) = ns >= 0 && ns < 1e15 ? ns : -1;
        }
    }
}

int dmn_state_load(struct dmn_model *m, struct pl_plan *ret)
{
    char path[4096], eps[4096], error[256];
    const char *plan, *saved_eps, *algorithm;
    struct stat st;
    json_t *state;
    int result = -ENOENT;

    if (!state_path(m, "", path, sizeof(path)) || stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
        st.st_size > (16 << 20)) {
        return -ENOENT;
    }
    state = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    plan = json_string_value(json_object_get(state, "plan"));
    saved_eps = json_string_value(json_object_get(state, "eps"));
    algorithm = json_string_value(json_object_get(state, "algorithm"));
    describe_eps(&m->daemon->eps, eps, sizeof(eps));
    if (plan && saved_eps && algorithm && strcmp(saved_eps, eps) == 0 &&
        pl_plan_parse(plan, &m->daemon->eps, m->model->unit_count, error, sizeof(error), ret) ==
            0) {
        load_costs(m, json_object_get(state, "costs_ns"));
        m->algorithm = dmn_algorithm(algorithm);
        result = 0;
    } else {
        dmn_log(LOG_INFO, "the kept plan in %s does not fit any more", path);
    }
    json_decref(state);
    return result;
}
