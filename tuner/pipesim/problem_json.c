/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded cost tables. */
#include <math.h>
#include <string.h>

#include "base.h"
#include "tuner/learn.h"
#include "tuner/pipesim/files.h"

#define MODEL_BYTES_MAX 256u

static const json_t *list_of(struct psim_reader *r, const json_t *object, const char *where,
                             const char *key, size_t least, size_t most)
{
    const json_t *v = json_object_get(object, key);
    char way[160];

    snprintf(way, sizeof(way), "%s%s%s", where, *where ? "." : "", key);
    if (!json_is_array(v)) {
        psim_wrong(r, way, "is not a list");
    } else if (json_array_size(v) < least || json_array_size(v) > most) {
        psim_wrong(r, way, "has %zu entries instead of %zu%s", json_array_size(v), least,
                   most > least ? " or more" : "");
    } else {
        return v;
    }
    return NULL;
}

static void read_gemm(struct psim_reader *r, const char *where, const json_t *json,
                      struct tun_unit *u)
{
    double *const figures[] = {&u->gemm_n, &u->gemm_k, &u->gemm_m};
    const json_t *list = list_of(r, json, where, "gemm", 3, 3);

    for (size_t i = 0; list && i < base_array_count(figures); i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_number(v) || !(json_number_value(v) >= 0)) {
            psim_wrong(r, where, "gemm wants three numbers, 0 for unknown");
            return;
        }
        *figures[i] = json_number_value(v);
    }
}

static void read_unit(struct psim_reader *r, size_t index, const json_t *json, struct tun_unit *u)
{
    static const char *const keys[] = {"name", "weight", "in_bytes", "gemm", NULL};
    char where[48];

    snprintf(where, sizeof(where), "units[%zu]", index);
    if (!psim_read_keys(r, where, json, keys)) {
        return;
    }
    psim_read_text(r, where, json, "name", MODEL_BYTES_MAX);
    u->weight = psim_read_positive(r, where, json, "weight");
    u->in_bytes = psim_read_number(r, where, json, "in_bytes", 0, 1e15);
    read_gemm(r, where, json, u);
}

static void read_kind(struct psim_reader *r, const char *where, const json_t *json,
                      struct tun_kind *ret)
{
    static const char *const keys[] = {"name", "cores", "speed", "bandwidth", "watts", NULL};

    if (!psim_read_keys(r, where, json, keys)) {
        return;
    }
    psim_read_kind(r, where, json, ret);
    ret->speed = psim_read_number(r, where, json, "speed", 1e-6, 1);
    ret->bandwidth = psim_read_number(r, where, json, "bandwidth", 1e-6, 1);
    ret->watts = psim_read_number(r, where, json, "watts", 0, 1e6);
}

/* Return: how many of a row's costs are known. */
static size_t read_row(struct psim_reader *r, const char *where, const json_t *row, size_t kind,
                       size_t width, struct tun_problem *p)
{
    size_t known = 0;

    for (size_t u = 0; u < p->unit_count; u++) {
        const json_t *v = json_array_get(row, u);
        double ns = json_number_value(v);

        if (json_is_null(v)) {
            continue;
        }
        if (!json_is_number(v) || !(ns > 0)) {
            psim_wrong(r, where, "entry %zu is neither a time in ns above 0 nor null", u);
            return 0;
        }
        *tun_cell_at(&p->costs, kind, width, u) =
            (struct tun_cell){.ns = ns, .source = TUN_MEASURED};
        known++;
    }
    return known;
}

static size_t read_rows(struct psim_reader *r, const json_t *rows, size_t kind,
                        struct tun_problem *p)
{
    const char *name = p->kinds[kind].name, *key;
    size_t known = 0;
    char where[64], way[96];
    json_t *value;

