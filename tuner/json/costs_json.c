/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/json/costs_json.h"

#include "base/base.h"

#define MODEL_BYTES_MAX 256u
#define NS_MAX 1e15    /* no unit takes longer */
#define SIGMA_MAX 10.0 /* a figure that uncertain says nothing */

const char *const tun_source_names[] = {[TUN_UNKNOWN] = "unknown",
                                        [TUN_PREDICTED] = "predicted",
                                        [TUN_SAVED] = "saved",
                                        [TUN_MEASURED] = "measured"};

/* ---- a whole problem ---- */

static const struct tun_field UNIT[] = {
    TUN_FIELD(struct tun_unit, weight, TUN_POSITIVE),
    TUN_FIELD(struct tun_unit, in_bytes, .most = 1e15),
    TUN_FIELD(struct tun_unit, bytes, .most = 1e15, .optional = true),
    {0}};
static const struct tun_field EP[] = {
    TUN_FIELD(struct tun_ep, name, TUN_NAME, .most = PL_EP_NAME_MAX),
    TUN_FIELD(struct tun_ep, cores, TUN_SHORT, .least = 1, .most = PL_CPU_MAX),
    TUN_FIELD(struct tun_ep, speed, .least = 1e-6, .most = 1),
    TUN_FIELD(struct tun_ep, bandwidth, .least = 1e-6, .most = 1),
    TUN_FIELD(struct tun_ep, watts, .most = 1e6),
    TUN_FIELD(struct tun_ep, gbytes, .most = 1e6, .optional = true),
    TUN_FIELD(struct tun_ep, gbytes_max, .most = 1e6, .optional = true),
    {0}};
static const struct tun_field PROBLEM[] = {
    TUN_FIELD(struct tun_problem, handoff_ns, .most = 1e15),
    TUN_FIELD(struct tun_problem, handoff_ns_per_byte, .most = 1e6),
    TUN_FIELD(struct tun_problem, batch_wait_ns, .most = 1e15),
    TUN_FIELD(struct tun_problem, gbytes_max, .most = 1e6),
    {0}};

static json_t *units_json(const struct tun_problem *p, tun_unit_name_fn name_of,
                          const void *context)
{
    json_t *list = json_array();

    for (size_t u = 0; u < p->unit_count; u++) {
        const struct tun_unit *unit = &p->units[u];
        const char *name = name_of ? name_of(context, u) : NULL;
        char number[24];
        json_t *v;

        snprintf(number, sizeof(number), "%zu", u);
        v = json_pack("{s:s}", "name", name && *name ? name : number);
        json_object_set_new(tun_fields_add(v, UNIT, unit), "gemm",
                            json_pack("[f, f, f]", unit->gemm_n, unit->gemm_k, unit->gemm_m));
        json_array_append_new(list, v);
    }
    return list;
}

typedef json_t *(*cell_fn)(const struct tun_cell *c);

static json_t *figure(const struct tun_cell *c)
{
    return c->ns > 0 ? json_real(c->ns) : json_null();
}

static json_t *source_of(const struct tun_cell *c)
{
    return json_string(tun_source_names[c->source]);
}

/* What is worth keeping: null for the rest. */
static json_t *kept(const struct tun_cell *c)
{
    return c->source >= TUN_SAVED ? json_pack("[f, f]", c->ns, c->sigma) : json_null();
}

static bool all_null(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!json_is_null(json_array_get(list, i))) {
            return false;
        }
    }
    return true;
}

/* {EP: {"1": [one a unit], "2": [...]}}; @sparse: without rows of nulls. */
static json_t *rows_json(const struct tun_problem *p, cell_fn cell, bool sparse)
{
    json_t *eps = json_object();

    for (size_t k = 0; k < p->ep_count; k++) {
        json_t *widths = json_object();

        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            json_t *row = json_array();
            char name[24];

            for (size_t u = 0; u < p->unit_count; u++) {
                json_array_append_new(row, cell(tun_cell_at(&p->costs, k, w, u)));
            }
            snprintf(name, sizeof(name), "%zu", w);
            if (sparse && all_null(row)) {
                json_decref(row);
            } else {
                json_object_set_new(widths, name, row);
            }
        }
        json_object_set_new(eps, p->eps[k].name, widths);
    }
    return eps;
}

