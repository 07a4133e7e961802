/* SPDX-License-Identifier: Apache-2.0 */
/* Described machines, and what a network costs on one. */
#include <math.h>
#include <string.h>

#include "base.h"
#include "tuner/pipesim/files.h"

static const char *const LAYER_NAMES[] = {
    [PSIM_CONV] = "conv", [PSIM_DEPTHWISE] = "depthwise", [PSIM_FC] = "fc", [PSIM_OTHER] = "other"};

static void read_rates(struct psim_reader *r, const char *where, const json_t *kind,
                       struct psim_kind *ret)
{
    static const char *const keys[] = {"conv", "depthwise", "fc", "other", NULL};
    const json_t *gmacs = json_object_get(kind, "gmacs");
    char way[64];

    snprintf(way, sizeof(way), "%s.gmacs", where);
    if (!psim_read_keys(r, way, gmacs, keys)) {
        return;
    }
    for (size_t i = 0; i < base_array_count(LAYER_NAMES); i++) {
        ret->gmacs[i] = psim_read_positive(r, way, gmacs, LAYER_NAMES[i]);
    }
}

static void read_kind(struct psim_reader *r, const char *where, const json_t *json,
                      struct psim_kind *ret)
{
    static const char *const keys[] = {"name",       "cores",       "gmacs",  "serial", "gbytes",
                                       "gbytes_max", "overhead_ns", "watts?", NULL};

    if (!psim_read_keys(r, where, json, keys)) {
        return;
    }
    psim_read_kind(r, where, json, &ret->kind);
    read_rates(r, where, json, ret);
    ret->serial = psim_read_number(r, where, json, "serial", 0, 1);
    ret->gbytes = psim_read_positive(r, where, json, "gbytes");
    ret->gbytes_max = psim_read_positive(r, where, json, "gbytes_max");
    ret->overhead_ns = psim_read_positive(r, where, json, "overhead_ns");
    if (json_object_get(json, "watts")) {
        ret->kind.watts = psim_read_positive(r, where, json, "watts");
    }
}

/* Relative figures of the kinds, from their rates. */
static void relate(struct psim_platform *m)
{
    double gmacs = 0, gbytes = 0;

    for (size_t k = 0; k < m->kind_count; k++) {
        gmacs = base_max(gmacs, m->kinds[k].gmacs[PSIM_CONV]);
        gbytes = base_max(gbytes, m->kinds[k].gbytes);
    }
    for (size_t k = 0; k < m->kind_count; k++) {
        m->kinds[k].kind.speed = m->kinds[k].gmacs[PSIM_CONV] / gmacs;
        m->kinds[k].kind.bandwidth = m->kinds[k].gbytes / gbytes;
    }
}

/* Where the figures are from: for people, but it has to be there. */
static void read_source(struct psim_reader *r, const json_t *root)
{
    const json_t *source = json_object_get(root, "source");

    if (!json_is_array(source) || json_array_size(source) == 0) {
        psim_wrong(r, "source", "is not a list of texts that say where the figures are from");
    }
    for (size_t i = 0; i < json_array_size(source); i++) {
        if (!json_is_string(json_array_get(source, i))) {
            psim_wrong(r, "source", "entry %zu is not a text", i);
        }
    }
}

static void read_platform(struct psim_reader *r, const json_t *root, struct psim_platform *ret)
{
    static const char *const keys[] = {
        "title", "source", "kinds", "handoff_ns", "handoff_ns_per_byte", NULL};
    struct tun_kind plain[PL_EP_MAX];
    const json_t *kinds;

    if (!psim_read_keys(r, "", root, keys) || !(kinds = psim_read_kinds(r, root))) {
        return;
    }
    snprintf(ret->title, sizeof(ret->title), "%s",
             psim_read_text(r, "", root, "title", sizeof(ret->title)));
    read_source(r, root);
    ret->kind_count = json_array_size(kinds);
    for (size_t k = 0; k < ret->kind_count; k++) {
        char where[32];

        snprintf(where, sizeof(where), "kinds[%zu]", k);
        read_kind(r, where, json_array_get(kinds, k), &ret->kinds[k]);
        plain[k] = ret->kinds[k].kind;
    }
    ret->handoff_ns = psim_read_positive(r, "", root, "handoff_ns");
    ret->handoff_ns_per_byte = psim_read_positive(r, "", root, "handoff_ns_per_byte");
    psim_read_distinct(r, plain, ret->kind_count);
}

int psim_platform_load(const char *name, char ret_error[PSIM_ERROR_MAX], struct psim_platform *ret)
{
    char path[PSIM_PATH_MAX];
    struct psim_reader r = {.path = path, .error = ret_error};
    struct psim_platform m = {0};
    const char *slash = strrchr(name, '/');
    json_t *root;
    int error;

    ret_error[0] = '\0';
    error = psim_find(&psim_platforms, name, ret_error, path);
    if (error) {
        return error;
    }
    root = psim_read_file(&r);
    if (root) {
        read_platform(&r, root, &m);
        json_decref(root);
    }
    if (ret_error[0]) {
        return -EBADMSG;
    }
    snprintf(m.name, sizeof(m.name), "%.63s", slash ? slash + 1 : name);
    if (strlen(m.name) > 5 && strcmp(m.name + strlen(m.name) - 5, ".json") == 0) {
        m.name[strlen(m.name) - 5] = '\0';
    }
    relate(&m);
    *ret = m;
    return 0;
}

static double speed(const struct psim_kind *k, double width)
{
    return width / (1 + k->serial * (width - 1));
}

static double unit_ns(const struct psim_unit *u, const struct psim_kind *k, double width)
{
    double arithmetic = u->macs / (k->gmacs[u->layer] * speed(k, width));
    double memory = u->bytes / fmin(width * k->gbytes, k->gbytes_max);

    return k->overhead_ns + fmax(arithmetic, memory);
}

int psim_problem(const struct psim_network *n, const struct psim_platform *m,
                 struct tun_problem *ret)
{
    struct tun_kind kinds[PL_EP_MAX];
    struct tun_problem p;
    int error;

    for (size_t k = 0; k < m->kind_count; k++) {
        kinds[k] = m->kinds[k].kind;
    }
    error = tun_problem_init(&p, n->unit_count, kinds, m->kind_count);
    if (error) {
        return error;
    }
    p.handoff_ns = m->handoff_ns;
    p.handoff_ns_per_byte = m->handoff_ns_per_byte;
    for (size_t u = 0; u < n->unit_count; u++) {
        const struct psim_unit *from = &n->units[u];

        p.units[u] = (struct tun_unit){.weight = from->weight,
                                       .in_bytes = from->in_bytes,
                                       .gemm_n = from->gemm_n,
                                       .gemm_k = from->gemm_k,
                                       .gemm_m = from->gemm_m};
        for (size_t k = 0; k < m->kind_count; k++) {
            for (size_t w = 1; w <= kinds[k].cores; w++) {
                *tun_cell_at(&p.costs, k, w, u) = (struct tun_cell){
                    .ns = unit_ns(from, &m->kinds[k], (double)w), .source = TUN_MEASURED};
            }
        }
    }
    *ret = p;
    return 0;
}
