/* SPDX-License-Identifier: Apache-2.0 */
/* Saves, reads and uses the result of a profile. */

#include "daemon/config/state_file.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/profile.h"
#include "daemon/service/log.h"

static bool state_path(const struct dmn_plans *plans, char ret[DMN_STATE_PATH_MAX])
{
    return dmn_state_file_path(DMN_STATE_PROFILE, plans->models->state_dir, "", "", ret);
}

const char *dmn_layer_name(enum tun_layer layer)
{
    static const char *const names[TUN_LAYERS] = {[TUN_CONV] = "conv",
                                                  [TUN_PLAIN] = "plain",
                                                  [TUN_CONV3] = "conv3x3",
                                                  [TUN_FC] = "fc",
                                                  [TUN_DEPTHWISE] = "depthwise"};

    return names[layer];
}

/* Return: NULL: there are none. */
static json_t *numbers(bool has, const double *v, size_t count)
{
    json_t *list = has ? json_array() : NULL;

    for (size_t i = 0; has && i < count; i++) {
        json_array_append_new(list, json_real(v[i]));
    }
    return list;
}

static json_t *kind_json(const struct dmn_plans *plans, size_t e)
{
    const struct pl_ep *ep = &plans->machine->eps.eps[e];
    const struct dmn_profiled *of = dmn_profiled(plans, ep->name);
    const struct dmn_streams *s = &plans->profile->streams;
    bool same = e < s->on.count && strcmp(s->on.eps[e].name, ep->name) == 0;
    char cpus[512];
    json_t *kind;

    gov_cpulist_format(ep->cpus, ep->cpu_count, cpus, sizeof(cpus));
    kind = json_pack("{s:s, s:s, s:f, s:f, s:b, s:I}", "name", ep->name, "cpus", cpus, "gbytes",
                     same ? s->one[e] : 0, "gbytes_max", same ? s->all[e] : 0, "known", of->known,
                     "benches", (json_int_t)of->benches);
    for (size_t i = 0; i < TUN_LAYERS; i++) {
        const struct tun_fit *f = &of->predictor.fits[i];

        if (f->has) {
            json_object_set_new(kind, dmn_layer_name((enum tun_layer)i),
                                json_pack("{s:o*, s:f, s:o*, s:f}", "one",
                                          numbers(true, f->b, base_array_count(f->b)), "error",
                                          f->error, "wide",
                                          numbers(f->has_wide, f->a, base_array_count(f->a)),
                                          "error_wide", f->error_wide));
        }
    }
    return kind;
}

void dmn_profile_save(const struct dmn_plans *plans, struct dmn_state_kept kept)
{
    char path[DMN_STATE_PATH_MAX];
    json_t *kinds;

    if (!state_path(plans, path)) {
        if (kept.fn) {
            kept.fn(kept.ctx, -ENOENT);
        }
        return;
    }
    kinds = json_array();
    for (size_t e = 0; e < plans->machine->eps.count; e++) {
        json_array_append_new(kinds, kind_json(plans, e));
    }
    dmn_state_put(plans->models->disk, DMN_STATE_PROFILE, path,
                  json_pack("{s:s, s:f, s:o}", "piped", PIPED_VERSION, "gbytes_max",
                            plans->profile->streams.machine, "kinds", kinds),
                  kept);
}

/* Return: the list has exactly @count finite numbers. */
static bool read_numbers(const json_t *list, double *ret, size_t count)
{
    if (json_array_size(list) != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(list, i);

        ret[i] = json_number_value(v);
        if (!json_is_number(v) || !(fabs(ret[i]) < 1e30)) {
            return false;
        }
    }
    return true;
}

static double read_figure(const json_t *from, const char *key)
{
    double v = json_number_value(json_object_get(from, key));

    return v >= 0 && v < 1e6 ? v : 0;
}