static json_t *gain_json(const struct tun_at_once *a, bool kept)
{
    json_t *list;

    if (!tun_at_once_gains(a) || (kept && !a->measured)) {
        return json_null();
    }
    list = json_array();
    for (size_t i = 0; i < TUN_AT_ONCE; i++) {
        json_array_append_new(list, json_real(a->factor[i]));
    }
    return list;
}

json_t *tun_at_once_json(const struct tun_problem *p, bool kept)
{
    json_t *eps = json_object();

    for (size_t k = 0; k < p->ep_count && p->at_once; k++) {
        json_t *row = json_array();

        for (size_t u = 0; u < p->unit_count; u++) {
            json_array_append_new(row, gain_json(tun_at_once_at(p, k, u), kept));
        }
        if (all_null(row)) {
            json_decref(row);
        } else {
            json_object_set_new(eps, p->eps[k].name, row);
        }
    }
    if (json_object_size(eps) == 0) {
        json_decref(eps);
        return NULL;
    }
    return eps;
}

json_t *tun_problem_json(const struct tun_problem *p, const char *model, bool sources,
                         tun_unit_name_fn name_of, const void *context)
{
    json_t *root = json_pack("{s:s, s:o, s:o, s:f, s:f, s:o}", "model", model, "units",
                             units_json(p, name_of, context), "kinds",
                             tun_rows_json(EP, p->eps, p->ep_count, sizeof(*p->eps)), "handoff_ns",
                             p->handoff_ns, "handoff_ns_per_byte", p->handoff_ns_per_byte, "costs",
                             rows_json(p, figure, false));

    if (root && tun_problem_gains(p)) {
        json_object_set_new(root, "batch_wait_ns", json_real(p->batch_wait_ns));
        json_object_set_new(root, "at_once", tun_at_once_json(p, false));
    }
    if (root && p->span_count) {
        json_object_set_new(root, "spans", tun_spans_json(p));
    }
    if (root && p->gbytes_max > 0) {
        json_object_set_new(root, "gbytes_max", json_real(p->gbytes_max));
    }
    if (root && sources) {
        json_object_set_new(root, "sources", rows_json(p, source_of, false));
    }
    return root;
}

/* Return: @v is what several frames gain. */
static bool gain_of(const json_t *v, struct tun_at_once *ret)
{
    *ret = (struct tun_at_once){0};
    for (size_t i = 0; i < TUN_AT_ONCE; i++) {
        double f = json_number_value(json_array_get(v, i));

        if (!(f > 0 && f <= 1)) {
            return false;
        }
        ret->factor[i] = f;
    }
    tun_at_once_settle(ret);
    return json_array_size(v) == TUN_AT_ONCE;
}

static void read_gemm(struct tun_reader *r, const char *where, const json_t *json,
                      struct tun_unit *u)
{
    double gemm[3];

    if (!tun_read_numbers(r, json, where, "gemm", base_array_count(gemm), gemm)) {
        return;
    }
    if (!(gemm[0] >= 0 && gemm[1] >= 0 && gemm[2] >= 0)) {
        tun_wrong(r, where, "gemm must be three numbers, 0 for unknown");
    }
    u->gemm_n = gemm[0];
    u->gemm_k = gemm[1];
    u->gemm_m = gemm[2];
}

