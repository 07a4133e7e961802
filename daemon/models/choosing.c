/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "daemon/models/choosing_private.h"
#include "governor/machine_state.h"

/* A unit timed with its neighbours on a quiet core is within about this of its time when it
 * serves. */

int dmn_choose_init(struct dmn_choose *c, const struct dmn_machine *machine, const char *folder)
{
    const struct dmn_config *config = dmn_machine_config(machine);
    const struct gov_topology *topology = machine->topology;
    const struct pl_ep_set *eps = dmn_machine_whole(machine);

    *c = (struct dmn_choose){.pack = KRN_PACK_ONE_STAGE,
                             .kind_count = eps->count,
                             .ms = (unsigned)dmn_config_int(config, DMN_KEY_KERNELS_MEASURE_MS),
                             .options = {.exact = true}};
    for (size_t e = 0; e < eps->count; e++) {
        const struct gov_ep *g = gov_topology_ep(topology, eps->eps[e].cpus[0]);
        struct dmn_choose_kind *k = &c->kinds[e];

        snprintf(k->name, sizeof(k->name), "%s", eps->eps[e].name);
        k->cpu = dmn_config_int(config, DMN_KEY_PIN) ? eps->eps[e].cpus[0] : -1;
        for (k->same = 0; k->same < e; k->same++) {
            const struct gov_ep *other = gov_topology_ep(topology, eps->eps[k->same].cpus[0]);

            if (g && other && strcmp(g->kind, other->kind) == 0 &&
                g->max_freq_khz == other->max_freq_khz && g->capacity == other->capacity) {
                break;
            }
        }
    }
    if (folder) {
        c->folder = strdup(folder);
        return c->folder ? 0 : -ENOMEM;
    }
    return 0;
}

void dmn_choose_deinit(struct dmn_choose *c)
{
    for (size_t k = 0; k < PL_EP_MAX; k++) {
        krn_chosen_deinit(&c->of[k]);
        krn_choice_deinit(&c->now[k]);
        krn_times_deinit(&c->known[k]);
        free(c->at_once[k]);
        c->at_once[k] = NULL;
    }
    for (size_t i = 0; i < c->front_count; i++) {
        krn_chosen_deinit(&c->front[i]);
    }
    c->front_count = 0;
    free(c->folder);
    free(c->given);
    c->folder = c->given = NULL;
}

static int build(const struct dmn_choose *c, const struct mdl_model *m, char *ret_error,
                 struct krn_net **ret)
{
    struct krn_choice choices[PL_EP_MAX];

    for (size_t k = 0; k < c->kind_count; k++) {
        choices[k] = c->of[c->kinds[k].same].choice; /* borrowed */
        snprintf(choices[k].kind, sizeof(choices[k].kind), "%s", c->kinds[k].name);
    }
    return krn_net_new_chosen(m, choices, c->kind_count, c->pack, ret_error, ret);
}

int dmn_choose_net(struct dmn_choose *c, const struct mdl_model *m, const char *name,
                   char ret_error[MDL_ERROR_MAX], struct krn_net **ret)
{
    uint64_t start = base_now_ns();
    bool at_once;
    int r = -ENOENT;

    if (c->given && c->kind_count > 0 && dmn_choose_given(c, m) == 0 &&
        build(c, m, ret_error, ret) == 0) {
        c->took_ns = base_now_ns() - start;
        c->chosen = true;
        return 0;
    }
    if (c->ms == 0 || c->kind_count == 0 || m->op_count == 0) {
        return krn_net_new_preferred(m, NULL, c->pack, ret_error, ret);
    }
    if (!c->anew) {
        r = dmn_choose_read(c, m, name);
    }
    if (r == DMN_CHOOSE_E_OTHER_OPS) {
        return krn_net_new_preferred(m, NULL, c->pack, ret_error, ret);
    }
    if (r < 0) {
        c->measured = true;
        r = dmn_choose_measure(c, m);
    }
    if (r == 0 && c->wants_front) {
        c->chosen = true;
        c->took_ns = base_now_ns() - start;
        return 0;
    }
    at_once = r == 0 && !c->outdated && dmn_choose_at_once(c, m);
    if (r == 0) {
        r = build(c, m, ret_error, ret);
    }
    c->took_ns = base_now_ns() - start;
    if (r == 0) {
        c->chosen = true;
        if (c->measured || at_once) {
            dmn_choose_write(c, m, name);
        }
        return 0;
    }
    if (r == -ECANCELED) {
        return r;
    }
    if (!c->examples || !c->note[0]) {
        const char *why =
            r == -ENOSPC ? "no choice packs its weights into so little memory" : strerror(-r);

        snprintf(c->note, sizeof(c->note), "cannot choose its primitives: %s%s", why,
                 c->wants_front ? "" : "; using the default ones");
    }
    return krn_net_new_preferred(m, NULL, c->pack, ret_error, ret);
}