    snprintf(where, sizeof(where), "costs.%s", name);
    if (!json_is_object(rows)) {
        psim_wrong(r, where, rows ? "is not an object" : "is missing");
        return 0;
    }
    for (size_t w = 1; w <= p->kinds[kind].cores; w++) {
        char width[16];
        const json_t *row;

        snprintf(width, sizeof(width), "%zu", w);
        snprintf(way, sizeof(way), "%s.%s", where, width);
        row = list_of(r, rows, where, width, p->unit_count, p->unit_count);
        known += row ? read_row(r, way, row, kind, w, p) : 0;
    }
    json_object_foreach((json_t *)(uintptr_t)rows, key, value)
    {
        char *end;
        unsigned long w = strtoul(key, &end, 10);

        if (*end || w < 1 || w > p->kinds[kind].cores || *key == '0' || *key == '+') {
            psim_wrong(r, where, "\"%.20s\" is no width of %u cores", key, p->kinds[kind].cores);
        }
    }
    return known;
}

static void read_costs(struct psim_reader *r, const json_t *costs, struct tun_problem *p)
{
    size_t known = 0;
    const char *key;
    json_t *value;

    if (!json_is_object(costs)) {
        psim_wrong(r, "costs", "is not an object");
        return;
    }
    for (size_t k = 0; k < p->kind_count; k++) {
        known += read_rows(r, json_object_get(costs, p->kinds[k].name), k, p);
    }
    json_object_foreach((json_t *)(uintptr_t)costs, key, value)
    {
        bool found = false;

        for (size_t k = 0; k < p->kind_count; k++) {
            found |= strcmp(key, p->kinds[k].name) == 0;
        }
        if (!found) {
            psim_wrong(r, "costs", "\"%.40s\" is none of the kinds", key);
        }
    }
    if (known == 0) {
        psim_wrong(r, "costs", "not one is known");
    }
}

void psim_problem_read(struct psim_reader *r, const json_t *root, struct tun_problem *p)
{
    /* where figures are from is told to readers; here all of them are the truth */
    static const char *const keys[] = {
        "model", "units", "kinds", "handoff_ns", "handoff_ns_per_byte", "costs", "sources?", NULL};
    struct tun_kind kinds[PL_EP_MAX] = {0};
    const json_t *units, *list;
    size_t count;

    if (!psim_read_keys(r, "", root, keys)) {
        return;
    }
    psim_read_text(r, "", root, "model", MODEL_BYTES_MAX);
    units = list_of(r, root, "", "units", 1, TUN_UNIT_MAX);
    list = psim_read_kinds(r, root);
    count = json_array_size(list);
    for (size_t k = 0; k < count; k++) {
        char where[32];

        snprintf(where, sizeof(where), "kinds[%zu]", k);
        read_kind(r, where, json_array_get(list, k), &kinds[k]);
    }
    psim_read_distinct(r, kinds, count);
    if (r->error[0]) {
        return;
    }
    if (tun_problem_init(p, json_array_size(units), kinds, count) < 0) {
        psim_wrong(r, "", "out of memory");
        return;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        read_unit(r, u, json_array_get(units, u), &p->units[u]);
    }
    p->handoff_ns = psim_read_number(r, "", root, "handoff_ns", 0, 1e15);
    p->handoff_ns_per_byte = psim_read_number(r, "", root, "handoff_ns_per_byte", 0, 1e6);
    read_costs(r, json_object_get(root, "costs"), p);
}

int psim_problem_load(const char *path, char ret_error[PSIM_ERROR_MAX], struct tun_problem *ret)
{
    struct psim_reader r = {.path = path, .error = ret_error};
    struct tun_problem p = TUN_PROBLEM_NULL;
    char why[TUN_ERROR_MAX];
    json_t *root;

    ret_error[0] = '\0';
    root = psim_read_file(&r);
    if (root) {
        psim_problem_read(&r, root, &p);
        json_decref(root);
    }
    if (!ret_error[0]) {
        tun_fill(&p);
        if (tun_problem_check(&p, why) < 0) {
            psim_wrong(&r, "", "%s", why);
        }
    }
    if (ret_error[0]) {
        tun_problem_deinit(&p);
        return -EBADMSG;
    }
    *ret = p;
    return 0;
}