static void read_unit(struct tun_reader *r, size_t index, const json_t *json, struct tun_unit *u)
{
    static const char *const keys[] = {"name", "gemm", NULL};
    char where[48];

    snprintf(where, sizeof(where), "units[%zu]", index);
    if (tun_read_object(r, where, json, keys, UNIT, u)) {
        tun_read_text(r, where, json, "name", MODEL_BYTES_MAX);
        read_gemm(r, where, json, u);
    }
}

/* Return: how many of a row's costs are known. */
static size_t read_row(struct tun_reader *r, const char *where, const json_t *row, size_t ep,
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
            tun_wrong(r, where, "entry %zu is neither a time in ns above 0 nor null", u);
            return 0;
        }
        *tun_cell_at(&p->costs, ep, width, u) = (struct tun_cell){.ns = ns, .source = TUN_MEASURED};
        known++;
    }
    return known;
}

static size_t read_rows(struct tun_reader *r, const json_t *rows, size_t ep, struct tun_problem *p)
{
    const char *name = p->eps[ep].name, *key;
    size_t known = 0;
    char where[64], way[96];
    json_t *value;

    snprintf(where, sizeof(where), "costs.%s", name);
    if (!json_is_object(rows)) {
        tun_wrong(r, where, rows ? "is not an object" : "is missing");
        return 0;
    }
    for (size_t w = 1; w <= p->eps[ep].cores; w++) {
        char width[16];
        const json_t *row;

        snprintf(width, sizeof(width), "%zu", w);
        snprintf(way, sizeof(way), "%s.%s", where, width);
        row = tun_read_list(r, rows, where, width, p->unit_count, p->unit_count);
        known += row ? read_row(r, way, row, ep, w, p) : 0;
    }
    json_object_foreach((json_t *)(uintptr_t)rows, key, value)
    {
        char *end;
        unsigned long w = strtoul(key, &end, 10);

        if (*end || w < 1 || w > p->eps[ep].cores || *key == '0' || *key == '+') {
            tun_wrong(r, where, "\"%.20s\" is not a width of %u cores", key, p->eps[ep].cores);
        }
    }
    return known;
}

static void read_costs(struct tun_reader *r, const json_t *costs, struct tun_problem *p)
{
    size_t known = 0;
    const char *key;
    json_t *value;

    if (!json_is_object(costs)) {
        tun_wrong(r, "costs", "is not an object");
        return;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        known += read_rows(r, json_object_get(costs, p->eps[k].name), k, p);
    }
    json_object_foreach((json_t *)(uintptr_t)costs, key, value)
    {
        bool found = false;

        for (size_t k = 0; k < p->ep_count; k++) {
            found |= strcmp(key, p->eps[k].name) == 0;
        }
        if (!found) {
            tun_wrong(r, "costs", "\"%.40s\" is not one of the kinds", key);
        }
    }
    if (known == 0) {
        tun_wrong(r, "costs", "not one is known");
    }
}

static void read_gains(struct tun_reader *r, const json_t *all, size_t ep, struct tun_problem *p)
{
    const json_t *row =
        tun_read_list(r, all, "at_once", p->eps[ep].name, p->unit_count, p->unit_count);
    struct tun_at_once a;

    for (size_t u = 0; row && u < p->unit_count; u++) {
        const json_t *v = json_array_get(row, u);

        if (json_is_null(v)) {
            continue;
        }
        if (!gain_of(v, &a)) {
            tun_wrong(r, "at_once", "%s: entry %zu is neither %u factors in (0, 1] nor null",
                      p->eps[ep].name, u, TUN_AT_ONCE);
            return;
        }
        p->at_once[ep * p->unit_count + u] = a;
    }
}

static void read_at_once(struct tun_reader *r, const json_t *root, struct tun_problem *p)
{
    const json_t *all = json_object_get(root, "at_once");

    if (!all) {
        return;
    }
    if (!json_is_object(all)) {
        tun_wrong(r, "at_once", "is not an object");
    } else if (!tun_problem_at_once(p)) {
        tun_wrong(r, "", "out of memory");
    }
    for (size_t k = 0; p->at_once && k < p->ep_count; k++) {
        if (json_object_get(all, p->eps[k].name)) {
            read_gains(r, all, k, p);
        }
    }
}

