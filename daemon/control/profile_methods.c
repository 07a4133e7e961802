/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "daemon/control/methods.h"
#include "daemon/plans/planning.h"
#include "daemon/plans/profile.h"

static json_t *error_or_null(bool has, double error)
{
    return has ? json_real(error) : json_null();
}

static json_t *result_json(const struct dmn_control *control)
{
    json_t *list = json_array();

    for (size_t e = 0; e < control->machine->eps.count; e++) {
        const struct dmn_profiled *k =
            dmn_profiled(control->plans, control->machine->eps.eps[e].name);
        const struct tun_predictor *p = &k->predictor;

        json_array_append_new(list, json_pack("{s:s, s:I, s:o, s:o, s:o}", "name",
                                              control->machine->eps.eps[e].name, "benches",
                                              (json_int_t)k->benches, "error_conv",
                                              error_or_null(p->has_conv, p->error_conv), "error_fc",
                                              error_or_null(p->has_fc, p->error_fc), "error_multi",
                                              error_or_null(p->has_alpha, p->error_multi)));
    }
    return list;
}

static void on_done(void *ctx, const struct dmn_outcome *o)
{
    struct dmn_call *c = ctx;

    if (o) {
        dmn_call_refuse(c, o);
    } else {
        dmn_call_reply(c, json_pack("{s:o}", "kinds", result_json(c->control)), false);
    }
}

void dmn_method_profile(struct dmn_call *c)
{
    const json_t *ms = json_object_get(c->parameters, "ms");
    json_int_t wanted = json_is_integer(ms) ? json_integer_value(ms) : DMN_PROFILE_MS;
    int error;

    if (wanted < 1 || wanted > DMN_PROFILE_MS_MAX) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", "ms");
        return;
    }
    if (c->control->machine->whole.count > 0) {
        dmn_call_error(c, "Busy", "why",
                       "a core is slowed and its execution place is split; a profile would be of "
                       "that");
        return;
    }
    for (const struct dmn_model *m = c->control->models->models; m; m = m->next) {
        if (m->planning->retune) {
            dmn_call_error(c, "Busy", "why",
                           "a retune is in progress; profiling would distort its measurements");
            return;
        }
    }
    error = dmn_profile_begin(c->control->plans, (struct dmn_done){on_done, c}, (unsigned)wanted);
    if (error) {
        dmn_call_error(c, "Busy", "why",
                       error == -EBUSY ? "profiling is in progress" : strerror(-error));
    }
}
