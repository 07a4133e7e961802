/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_signs.h"

#include "base/base.h"

/* FNV-1a */
static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    h = h ? h : UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++) {
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return h;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    return hash(h, text, strlen(text) + 1);
}

static void add(struct dmn_signs *s, uint64_t key, double value, bool link)
{
    if (s->count < DMN_SIGNS_MAX) {
        s->sign[s->count].key = key;
        s->sign[s->count].value = value;
        s->sign[s->count++].link = link;
    }
}

static double mean_border(const struct tun_problem *p)
{
    double sum = p->boards.input_bytes + p->boards.output_bytes;

    for (size_t u = 1; u < p->unit_count; u++) {
        sum += p->units[u].in_bytes;
    }
    return sum / (double)(p->unit_count + 1);
}

static void add_links(const struct brd_state *s, const struct dmn_spread_inputs *in, double bytes,
                      struct dmn_signs *ret)
{
    for (size_t i = 0; i < s->way_count; i++) {
        const struct brd_way *w = &s->way[i];
        uint64_t key = hash_text(hash_text(0, s->print), w->print);
        double ns = !dmn_spread_linked(in, s->print, w->print) ? DMN_LINK_GAP_NS
                    : w->measured                              ? w->ns + w->ns_per_byte * bytes
                                  : DMN_LINK_GUESS_NS + DMN_LINK_GUESS_NS_PER_BYTE * bytes;

        add(ret, key, ns, true);
    }
}

static void add_past(const struct dmn_spread_past *p, struct dmn_signs *ret)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct dmn_past_row *r = &p->row[i];
        size_t known = 0;
        double sum = 0;
        uint64_t key;

        for (size_t u = 0; u < p->unit_count; u++) {
            known += r->ns[u] > 0;
            sum += r->ns[u] > 0 ? r->ns[u] : 0;
        }
        key = hash_text(hash_text(0, r->print), r->ep);
        key = hash(hash(key, &r->width, sizeof(r->width)), &known, sizeof(known));
        add(ret, key, sum, false);
    }
}

static void add_here(const struct tun_problem *p, struct dmn_signs *ret)
{
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            double sum = 0;

            for (size_t u = 0; u < p->unit_count; u++) {
                sum += tun_cell_at(&p->costs, k, w, u)->ns;
            }
            add(ret, hash(hash_text(0, p->eps[k].name), &w, sizeof(w)), sum, false);
        }
    }
}

void dmn_signs_take(const struct dmn_spread_inputs *in, struct dmn_signs *ret)
{
    double bytes = mean_border(in->here);

    ret->count = 0;
    add_links(&in->report->self, in, bytes, ret);
    for (size_t i = 0; i < in->report->board_count; i++) {
        if (!in->usable || in->usable[i]) {
            add_links(&in->report->board[i], in, bytes, ret);
        }
    }
    add_past(in->past, ret);
    add_here(in->here, ret);
}

static bool near(double a, double b, double change)
{
    return base_max(a, b) <= base_min(a, b) * (1 + change);
}

enum dmn_sign_change dmn_signs_compare(const struct dmn_signs *before, const struct dmn_signs *now)
{
    enum dmn_sign_change change = before->count == now->count ? DMN_SIGNS_SAME : DMN_SIGNS_COSTS;

    for (size_t i = 0; i < now->count; i++) {
        size_t k = i;

        if (k >= before->count || before->sign[k].key != now->sign[i].key) {
            for (k = 0; k < before->count && before->sign[k].key != now->sign[i].key; k++) {
            }
        }
        if (k == before->count || !near(before->sign[k].value, now->sign[i].value,
                                        now->sign[i].link ? DMN_SIGN_LINKS : DMN_SIGN_COSTS)) {
            if (now->sign[i].link) {
                return DMN_SIGNS_LINKS;
            }
            change = DMN_SIGNS_COSTS;
        }
    }
    return change;
}