void tun_problem_read(struct tun_reader *r, const json_t *root, struct tun_problem *p)
{
    /* where figures are from is told to readers; here all of them are the truth */
    static const char *const keys[] = {
        "model",          "units",    "kinds",    "handoff_ns",  "costs",  "handoff_ns_per_byte",
        "batch_wait_ns?", "at_once?", "sources?", "gbytes_max?", "spans?", NULL};
    struct tun_ep eps[PL_EP_MAX] = {0};
    const json_t *units, *list;
    size_t count;

    if (!tun_read_object(r, "", root, keys, NULL, NULL)) {
        return;
    }
    tun_read_text(r, "", root, "model", MODEL_BYTES_MAX);
    units = tun_read_list(r, root, "", "units", 1, TUN_UNIT_MAX);
    list = tun_read_list(r, root, "", "kinds", 1, PL_EP_MAX);
    count = json_array_size(list);
    for (size_t k = 0; k < count; k++) {
        char where[32];

        snprintf(where, sizeof(where), "kinds[%zu]", k);
        tun_read_object(r, where, json_array_get(list, k), NULL, EP, &eps[k]);
    }
    tun_read_distinct(r, eps, count);
    if (r->error[0]) {
        return;
    }
    if (tun_problem_init(p, json_array_size(units), eps, count) < 0) {
        tun_wrong(r, "", "out of memory");
        return;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        read_unit(r, u, json_array_get(units, u), &p->units[u]);
    }
    tun_read_fields(r, "", root, PROBLEM, p);
    read_costs(r, json_object_get(root, "costs"), p);
    read_at_once(r, root, p);
    tun_spans_read(r, json_object_get(root, "spans"), p);
}

/* ---- cells that are kept ---- */

json_t *tun_costs_json(const struct tun_problem *p)
{
    return rows_json(p, kept, true);
}

static bool within(const json_t *value, double min, double max)
{
    double x = json_number_value(value);

    return json_is_number(value) && isfinite(x) && x >= min && x <= max;
}

static void take_row(struct tun_problem *p, size_t ep, size_t width, const json_t *row)
{
    if (json_array_size(row) != p->unit_count) {
        return;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        const json_t *ns = json_array_get(json_array_get(row, u), 0);
        const json_t *sigma = json_array_get(json_array_get(row, u), 1);

        if (within(ns, 1e-3, NS_MAX) && within(sigma, 0, SIGMA_MAX)) {
            *tun_cell_at(&p->costs, ep, width, u) =
                (struct tun_cell){.ns = json_number_value(ns),
                                  .sigma = json_number_value(sigma),
                                  .source = TUN_SAVED};
        }
    }
}

void tun_costs_take(struct tun_problem *p, const json_t *costs)
{
    for (size_t k = 0; k < p->ep_count; k++) {
        const json_t *widths = json_object_get(costs, p->eps[k].name);

        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            char name[24];

            snprintf(name, sizeof(name), "%zu", w);
            take_row(p, k, w, json_object_get(widths, name));
        }
    }
}

int tun_at_once_take(struct tun_problem *p, const json_t *json)
{
    if (json_object_size(json) > 0 && !tun_problem_at_once(p)) {
        return -ENOMEM;
    }
    for (size_t k = 0; p->at_once && k < p->ep_count; k++) {
        const json_t *row = json_object_get(json, p->eps[k].name);

        for (size_t u = 0; u < p->unit_count && json_array_size(row) == p->unit_count; u++) {
            struct tun_at_once a;

            if (gain_of(json_array_get(row, u), &a)) {
                a.measured = true;
                p->at_once[k * p->unit_count + u] = a;
            }
        }
    }
    return 0;
}