static void read_kind(struct dmn_plans *plans, size_t e, const json_t *kind)
{
    const char *name = json_string_value(json_object_get(kind, "name"));
    const char *saved = json_string_value(json_object_get(kind, "cpus"));
    json_int_t benches = json_integer_value(json_object_get(kind, "benches"));
    struct tun_predictor p = {0};
    char cpus[512];

    gov_cpulist_format(plans->machine->eps.eps[e].cpus, plans->machine->eps.eps[e].cpu_count, cpus,
                       sizeof(cpus));
    if (!name || !saved || strcmp(name, plans->machine->eps.eps[e].name) != 0 ||
        strcmp(saved, cpus) != 0) {
        return;
    }
    plans->profile->streams.one[e] = read_figure(kind, "gbytes");
    plans->profile->streams.all[e] = read_figure(kind, "gbytes_max");
    if (!json_is_true(json_object_get(kind, "known"))) {
        return;
    }
    for (size_t i = 0; i < TUN_LAYERS; i++) {
        const json_t *fit = json_object_get(kind, dmn_layer_name((enum tun_layer)i));
        struct tun_fit *f = &p.fits[i];

        f->has = read_numbers(json_object_get(fit, "one"), f->b, base_array_count(f->b));
        f->has_wide = read_numbers(json_object_get(fit, "wide"), f->a, base_array_count(f->a));
        f->error = read_figure(fit, "error");
        f->error_wide = read_figure(fit, "error_wide");
    }
    if (p.fits[TUN_CONV].has || p.fits[TUN_FC].has) {
        dmn_profile_keep(plans, name, benches > 0 ? (size_t)benches : 0, &p);
    }
}

static void read_state(struct dmn_plans *plans)
{
    char path[DMN_STATE_PATH_MAX];
    json_t *state = NULL, *kinds, *kind;
    const char *version;
    size_t i;

    if (!state_path(plans, path) ||
        dmn_state_file_read(DMN_STATE_PROFILE, path, NULL, &state) != 0) {
        return;
    }
    version = json_string_value(json_object_get(state, "piped"));
    kinds = json_object_get(state, "kinds");
    if (version && strcmp(version, PIPED_VERSION) == 0 &&
        json_array_size(kinds) == plans->machine->eps.count) {
        plans->profile->streams.machine = read_figure(state, "gbytes_max");
        json_array_foreach(kinds, i, kind)
        {
            read_kind(plans, i, kind);
        }
    } else {
        dmn_log(LOG_INFO, "ignoring the profile in %s: made for other cores or by another version",
                path);
    }
    json_decref(state);
}

int dmn_profile_init(struct dmn_plans *plans)
{
    plans->profile = calloc(1, sizeof(*plans->profile));
    if (!plans->profile) {
        return -ENOMEM;
    }
    plans->profile->streams.on = *dmn_machine_whole(plans->machine);
    read_state(plans);
    return 0;
}

const struct dmn_profiled *dmn_profiled(const struct dmn_plans *plans, const char *ep)
{
    static const struct dmn_profiled nothing;

    for (size_t i = 0; plans->profile && i < PL_EP_MAX; i++) {
        if (strcmp(plans->profile->eps[i].ep, ep) == 0) {
            return &plans->profile->eps[i];
        }
    }
    return &nothing;
}

void dmn_profile_keep(struct dmn_plans *plans, const char *ep, size_t benches,
                      const struct tun_predictor *p)
{
    struct dmn_profiled *to = plans->profile->eps;
    size_t i = 0;

    while (i + 1 < PL_EP_MAX && to[i].ep[0] && strcmp(to[i].ep, ep) != 0) {
        i++;
    }
    to[i] = (struct dmn_profiled){.known = true, .benches = benches, .predictor = *p};
    snprintf(to[i].ep, sizeof(to[i].ep), "%s", ep);
}

size_t dmn_profile_predict(const struct dmn_plans *plans, struct tun_problem *p)
{
    size_t cells = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        const struct dmn_profiled *of = dmn_profiled(plans, p->eps[k].name);

        cells += of->known ? tun_predict_costs(p, k, &of->predictor) : 0;
    }
    return cells;
}
