/* SPDX-License-Identifier: Apache-2.0 */
/* What a served model keeps of its choice. */

#include "base/base.h"
#include "daemon/models/choosing_private.h"

static double *copy(const double *x, size_t count)
{
    double *ret = x ? malloc((count + 1) * sizeof(*ret)) : NULL;

    return ret ? memcpy(ret, x, count * sizeof(*ret)) : NULL;
}

void dmn_choose_keep(const struct dmn_choose *c, bool special, struct dmn_kept_choice *ret)
{
    *ret = (struct dmn_kept_choice){.special = special,
                                    .outdated = c->outdated,
                                    .doubt = c->chosen ? c->doubt : 0,
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
