/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/json/mix_json.h"

#include "base/base.h"

#define FRONT_POINTS 10u
#define TEXT_MAX 1024u

int tun_mix_front_json(const struct tun_wish *wishes, size_t count, size_t changes, json_t **ret)
{
    struct tun_wish part[TUN_MIX_MAX];
    struct tun_mix mix;
    int r = tun_mix_solve(wishes, count, TUN_FAIR, changes, 1, &mix);
    double most = r == 0 ? mix.lambda : 0;

    tun_mix_deinit(&mix);
    *ret = json_array();
    for (unsigned i = 1; r == 0 && i <= FRONT_POINTS; i++) {
        double of = most * i / FRONT_POINTS * (1 - 1e-9);

        for (size_t m = 0; m < count; m++) {
            part[m] = wishes[m];
            part[m].rate *= of;
        }
        r = tun_mix_solve(part, count, TUN_ENERGY, changes, 1, &mix);
        json_array_append_new(*ret, json_pack("{s:f, s:f}", "of_wishes", of, "energy", mix.value));
        tun_mix_deinit(&mix);
    }
    return r;
}

/* Return: NULL: none of the model's units runs in so many pieces. */
static json_t *cut_json(const struct tun_promise *p, const char *const *names, size_t model,
                        size_t pieces)
{
    json_t *units = json_array();
    char text[TEXT_MAX] = "";
    size_t late = 0, count = 0;

    for (size_t i = 0; i < p->cut_count; i++) {
        const struct tun_cut *c = &p->cuts[i];

        if (c->model == model && c->pieces == pieces) {
            base_append(text, sizeof(text), "%s%zu", count++ > 0 ? ", " : "", c->unit);
            json_array_append_new(units, json_integer((json_int_t)c->unit));
            late = c->late;
        }
    }
    if (count == 0) {
        json_decref(units);
        return NULL;
    }
    return json_pack("{s:s, s:i, s:o, s:o}", "model", names[model], "pieces", (int)pieces, "units",
                     units, "text",
                     json_sprintf("Unit%s %s of %s run%s in %zu pieces, so that %s is in time.",
                                  base_plural(count), text, names[model], count > 1 ? "" : "s",
                                  pieces, names[late]));
}

json_t *tun_cuts_json(const struct tun_promise *p, const char *const *names, size_t count)
{
    json_t *cuts = json_array();

    for (size_t m = 0; m < count; m++) {
        for (size_t pieces = 2; pieces <= UINT8_MAX; pieces *= 2) {
            json_t *cut = cut_json(p, names, m, pieces);

            if (cut) {
                json_array_append_new(cuts, cut);
            }
        }
    }
    return cuts;
}

json_t *tun_wide_json(const struct tun_promise *p, const struct tun_wish *wishes,
                      const char *const *names, size_t count)
{
    json_t *wide = json_array();

    for (size_t m = 0; m < count; m++) {
        if (p->width[m] > 1 && wishes[m].width <= 1) {
            json_array_append_new(
                wide,
                json_pack("{s:s, s:i, s:o}", "model", names[m], "width", (int)p->width[m], "text",
                          json_sprintf("%s takes %zu cores at once, so that it is in time.",
                                       names[m], p->width[m])));
        }
    }
    return wide;
}