/* The unit's factor is the mean of its ops', weighted by their times. Return: it is known. */
static bool unit_gain(const struct mdl_unit *unit, const double *ns,
                      const double (*gains)[KRN_AT_ONCE], struct tun_at_once *ret)
{
    double sum = 0;

    *ret = (struct tun_at_once){0};
    for (size_t i = unit->first_op; i <= unit->last_op; i++) {
        sum += ns[i];
        for (size_t b = 0; b < KRN_AT_ONCE; b++) {
            ret->factor[b] += ns[i] * gains[i][b];
        }
    }
    for (size_t b = 0; b < KRN_AT_ONCE; b++) {
        ret->factor[b] /= sum;
    }
    tun_at_once_settle(ret);
    return sum > 0;
}

/* Enters into @p what several frames at once gain. */
static void at_once_costs(const struct dmn_choose *c, const struct mdl_model *m,
                          struct tun_problem *p)
{
    for (size_t k = 0; c->chosen && k < c->kind_count && k < p->ep_count; k++) {
        size_t same = c->kinds[k].same;
        struct tun_at_once *all = c->at_once[same] ? tun_problem_at_once(p) : p->at_once;

        for (size_t u = 0; all && u < m->unit_count; u++) {
            struct tun_at_once *to = &all[k * p->unit_count + u], gain;

            if (c->measured) { /* what was learned may be of other primitives */
                *to = (struct tun_at_once){0};
            }
            if (!to->measured && c->at_once[same] &&
                unit_gain(&m->units[u], c->of[same].op_ns,
                          (const double(*)[KRN_AT_ONCE])c->at_once[same], &gain)) {
                *to = gain;
            }
        }
    }
}

void dmn_choose_costs(const struct dmn_choose *c, const struct mdl_model *m, struct tun_problem *p)
{
    for (size_t i = 0; c->chosen && c->measured && i < tun_cell_count(&p->costs); i++) {
        if (p->costs.cells[i].source == TUN_SAVED) { /* may be of other primitives */
            p->costs.cells[i] = (struct tun_cell){.ns = -1};
        }
    }
    for (size_t k = 0; c->chosen && k < c->kind_count && k < p->ep_count; k++) {
        const double *ns = c->of[c->kinds[k].same].op_ns;

        for (size_t u = 0; u < m->unit_count; u++) {
            struct tun_cell *cell = tun_cell_at(&p->costs, k, 1, u);
            double sum = 0;

            for (size_t i = m->units[u].first_op; i <= m->units[u].last_op; i++) {
                sum += ns[i];
            }
            if (sum > 0 && cell->source < TUN_SAVED) {
                *cell = (struct tun_cell){
                    .ns = sum, .sigma = DMN_CHOOSE_SIGMA, .source = TUN_PREDICTED};
            }
        }
    }
    at_once_costs(c, m, p);
}

/* ---- what a served model keeps ---- */

static double *copy(const double *x, size_t count)
{
    double *ret = x ? malloc((count + 1) * sizeof(*ret)) : NULL;

    return ret ? memcpy(ret, x, count * sizeof(*ret)) : NULL;
}

void dmn_choose_keep(const struct dmn_choose *c, bool special, struct dmn_kept_choice *ret)
{
    *ret = (struct dmn_kept_choice){.special = special,
                                    .outdated = c->outdated,
                                    .doubt = c->chosen && c->options.exact ? c->doubt : 0,
                                    .wanted = c->options,
                                    .tries = c->tries};
    for (size_t k = 0; k < c->kind_count; k++) {
        const struct krn_chosen *of = &c->of[k];
        size_t count = of->choice.op_count;

        if (c->kinds[k].same != k) {
            continue;
        }
        snprintf(ret->kind[ret->count].name, PL_EP_NAME_MAX, "%s", c->kinds[k].name);
        ret->kind[ret->count].class = c->kinds[k].class;
        if (c->chosen && count > 0) {
            ret->kind[ret->count].op_ns = copy(of->op_ns, count);
            ret->kind[ret->count].op_sigma_ns = copy(of->op_sigma_ns, count);
        }
        if (c->chosen && count > 0 && of->op_lose_ns) {
            bool *unsure = calloc(count, sizeof(*unsure));

            if (unsure) {
                krn_chosen_unsure(of, DMN_CHOOSE_DOUBT / 2, unsure);
            }
            ret->kind[ret->count].op_unsure = unsure;
        }
        if (ret->doubt > 0 && c->known[k].count > 0) {
            (void)krn_times_copy(&c->known[k], &ret->kind[ret->count].times); /* else anew */
        }
        ret->count++;
    }
}

void dmn_kept_choice_deinit(struct dmn_kept_choice *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free(k->kind[i].op_ns);
        free(k->kind[i].op_sigma_ns);
        free(k->kind[i].op_unsure);
        krn_times_deinit(&k->kind[i].times);
    }
    *k = (struct dmn_kept_choice){0};
}
